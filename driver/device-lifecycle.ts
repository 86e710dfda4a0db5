/**
 * Whether a device is usable. The first to find that it is not reports it here, with the reason; all waiters are notified.
 *
 *   a command without an answer ────────┐
 *   a closing command that failed ──────┤
 *   all ones where a register was ──────┼──► die ──► commands fail, waiters wake, the driver restarts the device
 *   a code in the catastrophic buffer ──┘
 *
 * A dead device stays dead: one that was reset and probed again has a lifecycle of its own. Source: interface sheet 2.6, 3.3.
 */
import type { CommandName } from '../abi/index.ts';

/**
 * Commands that take something from the device. One that fails makes the device dead; of a dead device they have succeeded, for
 * it holds nothing any more (Linux: mlx4_closing_cmd_fatal_error).
 */
export const closingCommands: ReadonlySet<CommandName> = new Set<CommandName>([
  'HW2SW_MPT',
  'INVALIDATE_PAGES',
  'HW2SW_EQ',
  'HW2SW_CQ',
  'HW2SW_SRQ',
  '2RST_QP',
  'CLOSE_PORT',
  'CLOSE_HCA',
  'UNMAP_ICM',
  'UNMAP_ICM_AUX',
  'UNMAP_FA',
]);

export class DeviceLifecycle {
  private readonly listeners: (() => void)[] = [];
  /** Why the device is dead; undefined while it is usable. */
  reason: string | undefined;

  get isDead(): boolean {
    return this.reason !== undefined;
  }

  die(reason: string): void {
    if (this.isDead) return;
    this.reason = reason;
    for (const listener of this.listeners) listener();
  }

  onDeath(listener: () => void): void {
    this.listeners.push(listener);
  }
}

/**
 * Whether a device is usable. The first check that finds it unusable reports it here, with the reason; all waiters are
 * notified.
 *
 *   a command without an answer ────────┐
 *   a closing command that failed ──────┤
 *   all ones where a register was ──────┼──► die ──► commands fail, waiters wake, the driver restarts the device
 *   a code in the catastrophic buffer ──┘
 *
 * A dead device stays dead: after a reset and a new probe it has a new lifecycle. Source: interface sheet 2.6, 3.3.
 */
import type { CommandName } from '../abi/index.ts';

/**
 * Commands that release a resource of the device. A failure makes the device dead; on a dead device they succeed, because it
 * holds nothing any more (Linux: mlx4_closing_cmd_fatal_error).
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

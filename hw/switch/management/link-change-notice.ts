/**
 * Trap 128 of a switch: a link came up or went down. At most one is sent for each subnet timeout; changes until then
 * are notified together, since the trap does not name the port: the subnet manager reads PortStateChange and the ports
 * (IBTA volume 1, 13.4.9, 14.2.5.1).
 */
import { NoticeType, switchDetails, TRAP_LINK_CHANGE } from '../../../abi/index.ts';
import { NEVER, type Picoseconds } from '../../../base/index.ts';
import type { Trap } from './trap.ts';

export class LinkChangeNotice {
  #isPending = false;
  #allowedPs = Number.NEGATIVE_INFINITY;

  /** Notes a change, if a subnet manager can receive the trap. */
  changed(hasManager: boolean): void {
    this.#isPending = hasManager;
  }

  /** When a trap is due; NEVER for none. */
  get duePs(): Picoseconds {
    return this.#isPending ? this.#allowedPs : NEVER;
  }

  /** Whether a trap is due; the next one is due no earlier than `intervalPs` from now. */
  take(nowPs: Picoseconds, intervalPs: Picoseconds): boolean {
    if (this.duePs > nowPs) return false;
    this.#isPending = false;
    this.#allowedPs = nowPs + intervalPs;
    return true;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.#allowedPs -= ps;
  }
}

/** The trap of a switch with this LID. */
export function linkChangeTrap(switchLid: number): Trap {
  const details = new Uint8Array(switchDetails.sizeBytes);
  switchDetails.encodeInto({ switchLid }, details);
  return { type: NoticeType.URGENT, trapNumber: TRAP_LINK_CHANGE, details };
}

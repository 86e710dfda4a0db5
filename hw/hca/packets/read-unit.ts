/**
 * The unit that keeps READs: those that the requester has sent and those that the responder owes. Both halves of the
 * device use it, one after the other, in the order of their requests.
 */
import type { Cycles } from '../../../base/index.ts';

export class ReadUnit {
  /** Cycle from which the unit is free. */
  #freeCycle = 0;

  /**
   * Occupies the unit for `unitCycles` from `cycle` on, or from when it is free.
   * @returns cycles, from `cycle` on, until this is over and the caller's own `ownCycles` are
   */
  occupy(cycle: Cycles, ownCycles: Cycles, unitCycles: Cycles): Cycles {
    const beginCycle = this.#freeCycle > cycle ? this.#freeCycle : cycle;
    this.#freeCycle = beginCycle + unitCycles;
    const busyCycles = this.#freeCycle - cycle;
    return busyCycles > ownCycles ? busyCycles : ownCycles;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#freeCycle -= cycles;
  }
}

/**
 * The bus between cores and memory, as far as other masters occupy it: one master at a time has it, and meanwhile no core
 * reaches memory.
 *
 *     DMA controller ── take ──► held: cores stall
 *                    ── give ──► free: cores continue
 *
 * A core reads at the two ends of a stretch of work how long the bus was held ({@link heldPsAt}), and is delayed by that time.
 * Those cycles have their own cause, {@link BUS_WAIT_CAUSE}. While no master occupies the bus this costs nothing.
 */

import { InvariantError, type Picoseconds } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';

const FREE = -1;

/** Optional observer of the bus. */
export interface MemoryBusObserver {
  busTaken(nowPs: Picoseconds): void;
  busGiven(nowPs: Picoseconds): void;
}

export class MemoryBus {
  /** Times the bus was occupied. */
  takenCount = 0;
  #master = FREE;
  #sincePs = 0;
  #heldPs = 0;
  readonly #observer: MemoryBusObserver | undefined;

  /** @param observer notified in the hardware half of an instant; left out: none */
  constructor(observer?: MemoryBusObserver) {
    this.#observer = observer;
  }

  get isHeld(): boolean {
    return this.#master !== FREE;
  }

  /** Number of the master that has the bus, or -1. */
  get master(): number {
    return this.#master;
  }

  inspect(): BlockState {
    return { master: this.#master };
  }

  /** Picoseconds for which the bus has been held from the beginning up to `nowPs`, the present instant. */
  heldPsAt(nowPs: Picoseconds): number {
    return this.isHeld ? this.#heldPs + nowPs - this.#sincePs : this.#heldPs;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#sincePs -= ps;
  }

  /** @throws InvariantError if a master has it */
  take(master: number, nowPs: Picoseconds): void {
    if (this.isHeld) throw new InvariantError('master of the memory bus', this.#master, 'none');
    this.#master = master;
    this.#sincePs = nowPs;
    this.takenCount++;
    this.#observer?.busTaken(nowPs);
  }

  give(nowPs: Picoseconds): void {
    this.#heldPs = this.heldPsAt(nowPs);
    this.#master = FREE;
    this.#observer?.busGiven(nowPs);
  }
}

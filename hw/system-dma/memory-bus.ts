/**
 * The bus between cores and memory, as far as masters take it from the cores: one master at a time has it, and while it
 * does, no core reaches memory.
 *
 *     DMA controller ── take ──► held: cores stand still
 *                    ── give ──► free: cores go on
 *
 * A core asks at the two ends of a stretch of work how long the bus was held ({@link heldPsAt}) and is later by as much. Those
 * cycles have a cause of their own, {@link BUS_WAIT_CAUSE}. While no master takes the bus this costs nothing.
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
  /** Times the bus was taken. */
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

  /** Picoseconds the bus has been held from the beginning up to `nowPs`, the present instant. */
  heldPsAt(nowPs: Picoseconds): number {
    return this.isHeld ? this.#heldPs + nowPs - this.#sincePs : this.#heldPs;
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#sincePs -= ps;
  }

  /** @throws InvariantError when a master has it */
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

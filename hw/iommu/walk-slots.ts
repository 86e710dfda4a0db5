/**
 * The page walker's slots: a walk occupies one for its duration, and a miss that finds none free waits for the one that
 * is free first.
 */
import type { Picoseconds } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';

export class WalkSlots {
  readonly #walkPs: Picoseconds;
  /** Instant from which each slot is free. */
  readonly #freePs: Float64Array;

  /**
   * @param count walks at a time
   * @param walkPs duration of a walk
   */
  constructor(count: number, walkPs: Picoseconds) {
    this.#walkPs = walkPs;
    this.#freePs = new Float64Array(count);
  }

  /** Takes a slot for a walk that is wanted now. @returns time until the walk has ended */
  take(nowPs: Picoseconds): Picoseconds {
    const slots = this.#freePs;
    let first = 0;
    for (let slot = 1; slot < slots.length; slot++) if (slots[slot]! < slots[first]!) first = slot;
    const endPs = Math.max(nowPs, slots[first]!) + this.#walkPs;
    slots[first] = endPs;
    return endPs - nowPs;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (let slot = 0; slot < this.#freePs.length; slot++) this.#freePs[slot]! -= ps;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { slotsFreePs: [...this.#freePs] };
  }

  reset(): void {
    this.#freePs.fill(0);
  }
}

/**
 * Watching without disturbing. A hook point is a field that is undefined unless someone watches, so that a point
 * costs one comparison when off:
 *
 *     traced: TraceHook | undefined;                       // the field, named after what happens
 *     this.traced?.(nowPs, WQE_FETCHED, qpNumber, index);  // the point
 *
 * A ring keeps the last entries of any number of hook points, in the order of their calls, in bounded memory.
 * Watching never changes what is watched: hooks return nothing and are given numbers only.
 */

import { assertPowerOfTwo, InvariantError, type Picoseconds } from '../base/index.ts';

/** Called at a hook point: the instant in picoseconds, what happened, and two numbers about it. */
export type TraceHook = (instantPs: Picoseconds, what: number, a: number, b: number) => void;

export interface TraceEntry {
  readonly instantPs: Picoseconds;
  /** Name of what happened. */
  readonly what: string;
  readonly a: number;
  readonly b: number;
}

const FIELD_COUNT = 4;

export class TraceRing {
  readonly capacity: number;
  /** Entries written so far, those that were overwritten included. */
  writtenCount = 0;
  readonly #names: string[] = [];
  readonly #fields: Float64Array;

  /** @param capacity entries kept: a power of two */
  constructor(capacity: number) {
    this.capacity = assertPowerOfTwo('capacity of a trace ring', capacity);
    this.#fields = new Float64Array(capacity * FIELD_COUNT);
  }

  /** Gives a number to a name, for use as a hook point's `what`. The same name has the same number. */
  numberOf(name: string): number {
    const known = this.#names.indexOf(name);
    if (known >= 0) return known;
    return this.#names.push(name) - 1;
  }

  /** The hook that writes into this ring. */
  readonly hook: TraceHook = (instantPs, what, a, b) => {
    const at = (this.writtenCount & (this.capacity - 1)) * FIELD_COUNT;
    this.#fields[at] = instantPs;
    this.#fields[at + 1] = what;
    this.#fields[at + 2] = a;
    this.#fields[at + 3] = b;
    this.writtenCount++;
  };

  /** Entries lost because the ring was full. */
  get droppedCount(): number {
    return Math.max(0, this.writtenCount - this.capacity);
  }

  /** The entries kept, oldest first. */
  *entries(): Generator<TraceEntry> {
    for (let count = this.droppedCount; count < this.writtenCount; count++) {
      const at = (count & (this.capacity - 1)) * FIELD_COUNT;
      const what = this.#names[this.#fields[at + 1]!];
      if (what === undefined)
        throw new InvariantError('what of a trace entry', this.#fields[at + 1], 'a given number');
      yield { instantPs: this.#fields[at]!, what, a: this.#fields[at + 2]!, b: this.#fields[at + 3]! };
    }
  }
}

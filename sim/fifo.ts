/**
 * A bounded fifo between two stages of a clock domain: a register file with a write and a read pointer.
 *
 * Each entry is one number (usually the index of a slot elsewhere) and the cycle from which it can be seen.
 * Pushing into a full fifo is a mistake of the pushing stage, which asks {@link Fifo.isFull} first and stalls.
 */
export class Fifo {
  readonly capacity: number;
  /** Entries held. */
  count = 0;
  /** Cycle from which the oldest entry can be seen, or Infinity when there is none. */
  headCycle = Number.POSITIVE_INFINITY;
  /** Most entries held at once so far. */
  highWater = 0;
  readonly #values: Float64Array;
  readonly #visibleCycles: Float64Array;
  #head = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#values = new Float64Array(capacity);
    this.#visibleCycles = new Float64Array(capacity);
  }

  get isFull(): boolean {
    return this.count === this.capacity;
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /** The oldest entry. The caller has checked that there is one. */
  get head(): number {
    return this.#values[this.#head]!;
  }

  /**
   * Appends `value`, visible from `visibleCycle` on.
   * @throws RangeError when the fifo is full: a stage that pushes must stall first
   */
  push(value: number, visibleCycle: number): void {
    const count = this.count;
    if (count === this.capacity) throw new RangeError(`push into a full fifo of ${this.capacity}`);
    let tail = this.#head + count;
    if (tail >= this.capacity) tail -= this.capacity;
    this.#values[tail] = value;
    this.#visibleCycles[tail] = visibleCycle;
    if (count === 0) this.headCycle = visibleCycle;
    if (count >= this.highWater) this.highWater = count + 1;
    this.count = count + 1;
  }

  /** Removes and returns the oldest entry. */
  pop(): number {
    const value = this.#values[this.#head]!;
    const head = this.#head + 1 === this.capacity ? 0 : this.#head + 1;
    this.#head = head;
    this.headCycle = --this.count === 0 ? Number.POSITIVE_INFINITY : this.#visibleCycles[head]!;
    return value;
  }

  /** Forgets all entries. */
  clear(): void {
    this.#head = 0;
    this.count = 0;
    this.headCycle = Number.POSITIVE_INFINITY;
  }
}

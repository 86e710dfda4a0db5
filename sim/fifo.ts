/**
 * A bounded fifo between two stages of a clock domain: a register file with a write and a read pointer.
 *
 * Each entry is one number (usually the index of a slot elsewhere) and the cycle from which it can be seen. The oldest
 * stands in fields, and only those behind it in the ring: most fifos hold one entry at a time.
 * Pushing into a full fifo is a mistake of the pushing stage, which asks {@link Fifo.isFull} first and stalls. So each fifo
 * declares how many entries it has, and what happens when they are taken.
 */
import type { Cycles } from '../base/units.ts';

const NEVER = Number.POSITIVE_INFINITY;

export interface FifoConfig {
  readonly name: string;
  /** At least 1. */
  readonly capacity: number;
  /** The back-pressure: what the pushing stage does instead; or why a full fifo is never pushed into. */
  readonly whenFull: string;
}

export class Fifo {
  readonly name: string;
  readonly whenFull: string;
  capacity: number;
  /** Entries held. */
  count = 0;
  /** The oldest entry. The caller has checked that there is one. */
  head = 0;
  /** Cycle from which the oldest entry can be seen, or Infinity when there is none. */
  headCycle = NEVER;
  /** The entries behind the oldest one, from {@link #ringHead} on, wherever that is when there are none. Values are 32-bit integers. */
  #values: number[];
  #cycles: Float64Array;
  #ringHead = 0;

  constructor({ name, capacity, whenFull }: FifoConfig) {
    this.name = name;
    this.whenFull = whenFull;
    this.capacity = capacity;
    this.#values = new Array<number>(capacity).fill(0);
    this.#cycles = new Float64Array(capacity);
  }

  /** Has room for more entries from now on: there are more objects that may stand here. */
  enlarge(capacity: number): void {
    const { count, headCycle } = this;
    const { name, whenFull } = this;
    const wider = new Fifo({ name, capacity, whenFull });
    for (const { value, cycle } of this.#entries()) wider.push(value, cycle);
    this.capacity = capacity;
    this.#values = wider.#values;
    this.#cycles = wider.#cycles;
    this.#ringHead = wider.#ringHead;
    this.count = count;
    this.headCycle = headCycle;
  }

  /** The entries held, the oldest first: see Block.inspect. */
  get values(): readonly number[] {
    return this.#entries().map(({ value }) => value);
  }

  get isFull(): boolean {
    return this.count === this.capacity;
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /**
   * Appends `value`, visible from `visibleCycle` on.
   * @throws RangeError when the fifo is full: a stage that pushes must stall first
   */
  push(value: number, visibleCycle: Cycles): void {
    if (this.count === 0) {
      this.head = value;
      this.headCycle = visibleCycle;
      this.count = 1;
    } else {
      this.#pushToRing(value, visibleCycle);
    }
  }

  /** Removes and returns the oldest entry. */
  pop(): number {
    const value = this.head;
    if (this.count === 1) this.clear();
    else this.#advance();
    return value;
  }

  /** Forgets all entries. */
  clear(): void {
    this.count = 0;
    this.headCycle = NEVER;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: Cycles): void {
    this.headCycle -= cycles;
    for (let place = 0; place < this.capacity; place++) this.#cycles[place] = this.#cycles[place]! - cycles;
  }

  /** All entries, the oldest first. */
  #entries(): { value: number; cycle: Cycles }[] {
    return Array.from({ length: this.count }, (_, index) => {
      if (index === 0) return { value: this.head, cycle: this.headCycle };
      const at = (this.#ringHead + index - 1) % this.capacity;
      return { value: this.#values[at]!, cycle: this.#cycles[at]! };
    });
  }

  #pushToRing(value: number, visibleCycle: Cycles): void {
    const { count, capacity } = this;
    if (count === capacity)
      throw new RangeError(
        `push into a full fifo: ${this.name} has ${capacity} place${capacity === 1 ? '' : 's'}`,
      );
    let tail = this.#ringHead + count - 1;
    if (tail >= capacity) tail -= capacity;
    this.#values[tail] = value;
    this.#cycles[tail] = visibleCycle;
    this.count = count + 1;
  }

  /** The entry behind the oldest one takes its place. */
  #advance(): void {
    const next = this.#ringHead;
    this.head = this.#values[next]!;
    this.headCycle = this.#cycles[next]!;
    this.#ringHead = next + 1 === this.capacity ? 0 : next + 1;
    this.count--;
  }
}

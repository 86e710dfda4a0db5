/**
 * A bounded fifo between two stages of a clock domain: a register file with a write and a read pointer.
 *
 * Each entry is one number (usually the index of a slot elsewhere) and the cycle from which it can be seen. The oldest
 * stands in fields, and only those behind it in the ring: most fifos hold one entry at a time. So the ring begins small and
 * doubles when it is full: fifos with a place for each of 100,000 QPs stay as short as what they ever held.
 * Pushing into a full fifo is a mistake of the pushing stage, which asks {@link Fifo.isFull} first and stalls. So each fifo
 * declares how many entries it has, and what happens when they are taken.
 */
import { type Cycles, NEVER } from '../base/index.ts';

const FIRST_PLACES = 64;

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
  /** Places of the ring, fewer than the capacity. */
  #places: number;
  #ringHead = 0;

  constructor({ name, capacity, whenFull }: FifoConfig) {
    this.name = name;
    this.whenFull = whenFull;
    this.capacity = capacity;
    this.#places = Math.min(FIRST_PLACES, capacity - 1);
    this.#values = new Array<number>(this.#places).fill(0);
    this.#cycles = new Float64Array(this.#places);
  }

  /** Has room for more entries from now on: there are more objects that may stand here. */
  enlarge(capacity: number): void {
    this.capacity = capacity;
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
    for (let place = 0; place < this.#places; place++) this.#cycles[place] = this.#cycles[place]! - cycles;
  }

  /** All entries, the oldest first. */
  #entries(): { value: number; cycle: Cycles }[] {
    return Array.from({ length: this.count }, (_, index) => {
      if (index === 0) return { value: this.head, cycle: this.headCycle };
      const at = (this.#ringHead + index - 1) % this.#places;
      return { value: this.#values[at]!, cycle: this.#cycles[at]! };
    });
  }

  #pushToRing(value: number, visibleCycle: Cycles): void {
    const { count } = this;
    if (count > this.#places) this.#makeRoom();
    let tail = this.#ringHead + count - 1;
    if (tail >= this.#places) tail -= this.#places;
    this.#values[tail] = value;
    this.#cycles[tail] = visibleCycle;
    this.count = count + 1;
  }

  /** The ring is full: twice the places, if the fifo has as many. */
  #makeRoom(): void {
    const { capacity } = this;
    if (this.count === capacity)
      throw new RangeError(
        `push into a full fifo: ${this.name} has ${capacity} place${capacity === 1 ? '' : 's'}`,
      );
    const behind = this.#entries().slice(1);
    this.#places = Math.min(2 * this.#places + 1, capacity - 1);
    this.#values = new Array<number>(this.#places).fill(0);
    this.#cycles = new Float64Array(this.#places);
    this.#ringHead = 0;
    for (const [place, { value, cycle }] of behind.entries()) {
      this.#values[place] = value;
      this.#cycles[place] = cycle;
    }
  }

  /** The entry behind the oldest one takes its place. */
  #advance(): void {
    const next = this.#ringHead;
    this.head = this.#values[next]!;
    this.headCycle = this.#cycles[next]!;
    this.#ringHead = next + 1 === this.#places ? 0 : next + 1;
    this.count--;
  }
}

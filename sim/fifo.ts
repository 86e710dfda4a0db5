/**
 * A bounded fifo between two stages of a clock domain: a register file with a write and a read pointer.
 *
 * Each entry is one number (usually the index of a slot elsewhere) and the cycle from which it can be seen. The oldest entry is
 * held in fields, and only later ones in the ring: most fifos hold one entry at a time. The ring begins small and doubles when
 * it is full, so a fifo with a capacity of 100,000 QPs stays as short as its highest level. Pushing into a full fifo is an
 * error of the pushing stage, which must check {@link Fifo.isFull} first and stall. So each fifo declares its capacity, and
 * what happens when it is full.
 */
import { type Cycles, NEVER } from '../base/index.ts';

const FIRST_PLACES = 64;

export interface FifoConfig {
  readonly name: string;
  /** Capacity, at least 1. */
  readonly capacity: number;
  /**
   * Back-pressure: the pushing stage's behaviour when the fifo is full, or the reason why it never pushes into a full
   * one.
   */
  readonly whenFull: string;
}

export class Fifo {
  readonly name: string;
  readonly whenFull: string;
  capacity: number;
  /** Entries held. */
  count = 0;
  /** The oldest entry. The caller has checked that the fifo is not empty. */
  head = 0;
  /** Cycle from which the oldest entry can be seen, or Infinity if the fifo is empty. */
  headCycle = NEVER;
  /**
   * The entries after the oldest one, from {@link #ringHead} on; the head's position has no meaning if there are none. Values
   * are 32-bit integers.
   */
  #values: number[];
  #cycles: Float64Array;
  /** Slots of the ring, fewer than the capacity. */
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

  /** Raises the capacity: more objects may be queued from now on. */
  enlarge(capacity: number): void {
    this.capacity = capacity;
  }

  /** The entries held, oldest first: see Block.inspect. */
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
   * @throws RangeError if the fifo is full: the pushing stage must stall instead
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

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: Cycles): void {
    this.headCycle -= cycles;
    for (let place = 0; place < this.#places; place++) this.#cycles[place] = this.#cycles[place]! - cycles;
  }

  /** All entries, oldest first. */
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

  /** The ring is full: doubles its slots, up to the capacity. */
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

  /** The entry after the oldest one replaces it. */
  #advance(): void {
    const next = this.#ringHead;
    this.head = this.#values[next]!;
    this.headCycle = this.#cycles[next]!;
    this.#ringHead = next + 1 === this.#places ? 0 : next + 1;
    this.count--;
  }
}

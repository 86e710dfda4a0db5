/**
 * The fifo of events that wait to be written: EQEs as bytes, each with its EQ. An entry is taken when its write is
 * requested or it is dropped, and released, in order, when its bytes have left: until then the write engine reads them
 * here.
 */

import { type Cycles, viewOf } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import type { EventFormat } from '../host-interface/index.ts';

export class EventFifo {
  readonly depth: number;
  /** Entries of {@link EventFormat.entryBytes} bytes. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly #format: EventFormat;
  readonly #entryBytes: number;
  readonly #eqn: Int32Array;
  readonly #visibleCycle: Float64Array;
  /** 1 for entries that may be released as soon as those in front of them are. */
  readonly #isDone: Uint8Array;
  /** Counters that run freely over the entries. */
  #pushed = 0;
  #taken = 0;
  #released = 0;

  constructor(depth: number, format: EventFormat) {
    this.depth = depth;
    this.#format = format;
    this.#entryBytes = format.entryBytes;
    this.bytes = new Uint8Array(depth * this.#entryBytes);
    this.view = viewOf(this.bytes);
    this.#eqn = new Int32Array(depth);
    this.#visibleCycle = new Float64Array(depth);
    this.#isDone = new Uint8Array(depth);
  }

  get isFull(): boolean {
    return this.#pushed - this.#released >= this.depth;
  }

  get isEmpty(): boolean {
    return this.#pushed === this.#released;
  }

  /** Entries that have not left. */
  get heldCount(): number {
    return this.#pushed - this.#released;
  }

  /** True while an entry has not been taken. */
  get hasWaiting(): boolean {
    return this.#taken < this.#pushed;
  }

  /** True when the bytes of all entries taken have left. */
  get hasAllLeft(): boolean {
    return this.#released === this.#taken;
  }

  /** The oldest entry that has not been taken. */
  get head(): number {
    return this.#taken % this.depth;
  }

  eqnOf(entry: number): number {
    return this.#eqn[entry]!;
  }

  /** Cycle from which the entry can be seen. */
  visibleCycle(entry: number): number {
    return this.#visibleCycle[entry]!;
  }

  /**
   * Appends a zeroed EQE with its type and returns its offset in {@link bytes}.
   * @throws RangeError when the fifo is full
   */
  push(eqn: number, type: number, subtype: number, visibleCycle: Cycles): number {
    if (this.isFull) throw new RangeError(`post into a full event fifo of ${this.depth}`);
    const entry = this.#pushed % this.depth;
    const base = entry * this.#entryBytes;
    this.#pushed++;
    this.bytes.fill(0, base, base + this.#entryBytes);
    this.#format.begin(this.view, base, type, subtype);
    this.#eqn[entry] = eqn;
    this.#isDone[entry] = 0;
    this.#visibleCycle[entry] = visibleCycle;
    return base;
  }

  /** Returns the entries held, oldest first: the EQ, the type of the event, and its progress. See Block.inspect. */
  inspect(): BlockState[] {
    return Array.from({ length: this.heldCount }, (_, index) => {
      const at = this.#released + index;
      const entry = at % this.depth;
      return {
        eqn: this.#eqn[entry]!,
        type: this.#format.typeAt(this.view, entry * this.#entryBytes),
        isTaken: at < this.#taken,
        isDone: this.#isDone[entry] === 1,
      };
    });
  }

  take(): void {
    this.#taken++;
  }

  /**
   * Releases entries in order: a dropped one waits for entries in front of it that are being written. Returns true if
   * the fifo was full.
   */
  release(entry: number): boolean {
    const wasFull = this.isFull;
    this.#isDone[entry] = 1;
    while (this.#released < this.#taken && this.#isDone[this.#released % this.depth] === 1) this.#released++;
    return wasFull && !this.isFull;
  }

  /** True while an event for the EQ is here. */
  holds(eqn: number): boolean {
    for (let at = this.#released; at < this.#pushed; at++)
      if (this.#eqn[at % this.depth] === eqn) return true;
    return false;
  }

  /**
   * Returns whether the EQE of any held entry, at some offset in {@link bytes}, passes the test.
   */
  some(test: (base: number) => boolean): boolean {
    for (let at = this.#released; at < this.#pushed; at++)
      if (test((at % this.depth) * this.#entryBytes)) return true;
    return false;
  }

  /**
   * Rewinds entries whose bytes have not left, and dropped entries after them, so that they wait again. Returns the EQ
   * of each entry of the first kind (an EQ appears once per entry) and the number of dropped entries.
   */
  takeBack(): { readonly eqns: readonly number[]; readonly droppedCount: number } {
    const eqns: number[] = [];
    const takenCount = this.#taken - this.#released;
    for (let at = this.#released; at < this.#taken; at++) {
      const entry = at % this.depth;
      if (this.#isDone[entry] === 0) eqns.push(this.#eqn[entry]!);
      this.#isDone[entry] = 0;
    }
    this.#taken = this.#released;
    return { eqns, droppedCount: takenCount - eqns.length };
  }

  clear(): void {
    this.#pushed = 0;
    this.#taken = 0;
    this.#released = 0;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (let entry = 0; entry < this.#visibleCycle.length; entry++)
      this.#visibleCycle[entry] = this.#visibleCycle[entry]! - cycles;
  }
}

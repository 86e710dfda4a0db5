/**
 * Object numbers: those in use, and the next ones. One allocator per table (QPN, CQN, SRQN, PD, MPT slot, UAR).
 *
 * As in Linux, a number may carry *generation* bits above the table's index, so that a stale number or key of a dead object is
 * distinct from its successor's. They advance when the search wraps, and with `reuse: 'first'` at every release:
 *
 *   number  | generation | index |      index < count, a power of two; the mask gives the total number of bits
 *
 * Promises: a number is never handed out twice while taken; releasing a number that is not taken is refused; `taken`
 * counts exactly. The search costs one step per 32 numbers.
 */
import { InvariantError } from '../base/index.ts';

export interface NumberRange {
  /** Name of the numbers, for messages. */
  readonly name: string;
  /** Indices 0 … count − 1; a power of two. */
  readonly count: number;
  /** Indices below this, and from `end` on, are never handed out. */
  readonly reserved: number;
  readonly end: number;
  /** Bits of a number, as a mask of at least count − 1; the surplus is the generation. */
  readonly mask: number;
  /** `first`: a released index is the next to be taken. `roundRobin`: the search continues, so an index is reused late. */
  readonly reuse: 'first' | 'roundRobin';
}

export class NumberAllocator {
  readonly range: NumberRange;
  private readonly words: Uint32Array;
  private next: number;
  private generation = 0;
  private takenCount = 0;

  constructor(range: NumberRange) {
    this.range = range;
    this.words = new Uint32Array(Math.ceil(range.count / 32));
    this.next = range.reserved;
  }

  /** Numbers handed out and not yet released. */
  get taken(): number {
    return this.takenCount;
  }

  /** Numbers that can be taken at once. */
  get available(): number {
    return this.range.end - this.range.reserved;
  }

  /** @returns a number, or -1 when all are taken */
  allocate(): number {
    let index = this.findFree(this.next, this.range.end);
    if (index < 0) {
      this.bumpGeneration();
      index = this.findFree(this.range.reserved, this.next);
    }
    if (index < 0) return -1;
    this.words[index >>> 5]! |= 1 << (index & 31);
    this.takenCount++;
    const number = (index + this.generation) >>> 0;
    this.next = index + 1;
    if (this.next === this.range.end) {
      this.next = this.range.reserved;
      this.bumpGeneration();
    }
    return number;
  }

  /** Reserves a given free number, so that no other object gets it. */
  take(number: number): void {
    const index = number & (this.range.count - 1);
    if (this.isTaken(index)) throw new InvariantError(`${this.range.name} to take`, number, 'free');
    this.words[index >>> 5]! |= 1 << (index & 31);
    this.takenCount++;
  }

  release(number: number): void {
    const index = number & (this.range.count - 1);
    if (!this.isTaken(index)) throw new InvariantError(`${this.range.name} to release`, number, 'taken');
    this.words[index >>> 5]! &= ~(1 << (index & 31));
    this.takenCount--;
    if (this.range.reuse === 'first') {
      this.next = Math.min(this.next, index);
      this.bumpGeneration();
    }
  }

  private isTaken(index: number): boolean {
    return ((this.words[index >>> 5]! >>> (index & 31)) & 1) === 1;
  }

  private bumpGeneration(): void {
    this.generation = ((this.generation + this.range.count) & this.range.mask) >>> 0;
  }

  private findFree(from: number, to: number): number {
    let index = from;
    while (index < to) {
      const free = ~this.words[index >>> 5]! >>> (index & 31);
      if (free !== 0) {
        const found = index + 31 - Math.clz32(free & -free);
        return found < to ? found : -1;
      }
      index = (index | 31) + 1;
    }
    return -1;
  }
}

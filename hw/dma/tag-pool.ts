/**
 * The tags of memory reads in flight, and when they run into their completion timeout.
 *
 *     free ──issue──▶ active ──last completion──▶ free ◀── last completion, or a (further) timeout ──┐
 *                       │ timeout                                                                  │
 *                       ├─────────▶ expired ───────────────────────────────────────────────────────┤
 *                       └─ reset ─▶ abandoned ─────────────────────────────────────────────────────┘
 *
 * Promises: a tag is not used again while completions of its former read may still come; of the free tags the one
 * idle longest is used next. Deadlines are not kept in order: a search finds the next one, once in a timeout.
 */
import type { Cycles, Wide } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';
import type { ReadRequest } from './read-queue.ts';

export const TAG_FREE = 0;
export const TAG_ACTIVE = 1;
/** Timed out: what still comes is unexpected. */
const TAG_EXPIRED = 2;
/** In flight at a reset: what still comes is discarded silently (PCIe Base 3.0, 6.6.2). */
export const TAG_ABANDONED = 3;

const NOTHING_ARRIVED: ReadonlyMap<number, number> = new Map();

/** A tag, and the memory read that has it. */
export class ReadTag {
  readonly number: number;
  state = TAG_FREE;
  /** Cycle at which its present state runs out, and how many tags had entered theirs before. */
  deadlineCycle: Wide = 0;
  age = 0;
  /** The request that the read is part of. */
  request: ReadRequest | undefined = undefined;
  /** Where the next completion's bytes go, and how many are still to come. */
  sramOffset = 0;
  remainingBytes = 0;
  /** Of a free tag: the one that is used next after it. */
  nextFree: ReadTag;

  constructor(number: number) {
    this.number = number;
    this.nextFree = this;
  }
}

export class TagPool {
  readonly tags: readonly ReadTag[];
  /** Tags not free, and most of them at once so far. */
  takenCount = 0;
  highWater = 0;

  /** Free tags below the limit, the one idle longest first. */
  #firstFree: ReadTag;
  #lastFree: ReadTag;
  #freeCount = 0;
  #limit: number;
  #age = 0;
  readonly #noTag = new ReadTag(-1);

  constructor(tagCount: number) {
    this.tags = Array.from({ length: tagCount }, (_, number) => new ReadTag(number));
    this.#limit = tagCount;
    this.#firstFree = this.tags[0]!;
    this.#lastFree = this.tags[0]!;
    this.#gatherFree();
  }

  /** Free tags with numbers below `limit`. */
  freeCountBelow(limit: number): number {
    if (limit !== this.#limit) {
      this.#limit = limit;
      this.#gatherFree();
    }
    return this.#freeCount;
  }

  /** The tag of this number; of a number that no tag has: one that is always free. */
  tagOf(number: number): ReadTag {
    return number >= 0 && number < this.tags.length ? this.tags[number]! : this.#noTag;
  }

  /** The tag in use whose state runs out first, of several the one longest in it; undefined when all are free. */
  nextToExpire(): ReadTag | undefined {
    let next: ReadTag | undefined;
    for (const tag of this.tags) {
      if (tag.state !== TAG_FREE && (next === undefined || isBefore(tag, next))) next = tag;
    }
    return next;
  }

  /** Takes a free tag, of which the caller has checked that there is one. */
  take(deadlineCycle: Cycles): ReadTag {
    const tag = this.#firstFree;
    this.#firstFree = tag.nextFree;
    this.#freeCount--;
    const takenCount = this.takenCount + 1;
    this.takenCount = takenCount;
    if (takenCount > this.highWater) this.highWater = takenCount;
    this.#enter(tag, TAG_ACTIVE, deadlineCycle);
    return tag;
  }

  release(tag: ReadTag): void {
    tag.state = TAG_FREE;
    this.takenCount--;
    if (tag.number < this.#limit) this.#appendFree(tag);
  }

  /** The read has timed out: its completions, should they still come, are waited for until `deadlineCycle`. */
  expire(tag: ReadTag, deadlineCycle: Cycles): void {
    this.#enter(tag, TAG_EXPIRED, deadlineCycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const tag of this.tags) tag.deadlineCycle -= cycles;
  }

  /**
   * Reset: every read in flight is waited for until its timeout, and its answer is dropped. The free tags are used in the order
   * of their numbers again, as after power-on.
   */
  abandonAll(): void {
    for (const tag of this.tags) {
      if (tag.state !== TAG_FREE) tag.state = TAG_ABANDONED;
    }
    this.#gatherFree();
  }

  /**
   * See Block.inspect: the tags of which something is still to come, and how much.
   * @param arrivedBytes by tag: what has come of it and was not taken yet
   */
  inspect(arrivedBytes: ReadonlyMap<number, number> = NOTHING_ARRIVED): BlockState {
    return Object.fromEntries(
      this.tags.flatMap(({ number, state, remainingBytes }) => {
        const bytesToCome = remainingBytes - (arrivedBytes.get(number) ?? 0);
        return state === TAG_FREE || bytesToCome <= 0 ? [] : [[number, { state, bytesToCome }]];
      }),
    );
  }

  #gatherFree(): void {
    this.#freeCount = 0;
    for (const tag of this.tags) {
      if (tag.state === TAG_FREE && tag.number < this.#limit) this.#appendFree(tag);
    }
  }

  #appendFree(tag: ReadTag): void {
    if (this.#freeCount++ === 0) this.#firstFree = tag;
    else this.#lastFree.nextFree = tag;
    this.#lastFree = tag;
  }

  #enter(tag: ReadTag, state: number, deadlineCycle: Cycles): void {
    tag.state = state;
    tag.deadlineCycle = deadlineCycle;
    tag.age = this.#age++;
  }
}

/** Whether a tag's state runs out before that of another. */
function isBefore(tag: ReadTag, other: ReadTag): boolean {
  return (
    tag.deadlineCycle < other.deadlineCycle ||
    (tag.deadlineCycle === other.deadlineCycle && tag.age < other.age)
  );
}

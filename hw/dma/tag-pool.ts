/**
 * The tags of memory reads in flight, and the age order in which they run into their completion timeout.
 *
 *     free ──issue──▶ active ──last completion──▶ free ◀── last completion, or a (further) timeout ──┐
 *                       │ timeout                                                                  │
 *                       ├─────────▶ expired ───────────────────────────────────────────────────────┤
 *                       └─ reset ─▶ abandoned ─────────────────────────────────────────────────────┘
 *
 * Promises: a tag is not used again while completions of its former read may still come; of the free tags the one
 * idle longest is used next. Tags in use are kept in the order of their deadlines (that of their age, unless software
 * changes the timeout), so one look tells when the next timeout is due.
 */
import type { ReadRequest } from './read-queue.ts';

export const TAG_FREE = 0;
export const TAG_ACTIVE = 1;
/** Timed out: what still comes is unexpected. */
export const TAG_EXPIRED = 2;
/** In flight at a reset: what still comes is discarded silently (PCIe Base 3.0, 6.6.2). */
export const TAG_ABANDONED = 3;

/** A tag, and the memory read that has it. */
export class ReadTag {
  readonly number: number;
  state = TAG_FREE;
  /** Cycle at which its present state runs out. */
  deadlineCycle: number;
  /** The request that the read is part of. */
  request: ReadRequest | undefined = undefined;
  /** Where the next completion's bytes go, and how many are still to come. */
  landingOffset = 0;
  remainingBytes = 0;
  /** Its neighbours in the ring of tags in use; of a free tag, `younger` is the next of the free ones. */
  older: ReadTag;
  younger: ReadTag;

  constructor(number: number, deadlineCycle: number) {
    this.number = number;
    this.deadlineCycle = deadlineCycle;
    this.older = this;
    this.younger = this;
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
  /** Closes the ring of tags in use: older than the oldest, younger than the youngest. */
  readonly #ends = new ReadTag(-1, Number.NEGATIVE_INFINITY);

  constructor(tagCount: number) {
    this.tags = Array.from({ length: tagCount }, (_, number) => new ReadTag(number, 0));
    this.#limit = tagCount;
    this.#firstFree = this.#ends;
    this.#lastFree = this.#ends;
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

  /** The tag of this number unless it is free, or no tag at all. */
  takenTag(number: number): ReadTag | undefined {
    if (number < 0 || number >= this.tags.length) return undefined;
    const tag = this.tags[number]!;
    return tag.state === TAG_FREE ? undefined : tag;
  }

  /** The tag in use whose state runs out first. The caller has checked that there is one. */
  get oldest(): ReadTag {
    return this.#ends.younger;
  }

  /** Cycle at which the first tag's state runs out, or Infinity when all tags are free. */
  get nextDeadlineCycle(): number {
    return this.takenCount === 0 ? Number.POSITIVE_INFINITY : this.#ends.younger.deadlineCycle;
  }

  /** Takes a free tag, of which the caller has checked that there is one. */
  take(deadlineCycle: number): ReadTag {
    const tag = this.#firstFree;
    this.#firstFree = tag.younger;
    this.#freeCount--;
    const takenCount = this.takenCount + 1;
    this.takenCount = takenCount;
    if (takenCount > this.highWater) this.highWater = takenCount;
    tag.state = TAG_ACTIVE;
    this.#insert(tag, deadlineCycle);
    return tag;
  }

  release(tag: ReadTag): void {
    unlink(tag);
    tag.state = TAG_FREE;
    this.takenCount--;
    if (tag.number < this.#limit) this.#appendFree(tag);
  }

  /** The read has timed out: its completions, should they still come, are waited for until `deadlineCycle`. */
  expire(tag: ReadTag, deadlineCycle: number): void {
    unlink(tag);
    tag.state = TAG_EXPIRED;
    this.#insert(tag, deadlineCycle);
  }

  /** Reset: every read in flight is waited for until its timeout, and belongs to nobody. */
  abandonAll(): void {
    for (const tag of this.tags) {
      if (tag.state !== TAG_FREE) tag.state = TAG_ABANDONED;
    }
  }

  #gatherFree(): void {
    this.#freeCount = 0;
    for (const tag of this.tags) {
      if (tag.state === TAG_FREE && tag.number < this.#limit) this.#appendFree(tag);
    }
  }

  #appendFree(tag: ReadTag): void {
    if (this.#freeCount++ === 0) this.#firstFree = tag;
    else this.#lastFree.younger = tag;
    this.#lastFree = tag;
  }

  /** Puts a tag behind those with the same or an earlier deadline. */
  #insert(tag: ReadTag, deadlineCycle: number): void {
    let older = this.#ends.older;
    while (older.deadlineCycle > deadlineCycle) older = older.older;
    const younger = older.younger;
    tag.deadlineCycle = deadlineCycle;
    tag.older = older;
    tag.younger = younger;
    older.younger = tag;
    younger.older = tag;
  }
}

function unlink(tag: ReadTag): void {
  const { older, younger } = tag;
  older.younger = younger;
  younger.older = older;
}

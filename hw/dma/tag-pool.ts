/**
 * The tags of memory reads in flight, and when they run into their completion timeout.
 *
 *     free ──issue──▶ active ──last completion──▶ free ◀── last completion, or a (further) timeout ──┐
 *                       │ timeout                                                                  │
 *                       ├─────────▶ expired ───────────────────────────────────────────────────────┤
 *                       └─ reset ─▶ abandoned ─────────────────────────────────────────────────────┘
 *
 * Promises: a tag is not reused while completions of its former read may still arrive; the free tag that has been idle longest
 * is used next. Deadlines are not kept in order: a search finds the next one, once in a timeout.
 */
import type { Cycles, Wide } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';
import type { ReadRequest } from './read-queue.ts';

export const TAG_FREE = 0;
export const TAG_ACTIVE = 1;
/** Timed out: later completions are unexpected. */
const TAG_EXPIRED = 2;
/**
 * State of a tag whose read was in flight at a reset: later completions are discarded silently (PCIe Base 3.0, 6.6.2).
 */
export const TAG_ABANDONED = 3;

const NOTHING_ARRIVED: ReadonlyMap<number, number> = new Map();

/** A tag, and the memory read that has it. */
export class ReadTag {
  readonly number: number;
  state = TAG_FREE;
  /** Cycle at which its present state expires, and its position in the order of entry. */
  deadlineCycle: Wide = 0;
  age = 0;
  /** The request of the read. */
  request: ReadRequest | undefined = undefined;
  /** Destination of the next completion's bytes, and the number of bytes outstanding. */
  sramOffset = 0;
  remainingBytes = 0;
  /** The tag to use next after this one, if this one is free. */
  nextFree: ReadTag;

  constructor(number: number) {
    this.number = number;
    this.nextFree = this;
  }
}

export class TagPool {
  readonly tags: readonly ReadTag[];
  /** Tags in use, and their maximum so far. */
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

  /** The tag of this number; for a nonexistent number, a tag that is always free. */
  tagOf(number: number): ReadTag {
    return number >= 0 && number < this.tags.length ? this.tags[number]! : this.#noTag;
  }

  /** The tag in use whose state expires first, among equals the oldest; undefined if all are free. */
  nextToExpire(): ReadTag | undefined {
    let next: ReadTag | undefined;
    for (const tag of this.tags) {
      if (tag.state !== TAG_FREE && (next === undefined || isBefore(tag, next))) next = tag;
    }
    return next;
  }

  /** Takes a free tag; the caller has checked that one is free. */
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

  /** The read has timed out: late completions are awaited until `deadlineCycle`. */
  expire(tag: ReadTag, deadlineCycle: Cycles): void {
    this.#enter(tag, TAG_EXPIRED, deadlineCycle);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const tag of this.tags) tag.deadlineCycle -= cycles;
  }

  /**
   * Reset: every read in flight keeps its tag until its timeout, and its answer is dropped. Free tags are again used in
   * numerical order, as after power-on.
   */
  abandonAll(): void {
    for (const tag of this.tags) {
      if (tag.state !== TAG_FREE) tag.state = TAG_ABANDONED;
    }
    this.#gatherFree();
  }

  /**
   * See Block.inspect: the tags with outstanding completions, and their bytes.
   * @param arrivedBytes by tag: arrived bytes that were not taken yet
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

/** Whether a tag's state expires before that of another. */
function isBefore(tag: ReadTag, other: ReadTag): boolean {
  return (
    tag.deadlineCycle < other.deadlineCycle ||
    (tag.deadlineCycle === other.deadlineCycle && tag.age < other.age)
  );
}

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
export const TAG_FREE = 0;
export const TAG_ACTIVE = 1;
/** Timed out: what still comes is unexpected. */
export const TAG_EXPIRED = 2;
/** In flight at a reset: what still comes is discarded silently (PCIe Base 3.0, 6.6.2). */
export const TAG_ABANDONED = 3;

const NONE = -1;

export class TagPool {
  readonly tagCount: number;
  readonly state: Uint8Array;
  /** Cycle at which the tag's present state runs out. */
  readonly deadlineCycle: Float64Array;
  /** Requester and its fifo slot that the read belongs to. */
  readonly requester: Int32Array;
  readonly slot: Int32Array;
  /** Where the next completion's bytes go, and how many are still to come. */
  readonly landingOffset: Int32Array;
  readonly remainingBytes: Int32Array;
  /** Most tags out of the pool at once so far. */
  highWater = 0;

  /** Free tags below the limit, in a ring, the one idle longest first. */
  readonly #free: Int32Array;
  #freeHead = 0;
  #freeCount = 0;
  #limit: number;
  #takenCount = 0;
  readonly #older: Int32Array;
  readonly #younger: Int32Array;
  #oldest = NONE;
  #youngest = NONE;

  constructor(tagCount: number) {
    this.tagCount = tagCount;
    this.state = new Uint8Array(tagCount);
    this.deadlineCycle = new Float64Array(tagCount);
    this.requester = new Int32Array(tagCount);
    this.slot = new Int32Array(tagCount);
    this.landingOffset = new Int32Array(tagCount);
    this.remainingBytes = new Int32Array(tagCount);
    this.#free = new Int32Array(tagCount);
    this.#limit = tagCount;
    this.#gatherFree();
    this.#older = new Int32Array(tagCount).fill(NONE);
    this.#younger = new Int32Array(tagCount).fill(NONE);
  }

  /** Tags not free. */
  get takenCount(): number {
    return this.#takenCount;
  }

  /** Free tags with numbers below `limit`. */
  freeCountBelow(limit: number): number {
    if (limit !== this.#limit) {
      this.#limit = limit;
      this.#gatherFree();
    }
    return this.#freeCount;
  }

  /** Cycle at which the first tag's state runs out, or Infinity when all tags are free. */
  get nextDeadlineCycle(): number {
    return this.#oldest === NONE ? Number.POSITIVE_INFINITY : this.deadlineCycle[this.#oldest]!;
  }

  /** The tag of {@link nextDeadlineCycle}. */
  get oldestTag(): number {
    return this.#oldest;
  }

  /** Takes a free tag, of which the caller has checked that there is one. */
  take(deadlineCycle: number): number {
    const tag = this.#free[this.#freeHead]!;
    this.#freeHead = this.#freeHead + 1 === this.tagCount ? 0 : this.#freeHead + 1;
    this.#freeCount--;
    this.#takenCount++;
    if (this.#takenCount > this.highWater) this.highWater = this.#takenCount;
    this.state[tag] = TAG_ACTIVE;
    this.#insert(tag, deadlineCycle);
    return tag;
  }

  release(tag: number): void {
    this.#unlink(tag);
    this.state[tag] = TAG_FREE;
    this.#takenCount--;
    if (tag < this.#limit) this.#appendFree(tag);
  }

  /** The read has timed out: its completions, should they still come, are waited for until `deadlineCycle`. */
  expire(tag: number, deadlineCycle: number): void {
    this.#unlink(tag);
    this.state[tag] = TAG_EXPIRED;
    this.#insert(tag, deadlineCycle);
  }

  /** Reset: every read in flight is waited for until its timeout, and belongs to nobody. */
  abandonAll(): void {
    for (let tag = 0; tag < this.tagCount; tag++) {
      if (this.state[tag] !== TAG_FREE) this.state[tag] = TAG_ABANDONED;
    }
  }

  #gatherFree(): void {
    this.#freeHead = 0;
    this.#freeCount = 0;
    for (let tag = 0; tag < this.tagCount && tag < this.#limit; tag++) {
      if (this.state[tag] === TAG_FREE) this.#appendFree(tag);
    }
  }

  #appendFree(tag: number): void {
    let tail = this.#freeHead + this.#freeCount;
    if (tail >= this.tagCount) tail -= this.tagCount;
    this.#free[tail] = tag;
    this.#freeCount++;
  }

  /** Puts a tag behind those with the same or an earlier deadline. */
  #insert(tag: number, deadlineCycle: number): void {
    let older = this.#youngest;
    while (older !== NONE && this.deadlineCycle[older]! > deadlineCycle) older = this.#older[older]!;
    const younger = older === NONE ? this.#oldest : this.#younger[older]!;
    this.deadlineCycle[tag] = deadlineCycle;
    this.#older[tag] = older;
    this.#younger[tag] = younger;
    if (older === NONE) this.#oldest = tag;
    else this.#younger[older] = tag;
    if (younger === NONE) this.#youngest = tag;
    else this.#older[younger] = tag;
  }

  #unlink(tag: number): void {
    const older = this.#older[tag]!;
    const younger = this.#younger[tag]!;
    if (older === NONE) this.#oldest = younger;
    else this.#younger[older] = younger;
    if (younger === NONE) this.#youngest = older;
    else this.#older[younger] = older;
  }
}

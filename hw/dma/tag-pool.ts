/**
 * The tags of memory reads in flight, and the age order in which they run into their completion timeout.
 *
 *     free ──issue──▶ active ──last completion──▶ free
 *                       │ timeout, reset              ▲
 *                       ▼                             │
 *                  quarantined ──last completion, or a further timeout
 *
 * Promises: a tag is not used again while completions of its former read may still come; of the free tags the one
 * idle longest is used next. All timeouts are equal, so age order is deadline order and one look at the oldest tag
 * tells when the next timeout is due.
 */
export const TAG_FREE = 0;
export const TAG_ACTIVE = 1;
export const TAG_QUARANTINED = 2;

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

  readonly #free: Int32Array;
  #freeHead = 0;
  #freeCount: number;
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
    this.#free = Int32Array.from({ length: tagCount }, (_, tag) => tag);
    this.#freeCount = tagCount;
    this.#older = new Int32Array(tagCount).fill(NONE);
    this.#younger = new Int32Array(tagCount).fill(NONE);
  }

  get freeCount(): number {
    return this.#freeCount;
  }

  /** Cycle at which the oldest tag's state runs out, or Infinity when all tags are free. */
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
    const taken = this.tagCount - this.#freeCount;
    if (taken > this.highWater) this.highWater = taken;
    this.state[tag] = TAG_ACTIVE;
    this.#append(tag, deadlineCycle);
    return tag;
  }

  release(tag: number): void {
    this.#unlink(tag);
    this.state[tag] = TAG_FREE;
    let tail = this.#freeHead + this.#freeCount;
    if (tail >= this.tagCount) tail -= this.tagCount;
    this.#free[tail] = tag;
    this.#freeCount++;
  }

  /** The read has timed out: its completions, should they still come, are waited for until `deadlineCycle`. */
  quarantine(tag: number, deadlineCycle: number): void {
    this.#unlink(tag);
    this.state[tag] = TAG_QUARANTINED;
    this.#append(tag, deadlineCycle);
  }

  /** Reset: every read in flight is waited for until its timeout, and belongs to nobody. */
  quarantineAll(): void {
    for (let tag = 0; tag < this.tagCount; tag++) {
      if (this.state[tag] === TAG_ACTIVE) this.state[tag] = TAG_QUARANTINED;
    }
  }

  #append(tag: number, deadlineCycle: number): void {
    this.deadlineCycle[tag] = deadlineCycle;
    this.#older[tag] = this.#youngest;
    this.#younger[tag] = NONE;
    if (this.#youngest === NONE) this.#oldest = tag;
    else this.#younger[this.#youngest] = tag;
    this.#youngest = tag;
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

/**
 * A set-associative directory: it maps tags to lines, and selects the line that is evicted for a new tag. It holds no
 * data; a cache keeps its data in arrays indexed by line.
 */
import type { BlockState } from '../../../sim/index.ts';

export type ReplacementPolicy = 'lru' | 'fifo' | 'random';

/** Any value but 0, which the shift register never leaves. */
const LFSR_SEED = 0xace1;

export class SetAssociativeDirectory {
  readonly lineCount: number;
  readonly ways: number;
  evictionCount = 0;

  /** Tag of each line; -1 when empty. */
  readonly tags: Float64Array;
  readonly #setMask: number;
  readonly #isHashed: boolean;
  readonly #stamps: Float64Array;
  /** A line locked for the requester it was filled for: evicted last until it was used. */
  readonly #isLocked: Uint8Array;
  readonly #policy: ReplacementPolicy;
  /** Line touched last, which has the newest stamp and is not locked; -1 when another was placed since. */
  #newestLine = -1;
  /** Line found last: most accesses find the same one again. */
  #foundLine = 0;
  #clock = 0;
  #lfsr = LFSR_SEED;

  /**
   * @param lineCount a power of two; @param ways a power of two of at most lineCount; for a single set
   * (ways equal to lineCount) both may be any number.
   * @param isHashed whether a hash of the tag selects the set, not its low bits: sets fill unevenly, as for numbers at
   * random, so the cache declines before its lines are all used
   */
  constructor(lineCount: number, ways: number, policy: ReplacementPolicy, isHashed = false) {
    this.#isHashed = isHashed;
    this.lineCount = lineCount;
    this.ways = Math.min(ways, lineCount);
    this.#setMask = lineCount / this.ways - 1;
    this.tags = new Float64Array(lineCount).fill(-1);
    this.#stamps = new Float64Array(lineCount);
    this.#isLocked = new Uint8Array(lineCount);
    this.#policy = policy;
  }

  /** Returns the line that holds `tag`, or -1. Counts nothing, because a requester that retries repeats the call. */
  find(tag: number): number {
    const tags = this.tags;
    if (tags[this.#foundLine] === tag) return this.#foundLine;
    const first = this.#setOf(tag) * this.ways;
    for (let line = first; line < first + this.ways; line++) {
      if (tags[line] !== tag) continue;
      this.#foundLine = line;
      return line;
    }
    return -1;
  }

  #setOf(tag: number): number {
    return (this.#isHashed ? mixed(tag) : tag) & this.#setMask;
  }

  /** Notes a use of `line`. */
  touch(line: number): void {
    if (line === this.#newestLine) return;
    this.#newestLine = line;
    if (this.#policy === 'lru') this.#stamps[line] = ++this.#clock;
    this.#isLocked[line] = 0;
  }

  /** Line to evict for `tag`: an empty one of its set, else by policy, locked ones last. */
  victimFor(tag: number): number {
    const first = this.#setOf(tag) * this.ways;
    let unlocked = -1;
    let locked = first;
    for (let line = first; line < first + this.ways; line++) {
      if (this.tags[line] === -1) return line;
      if (this.#isLocked[line] === 1) {
        if (this.#stamps[line]! < this.#stamps[locked]!) locked = line;
      } else if (unlocked === -1 || this.#stamps[line]! < this.#stamps[unlocked]!) {
        unlocked = line;
      }
    }
    if (unlocked === -1) return locked;
    return this.#policy === 'random' ? this.#randomVictim(first, unlocked) : unlocked;
  }

  /** Puts `tag` into `line`, locked until its first {@link touch}. */
  place(line: number, tag: number): void {
    if (this.tags[line] !== -1) this.evictionCount++;
    this.#newestLine = -1;
    this.tags[line] = tag;
    this.#stamps[line] = ++this.#clock;
    this.#isLocked[line] = 1;
  }

  /** Empties a line. */
  clear(line: number): void {
    this.tags[line] = -1;
    this.#isLocked[line] = 0;
  }

  /** Reset: no tag, and no history by which a victim is chosen. */
  clearAll(): void {
    this.tags.fill(-1);
    this.#stamps.fill(0);
    this.#isLocked.fill(0);
    this.#newestLine = -1;
    this.#foundLine = 0;
    this.#clock = 0;
    this.#lfsr = LFSR_SEED;
  }

  /** Returns the tags by line, and the state that selects a victim. See Block.inspect. */
  inspect(): BlockState {
    const placed = [...this.tags.entries()].filter(([, tag]) => tag !== -1);
    return { tags: Object.fromEntries(placed), clock: this.#clock, shiftRegister: this.#lfsr };
  }

  /** A 16-bit Galois shift register, as hardware would use. */
  #randomVictim(first: number, fallback: number): number {
    this.#lfsr = (this.#lfsr >>> 1) ^ (-(this.#lfsr & 1) & 0xb400);
    const line = first + (this.#lfsr % this.ways);
    return this.#isLocked[line] === 1 ? fallback : line;
  }
}

/** Mixes all bits of a tag into the low ones: the finalizer of MurmurHash3 (32 bits). */
function mixed(tag: number): number {
  let bits = tag ^ (tag >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits ^= bits >>> 13;
  bits = Math.imul(bits, 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}

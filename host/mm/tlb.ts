/**
 * The TLB of one core: its translations, so that necessary walks are charged, and so that a page with a cached entry is not
 * seen as referenced until the entry is removed (x86 sets the accessed bit in the walk).
 *
 * Set-associative, least recently used in a set. Entries are tagged by address space (PCID), so that a context switch keeps
 * them. It caches rights, not addresses: the address is read from the page table, which shootdowns keep consistent.
 */
import { log2Exact } from '../../base/index.ts';

const noOwner = -1;
const hugePageShift = 9;

export class Tlb {
  readonly #ways: number;
  readonly #setMask: number;
  /**
   * Entries by way of a set: address space, page number (negative for huge pages), whether writes are known to be
   * allowed.
   */
  readonly #spaces: Int32Array;
  readonly #pages: Float64Array;
  readonly #isWritable: Uint8Array;
  readonly #usedAt: Float64Array;
  #clock = 0;

  constructor(entries: number, ways: number) {
    this.#ways = Math.min(ways, entries);
    this.#setMask = entries / this.#ways - 1;
    log2Exact(this.#setMask + 1);
    this.#spaces = new Int32Array(entries).fill(noOwner);
    this.#pages = new Float64Array(entries);
    this.#isWritable = new Uint8Array(entries);
    this.#usedAt = new Float64Array(entries);
  }

  /** Whether a page's translation is held, for this kind of access. */
  holds(space: number, page: number, isWrite: boolean): boolean {
    return this.#holds(space, page, isWrite) || this.#holds(space, hugeTag(page), isWrite);
  }

  /** Adds a translation, replacing the least recently used one of its set. */
  fill(space: number, page: number, isHuge: boolean, isWritable: boolean): void {
    const tag = isHuge ? hugeTag(page) : page;
    const found = this.#find(space, tag);
    let at = found;
    if (found < 0) {
      const first = this.#firstOf(tag);
      at = first;
      for (let way = first + 1; way < first + this.#ways; way++)
        if (this.#usedAt[way]! < this.#usedAt[at]!) at = way;
    }
    this.#spaces[at] = space;
    this.#pages[at] = tag;
    this.#isWritable[at] = isWritable ? 1 : 0;
    this.#usedAt[at] = ++this.#clock;
  }

  /** Forgets one page of an address space. */
  drop(space: number, page: number): void {
    for (const tag of [page, hugeTag(page)]) {
      const at = this.#find(space, tag);
      if (at >= 0) this.#forget(at);
    }
  }

  /** Forgets all pages of an address space. */
  dropSpace(space: number): void {
    for (let at = 0; at < this.#spaces.length; at++) if (this.#spaces[at] === space) this.#forget(at);
  }

  #holds(space: number, tag: number, isWrite: boolean): boolean {
    const at = this.#find(space, tag);
    if (at < 0 || (isWrite && this.#isWritable[at] === 0)) return false;
    this.#usedAt[at] = ++this.#clock;
    return true;
  }

  #find(space: number, tag: number): number {
    const first = this.#firstOf(tag);
    for (let at = first; at < first + this.#ways; at++)
      if (this.#pages[at] === tag && this.#spaces[at] === space) return at;
    return -1;
  }

  /** Page numbers have up to 36 bits; the low ones choose the set. */
  #firstOf(tag: number): number {
    return (Math.abs(tag) & this.#setMask) * this.#ways;
  }

  #forget(at: number): void {
    this.#spaces[at] = noOwner;
    this.#usedAt[at] = 0;
  }
}

/** Huge pages are stored under the negative of their number. */
const hugeTag = (page: number): number => -Math.floor(page / 2 ** hugePageShift);

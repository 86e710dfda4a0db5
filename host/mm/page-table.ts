/**
 * Page tables of one process: 4 KiB and 2 MiB entries, as x86-64 has them in its last two levels.
 *
 *     user address ── 2 MiB region number ──> directory ──┬─ 2 MiB entry
 *                                                         └─ table of 512 ── 4 KiB entry
 *
 * A present entry holds the physical (or bus) address and flags; a swap entry, which is not present, the number of a swap slot.
 * The directory covers the area from its base upwards and grows as needed. Pure bookkeeping: the memory manager tracks the
 * owners of frames.
 */
import { hugePageBytes, pageBytes, pageNumberOf, pagesPerHugePage } from './page.ts';

export const flagPresent = 1;
export const flagWritable = 2;
/** Device space, not memory: no frame belongs to it. */
export const flagDevice = 4;
/** Flag of a device page: write-combining instead of uncached. */
export const flagWriteCombining = 8;
/** Entry of a 2 MiB page. */
export const flagHuge = 16;
/** Set by the walk of an access, cleared by reclaim. */
export const flagAccessed = 32;
/** Set by the walk of a write. */
export const flagDirty = 64;
/** Flag of an entry that is not present: the page is in the swap slot whose number replaces its address. */
export const flagSwap = 128;

class LeafTable {
  readonly values = new Float64Array(pagesPerHugePage);
  readonly flags = new Uint8Array(pagesPerHugePage);
  usedCount = 0;
}

interface HugeEntry {
  readonly physical: number;
  flags: number;
}

export class PageTable {
  /** First address that the directory covers, a multiple of 2 MiB. */
  readonly base: number;
  readonly #directory: (LeafTable | HugeEntry | undefined)[] = [];

  constructor(base: number) {
    this.base = base;
  }

  /** Adds one present page; `flags` includes {@link flagHuge} for a 2 MiB page. It replaces the old entry. */
  set(address: number, physical: number, flags: number): void {
    if ((flags & flagHuge) === 0) this.#setLeaf(address, physical, flags | flagPresent);
    else this.#directory[this.#regionOf(address)] = { physical, flags: flags | flagPresent };
  }

  /** Records that the page is in a swap slot. */
  setSwap(address: number, slot: number): void {
    this.#setLeaf(address, slot, flagSwap);
  }

  /** Makes the regions of [start + stretchBytes, end) share the tables of [start, start + stretchBytes), repeatedly. */
  repeat(start: number, stretchBytes: number, end: number): void {
    const stretch = stretchBytes / hugePageBytes;
    const last = this.#regionOf(end - 1);
    for (let region = this.#regionOf(start) + stretch; region <= last; region++)
      this.#directory[region] = this.#directory[region - stretch];
  }

  /** Undoes {@link repeat}: only the first stretch keeps its tables. */
  endRepeat(start: number, stretchBytes: number, end: number): void {
    this.#directory.fill(undefined, this.#regionOf(start + stretchBytes), this.#regionOf(end - 1) + 1);
  }

  /** Removes the entry that covers `address`; a table without entries is removed, too. */
  clear(address: number): void {
    const region = this.#regionOf(address);
    const entry = this.#directory[region];
    if (!(entry instanceof LeafTable)) {
      this.#directory[region] = undefined;
      return;
    }
    const index = this.#indexOf(address);
    if (entry.flags[index] === 0) return;
    entry.flags[index] = 0;
    if (--entry.usedCount === 0) this.#directory[region] = undefined;
  }

  /** Flags of the entry that covers `address`; 0 without an entry. */
  flagsAt(address: number): number {
    const entry = this.#entryOf(address);
    if (entry === undefined) return 0;
    return entry instanceof LeafTable ? entry.flags[this.#indexOf(address)]! : entry.flags;
  }

  /** Replaces the flags of an entry that exists. */
  setFlags(address: number, flags: number): void {
    const entry = this.#entryOf(address);
    if (entry instanceof LeafTable) entry.flags[this.#indexOf(address)] = flags;
    else if (entry !== undefined) entry.flags = flags;
  }

  /** Physical address of `address`, or -1 when no page is present there. */
  translate(address: number): number {
    const entry = this.#entryOf(address);
    if (entry === undefined) return -1;
    if (!(entry instanceof LeafTable)) return entry.physical + (address % hugePageBytes);
    const index = this.#indexOf(address);
    if ((entry.flags[index]! & flagPresent) === 0) return -1;
    return entry.values[index]! + (address % pageBytes);
  }

  /** Swap slot of a swap entry. */
  slotAt(address: number): number {
    return (this.#entryOf(address) as LeafTable).values[this.#indexOf(address)]!;
  }

  /** Calls `visit` for every entry in [start, end), in order of address; `visit` may change or clear that entry. */
  forEach(start: number, end: number, visit: (address: number, value: number, flags: number) => void): void {
    const last = Math.min(this.#directory.length - 1, this.#regionOf(end - 1));
    for (let region = Math.max(0, this.#regionOf(start)); region <= last; region++) {
      const entry = this.#directory[region];
      if (entry === undefined) continue;
      const address = this.base + region * hugePageBytes;
      if (!(entry instanceof LeafTable)) {
        visit(address, entry.physical, entry.flags);
        continue;
      }
      const to = Math.min(pagesPerHugePage, Math.ceil((end - address) / pageBytes));
      for (let index = Math.max(0, Math.floor((start - address) / pageBytes)); index < to; index++) {
        if (entry.flags[index] === 0) continue;
        visit(address + index * pageBytes, entry.values[index]!, entry.flags[index]!);
      }
    }
  }

  #setLeaf(address: number, value: number, flags: number): void {
    const region = this.#regionOf(address);
    let leaf = this.#directory[region];
    if (!(leaf instanceof LeafTable)) {
      leaf = new LeafTable();
      this.#directory[region] = leaf;
    }
    const index = this.#indexOf(address);
    if (leaf.flags[index] === 0) leaf.usedCount++;
    leaf.values[index] = value;
    leaf.flags[index] = flags;
  }

  #entryOf(address: number): LeafTable | HugeEntry | undefined {
    return address < this.base ? undefined : this.#directory[this.#regionOf(address)];
  }

  #regionOf(address: number): number {
    return Math.floor((address - this.base) / hugePageBytes);
  }

  #indexOf(address: number): number {
    return pageNumberOf(address - this.base) % pagesPerHugePage;
  }
}

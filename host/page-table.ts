/**
 * Page tables of one process: 4 KiB and 2 MiB entries, as x86-64 has them in its last two levels.
 *
 *     user address ── 2 MiB region number ──> directory ──┬─ 2 MiB entry
 *                                                         └─ table of 512 ── 4 KiB entry
 *
 * An entry holds the physical (or bus) address and flags. The directory covers the area from its base upwards and
 * grows as needed. Pure bookkeeping: who owns the frames is the address space's business.
 */
import { hugePageBytes, pageBytes, pageNumberOf, pagesPerHugePage } from './page.ts';

export const flagPresent = 1;
export const flagWritable = 2;
/** Device space, not memory: no frame stands behind it. */
export const flagDevice = 4;
/** Of a device page: write-combining instead of uncached. */
export const flagWriteCombining = 8;
/** Entry of a 2 MiB page. */
export const flagHuge = 16;

class LeafTable {
  readonly physical = new Float64Array(pagesPerHugePage);
  readonly flags = new Uint8Array(pagesPerHugePage);
  presentCount = 0;
}

interface HugeEntry {
  readonly physical: number;
  readonly flags: number;
}

export class PageTable {
  /** First address that the directory covers, a multiple of 2 MiB. */
  readonly base: number;
  readonly #directory: (LeafTable | HugeEntry | undefined)[] = [];

  constructor(base: number) {
    this.base = base;
  }

  /** Enters one page; `flags` includes {@link flagHuge} for a 2 MiB page. It replaces what was there. */
  set(address: number, physical: number, flags: number): void {
    const region = this.#regionOf(address);
    if ((flags & flagHuge) !== 0) {
      this.#directory[region] = { physical, flags: flags | flagPresent };
      return;
    }
    let leaf = this.#directory[region];
    if (!(leaf instanceof LeafTable)) {
      leaf = new LeafTable();
      this.#directory[region] = leaf;
    }
    const index = this.#indexOf(address);
    if ((leaf.flags[index]! & flagPresent) === 0) leaf.presentCount++;
    leaf.physical[index] = physical;
    leaf.flags[index] = flags | flagPresent;
  }

  /** Removes the entry that covers `address`; a table without entries goes, too. */
  clear(address: number): void {
    const region = this.#regionOf(address);
    const entry = this.#directory[region];
    if (!(entry instanceof LeafTable)) {
      this.#directory[region] = undefined;
      return;
    }
    const index = this.#indexOf(address);
    if ((entry.flags[index]! & flagPresent) === 0) return;
    entry.flags[index] = 0;
    if (--entry.presentCount === 0) this.#directory[region] = undefined;
  }

  /** Flags of the entry that covers `address`; 0 when there is none. */
  flagsAt(address: number): number {
    const entry = address < this.base ? undefined : this.#directory[this.#regionOf(address)];
    if (entry === undefined) return 0;
    return entry instanceof LeafTable ? entry.flags[this.#indexOf(address)]! : entry.flags;
  }

  /** Physical address of `address`, or -1 when nothing is mapped there. */
  translate(address: number): number {
    const entry = address < this.base ? undefined : this.#directory[this.#regionOf(address)];
    if (entry === undefined) return -1;
    if (!(entry instanceof LeafTable)) return entry.physical + (address % hugePageBytes);
    const index = this.#indexOf(address);
    if ((entry.flags[index]! & flagPresent) === 0) return -1;
    return entry.physical[index]! + (address % pageBytes);
  }

  /** Calls `visit` for every entry, in order of address. */
  forEach(visit: (address: number, physical: number, flags: number) => void): void {
    for (let region = 0; region < this.#directory.length; region++) {
      const entry = this.#directory[region];
      if (entry === undefined) continue;
      const address = this.base + region * hugePageBytes;
      if (!(entry instanceof LeafTable)) {
        visit(address, entry.physical, entry.flags);
        continue;
      }
      for (let index = 0; index < pagesPerHugePage; index++) {
        if ((entry.flags[index]! & flagPresent) === 0) continue;
        visit(address + index * pageBytes, entry.physical[index]!, entry.flags[index]!);
      }
    }
  }

  #regionOf(address: number): number {
    return Math.floor((address - this.base) / hugePageBytes);
  }

  #indexOf(address: number): number {
    return pageNumberOf(address - this.base) % pagesPerHugePage;
  }
}

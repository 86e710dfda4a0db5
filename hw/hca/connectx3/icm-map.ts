/**
 * ICM: the device's flat context memory, lying in 4 KiB pages that the driver donates.
 *
 *   ICM address (device)            host
 *   0 ──┬ QPC ─┬ … ─┬ dMPT ─┬ MTT   page number ──> DMA address of the donated page, or none
 *       bases from INIT_HCA         a chunk of 2^n pages maps as 2^n pages
 *
 * Promises: MAP_ICM maps all of a mailbox or nothing; a page belongs to the device from MAP to UNMAP, and the counts of
 * donated pages (firmware area, auxiliary, ICM) equal the pages that the driver gets back. Looking up an address
 * allocates nothing. Sources: interface sheet 3.6, 3.10, 4.
 */

import { icmPageBytes } from '../../../abi/index.ts';
import type { ContextMemory } from '../memory/index.ts';

/** Tables that INIT_HCA places in ICM and whose entries the device addresses. */
export const icmTableNames = [
  'qpc',
  'auxc',
  'altc',
  'rdmarc',
  'srqc',
  'cqc',
  'eqc',
  'dmpt',
  'mtt',
  'mcg',
] as const;
export type IcmTable = (typeof icmTableNames)[number];

/** Position of a table as INIT_HCA set it. */
export interface IcmTablePlace {
  readonly base: number;
  readonly entryBytes: number;
  /** log2 of the number of entries. */
  readonly logEntries: number;
}

const NOT_MAPPED = -1;
/** Pages per leaf of the page directory: the 256 KiB of ICM that Linux maps at a time. */
const LEAF_PAGES = 64;
/** DMA addresses of a leaf's pages, or of the first page alone when they are contiguous. */
type Leaf = Float64Array | number;

export class IcmMap implements ContextMemory {
  /** Pages donated at this moment, by use. */
  firmwarePageCount = 0;
  auxiliaryPageCount = 0;
  mappedPageCount = 0;
  readonly #leaves = new Map<number, Leaf>();
  #lastLeafIndex = -1;
  #lastLeaf: Leaf | undefined;
  readonly #places = new Map<IcmTable, IcmTablePlace>();

  /**
   * Places the tables, as INIT_HCA does.
   * Entries beyond the table's count are addressable: the EQC mapping of the Linux driver runs past its region.
   */
  placeTables(places: Readonly<Record<IcmTable, IcmTablePlace>>): void {
    for (const name of icmTableNames) this.#places.set(name, places[name]);
  }

  /** Returns the position of a table; undefined before INIT_HCA sets it. */
  placeOf(table: IcmTable): IcmTablePlace | undefined {
    return this.#places.get(table);
  }

  /** CLOSE_HCA: forgets the positions of the tables; the pages stay mapped. */
  forgetTables(): void {
    this.#places.clear();
  }

  /** Reset: all pages belong to the host again. */
  reset(): void {
    this.forgetTables();
    this.#leaves.clear();
    this.#lastLeafIndex = -1;
    this.#lastLeaf = undefined;
    this.firmwarePageCount = 0;
    this.auxiliaryPageCount = 0;
    this.mappedPageCount = 0;
  }

  /** Maps `pageCount` pages from `icmAddress` on to consecutive host pages. The caller has checked that none is mapped. */
  map(icmAddress: number, dmaAddress: number, pageCount: number): void {
    this.#lastLeafIndex = -1;
    forEachLeaf(icmAddress, pageCount, (index, first, count, skipped) => {
      const address = dmaAddress + skipped * icmPageBytes;
      if (count === LEAF_PAGES) {
        this.#leaves.set(index, address);
        return;
      }
      const pages = this.#pagesOf(index);
      for (let page = 0; page < count; page++) pages[first + page] = address + page * icmPageBytes;
    });
    this.mappedPageCount += pageCount;
  }

  /**
   * Unmaps the mapped ones of `pageCount` pages: Linux unmaps whole chunks, also of tables that it mapped only in part.
   */
  unmap(icmAddress: number, pageCount: number): void {
    this.mappedPageCount -= this.mappedCountIn(icmAddress, pageCount);
    this.#lastLeafIndex = -1;
    forEachLeaf(icmAddress, pageCount, (index, first, count) => {
      if (!this.#leaves.has(index)) return;
      const pages = this.#pagesOf(index).fill(NOT_MAPPED, first, first + count);
      if (pages.every((address) => address === NOT_MAPPED)) this.#leaves.delete(index);
    });
  }

  /** Returns the number of mapped pages among `pageCount` pages from `icmAddress` on. */
  mappedCountIn(icmAddress: number, pageCount: number): number {
    let mapped = 0;
    forEachLeaf(icmAddress, pageCount, (index, first, count) => {
      const leaf = this.#leaves.get(index);
      if (typeof leaf === 'number') mapped += count;
      else if (leaf !== undefined)
        for (let page = 0; page < count; page++) if (leaf[first + page] !== NOT_MAPPED) mapped++;
    });
    return mapped;
  }

  /** DMA address of the byte at an ICM address, or -1 where no page is mapped. */
  physicalOf(icmAddress: number): number {
    const page = Math.floor(icmAddress / icmPageBytes);
    const leafIndex = Math.floor(page / LEAF_PAGES);
    if (leafIndex !== this.#lastLeafIndex) {
      this.#lastLeaf = this.#leaves.get(leafIndex);
      this.#lastLeafIndex = leafIndex;
    }
    const leaf = this.#lastLeaf;
    if (leaf === undefined) return NOT_MAPPED;
    if (typeof leaf === 'number') return leaf + (icmAddress - leafIndex * LEAF_PAGES * icmPageBytes);
    const pageAddress = leaf[page - leafIndex * LEAF_PAGES]!;
    return pageAddress === NOT_MAPPED ? NOT_MAPPED : pageAddress + (icmAddress - page * icmPageBytes);
  }

  /** DMA address of entry `number` (masked to the table) of a table, or -1: not placed or not mapped. */
  contextAddress(table: IcmTable, number: number): number {
    const place = this.#places.get(table);
    if (place === undefined) return NOT_MAPPED;
    const index = number % 2 ** place.logEntries;
    return this.physicalOf(place.base + index * place.entryBytes);
  }

  /** Entries of the dMPT, once INIT_HCA has placed it. */
  get keyCount(): number {
    const place = this.#places.get('dmpt');
    return place === undefined ? 0 : 2 ** place.logEntries;
  }

  /** DMA address of dMPT entry `index`, or -1. */
  keyAddress(index: number): number {
    return this.contextAddress('dmpt', index);
  }

  /** DMA address of the MTT entry at a byte offset from the table base (as contexts hold it), or -1. */
  translationAddress(mttOffset: number): number {
    const place = this.#places.get('mtt');
    return place === undefined ? NOT_MAPPED : this.physicalOf(place.base + mttOffset);
  }

  /** The leaf as one address for each page. */
  #pagesOf(index: number): Float64Array {
    const leaf = this.#leaves.get(index);
    if (leaf instanceof Float64Array) return leaf;
    const pages = new Float64Array(LEAF_PAGES).fill(NOT_MAPPED);
    if (leaf !== undefined)
      for (let page = 0; page < LEAF_PAGES; page++) pages[page] = leaf + page * icmPageBytes;
    this.#leaves.set(index, pages);
    return pages;
  }
}

/**
 * Calls `act` with each leaf of the range: its index, first page and page count there, and the number of pages before
 * it.
 */
function forEachLeaf(
  icmAddress: number,
  pageCount: number,
  act: (index: number, first: number, count: number, skipped: number) => void,
): void {
  const firstPage = icmAddress / icmPageBytes;
  for (let skipped = 0; skipped < pageCount; ) {
    const page = firstPage + skipped;
    const first = page % LEAF_PAGES;
    const count = Math.min(LEAF_PAGES - first, pageCount - skipped);
    act(Math.floor(page / LEAF_PAGES), first, count, skipped);
    skipped += count;
  }
}

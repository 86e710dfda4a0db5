/**
 * A guest's page tables, as its processor walks them: two levels of 32-bit entries, or three of 64-bit entries with physical
 * address extension. Source: Intel SDM, volume 3A, chapter 5 (paging), 32-bit paging and PAE paging.
 */

const pageBytes = 4096;
const present = 1;
const large = 1 << 7;
const smallTable = { entryBytes: 4, shifts: [22, 12], indexMask: 0x3ff };
const extendedTable = { entryBytes: 8, shifts: [30, 21, 12], indexMask: 0x1ff };
const pdptMask = 3;

export class PageTables {
  readonly #memory: Uint8Array;
  readonly #view: DataView;
  readonly #cr3: number;
  readonly #format: typeof smallTable;

  /** @param memory physical memory */
  constructor(memory: Uint8Array, cr3: number, isExtended: boolean) {
    this.#memory = memory;
    this.#view = new DataView(memory.buffer, memory.byteOffset, memory.byteLength);
    this.#cr3 = isExtended ? (cr3 & ~0x1f) >>> 0 : (cr3 & ~(pageBytes - 1)) >>> 0;
    this.#format = isExtended ? extendedTable : smallTable;
  }

  /** The highest present page that ends at or below `limit`, within `searchBytes` of it; undefined if no page is present there. */
  highestPageBelow(limit: number, searchBytes: number): Uint8Array | undefined {
    for (let address = limit - pageBytes; address >= limit - searchBytes; ) {
      const { frame, absentBytes } = this.#walk(address);
      if (frame !== undefined) return this.#memory.subarray(frame, frame + pageBytes);
      // Skips to the page below everything that the absent entry maps.
      address = Math.floor(address / absentBytes) * absentBytes - pageBytes;
    }
    return undefined;
  }

  /** Bytes at a linear address; undefined unless all of their pages are present. */
  bytesAt(address: number, lengthBytes: number): Uint8Array | undefined {
    const bytes = new Uint8Array(lengthBytes);
    for (let done = 0; done < lengthBytes; ) {
      const at = (address + done) >>> 0;
      const { frame } = this.#walk(at);
      if (frame === undefined) return undefined;
      const offset = at % pageBytes;
      const part = Math.min(pageBytes - offset, lengthBytes - done);
      bytes.set(this.#memory.subarray(frame + offset, frame + offset + part), done);
      done += part;
    }
    return bytes;
  }

  /** Physical address of the page of a linear address, or how much the first absent entry on the way maps. */
  #walk(address: number): { readonly frame: number | undefined; readonly absentBytes: number } {
    const { entryBytes, shifts, indexMask } = this.#format;
    let table = this.#cr3;
    for (const [level, shift] of shifts.entries()) {
      const mask = shifts.length === 3 && level === 0 ? pdptMask : indexMask;
      const at = table + ((address >>> shift) & mask) * entryBytes;
      const entry = at + entryBytes <= this.#memory.length ? this.#view.getUint32(at, true) : 0;
      if ((entry & present) === 0) return { frame: undefined, absentBytes: 2 ** shift };
      const isLarge = level === shifts.length - 2 && (entry & large) !== 0;
      table = (entry & ~(pageBytes - 1)) >>> 0;
      if (isLarge) table += address & (2 ** shift - pageBytes);
      if (isLarge || level === shifts.length - 1)
        return table + pageBytes <= this.#memory.length
          ? { frame: table, absentBytes: 0 }
          : { frame: undefined, absentBytes: pageBytes };
    }
    return { frame: undefined, absentBytes: pageBytes };
  }
}

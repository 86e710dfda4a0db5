/**
 * Page tables of a device's address space, as in VT-d's second-level translation: four levels of 512 entries of eight bytes,
 * little-endian.
 *
 *     63      52 51                12 11      2  1  0
 *     ┌─────────┬────────────────────┬─────────┬──┬──┐
 *     │ ignored │ address of a frame │ ignored │ W│ R│   an entry with neither R nor W is not present
 *     └─────────┴────────────────────┴─────────┴──┴──┘
 *     device address: 47:39 level 4 · 38:30 level 3 · 29:21 level 2 · 20:12 level 1 · 11:0 in the page
 */

export const iommuPageBytes = 4096;
export const entryBytes = 8;
export const levelCount = 4;
export const entryReadable = 1;
export const entryWritable = 2;
const entriesPerTable = 512;

/** Offset in the table of a level (4 is the root) of the entry for a device address. */
export const entryOffsetOf = (address: number, level: number): number =>
  (Math.floor(address / (iommuPageBytes * entriesPerTable ** (level - 1))) % entriesPerTable) * entryBytes;

/** Frame address and rights of an entry. Addresses have up to 52 bits: two words, no BigInt. */
export function entryAt(
  view: DataView,
  offset: number,
): { readonly address: number; readonly rights: number } {
  const low = view.getUint32(offset, true);
  const high = view.getUint32(offset + 4, true) & 0x000f_ffff;
  return {
    address: high * 2 ** 32 + (low - (low % iommuPageBytes)),
    rights: low & (entryReadable | entryWritable),
  };
}

export function setEntry(view: DataView, offset: number, address: number, rights: number): void {
  view.setUint32(offset, (address % 2 ** 32) + rights, true);
  view.setUint32(offset + 4, Math.floor(address / 2 ** 32), true);
}

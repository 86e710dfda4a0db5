/** Sizes of pages and frames, and the arithmetic of addresses within them. */

import { pageBytes } from '../../base/index.ts';

export { pageBytes };
export const hugePageBytes = 2 * 1024 * 1024;
export const pagesPerHugePage = hugePageBytes / pageBytes;

/** Number of the page that holds `address`. Addresses may exceed 32 bits, so this divides instead of shifting. */
export const pageNumberOf = (address: number): number => Math.floor(address / pageBytes);

/** Offset of `address` in its page. */
export const pageOffsetOf = (address: number): number => address % pageBytes;

/** Pages that [address, address + lengthBytes) touches; none when it is empty. */
export const pageCountOf = (address: number, lengthBytes: number): number =>
  lengthBytes === 0 ? 0 : pageNumberOf(address + lengthBytes - 1) - pageNumberOf(address) + 1;

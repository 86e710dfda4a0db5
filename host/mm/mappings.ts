/**
 * mmap(2): the address of a mapping, the mappings that it replaces, and the pages that it has from the beginning.
 *
 *     anywhere   next free addresses ─────────────────────────┬─► area ─► nothing, or all pages (huge and stable ones)
 *     fixed      these addresses ─► old mappings are removed ─┘
 *
 * A fixed mapping (MAP_FIXED) replaces whatever it overlaps as munmap would: subscribers are notified, pages that are not
 * shared are freed, pinned frames stay with their pins, and the new mapping has new pages. As in Linux 6.1, the old mapping is
 * removed even if the new one then fails for lack of memory; a request that can never be granted changes nothing.
 */
import { ConfigurationError, InvariantError, roundUp } from '../../base/index.ts';
import { kernelAccess } from './access-mode.ts';
import type { AddressSpace } from './address-space.ts';
import { unmapRange } from './area-changes.ts';
import { accessRead, accessWrite, faultDone } from './faults.ts';
import { type MemoryFile, newSharedMemory } from './memory-file.ts';
import { hugePageBytes, pageBytes, pageCountOf, pageOffsetOf } from './page.ts';
import { flagDevice, flagWritable, flagWriteCombining } from './page-table.ts';
import { Vma } from './vma.ts';

/** First address of mappings, the same in every process, since it isolates nothing; and the end of user addresses. */
export const userBase = 0x7f00_0000_0000;
export const userEnd = 0x7fff_ffff_f000;

export type Access = 'read' | 'readWrite';

/** Attributes of a mapping; left out: private, readable and writable, 4 KiB pages, allocated on first touch. */
export interface MapOptions {
  readonly isShared?: boolean;
  /** 4096, or 2 MiB: huge pages are all allocated at once, or the mapping fails. */
  readonly pageSize?: number;
  readonly access?: Access;
  /** The file to map, and the offset (a multiple of 4096); without one the memory is anonymous. */
  readonly file?: MemoryFile;
  readonly fileOffset?: number;
  /** Allocates all pages at once, and keeps them in memory: queue buffers. */
  readonly isStable?: boolean;
  /**
   * Length in bytes (a multiple of 2 MiB) of one stretch of memory that is mapped repeatedly: addresses, page-table entries and
   * translations are those of the whole mapping, bytes and frames those of the stretch. So a mapping can exceed the host's
   * memory. All pages are present at once and stay. No two consecutive pages have consecutive frames, so that no two pages
   * share a translation. A child does not inherit the mapping. In Linux, a memory file mapped repeatedly at fixed addresses has
   * the same effect.
   */
  readonly stretchBytes?: number;
}

/** Whether a fixed mapping replaces overlapping ones (MAP_FIXED), or then fails (MAP_FIXED_NOREPLACE). */
export type FixedMode = 'replace' | 'noReplace';

export type MapError = 'EINVAL' | 'EEXIST' | 'ENOMEM';

/** Maps at addresses chosen by the kernel. @returns the first one, or -1 (ENOMEM) */
export function mapAnywhere(space: AddressSpace, lengthBytes: number, options: MapOptions): number {
  const { pageSize = pageBytes } = options;
  if (pageSize !== pageBytes && pageSize !== hugePageBytes)
    throw new ConfigurationError('pageSize', pageSize, `${pageBytes} or ${hugePageBytes}`);
  if (!(lengthBytes > 0)) throw new ConfigurationError('map lengthBytes', lengthBytes, 'more than 0');
  const stretchBytes = stretchOf(lengthBytes, options);
  if (stretchBytes > 0) return mapRepeating(space, lengthBytes, stretchBytes, options);
  const size = roundUp(lengthBytes, pageSize);
  if (size / pageBytes > space.mm.reachablePages) return -1;
  const start = space.takeAddresses(size, pageSize);
  return beginArea(space, start, size, options) ? start : -1;
}

/** Bytes after which a mapping repeats; 0 if it does not. @throws ConfigurationError for a stretch that cannot repeat */
function stretchOf(lengthBytes: number, { stretchBytes = 0, file, isShared = false }: MapOptions): number {
  if (stretchBytes === 0) return 0;
  if (!(stretchBytes > 0) || stretchBytes % hugePageBytes !== 0)
    throw new ConfigurationError('stretchBytes', stretchBytes, `a multiple of ${hugePageBytes}`);
  if (file !== undefined || isShared)
    throw new ConfigurationError('stretchBytes', stretchBytes, 'left out for files and shared memory');
  return stretchBytes < lengthBytes ? stretchBytes : 0;
}

/** Maps a stretch and lets the rest of the area share its page tables. @returns the first address, or -1 (ENOMEM) */
function mapRepeating(
  space: AddressSpace,
  lengthBytes: number,
  stretchBytes: number,
  { pageSize = pageBytes, access = 'readWrite' }: MapOptions,
): number {
  const size = roundUp(lengthBytes, hugePageBytes);
  if (stretchBytes / pageBytes > space.mm.reachablePages) return -1;
  const start = space.takeAddresses(size, hugePageBytes);
  const end = start + size;
  if (end > userEnd) return -1;
  const rights = { isReadable: true, isWritable: access === 'readWrite' };
  space.areas.insert(
    new Vma({ start, end, kind: 'anonymous', pageSize, rights, isStable: true, stretchBytes }),
  );
  space.mappedBytes += size;
  // Pages are mapped from the last to the first: frames are handed out in rising order, so consecutive pages never get
  // consecutive frames.
  for (let at = start + stretchBytes - pageSize; at >= start; at -= pageSize) {
    if (populate(space, at, at + pageSize, pageSize)) continue;
    space.unmap(start, size);
    return -1;
  }
  space.table.repeat(start, stretchBytes, end);
  return start;
}

/** Maps at these addresses. @returns the first one, or an errno in Linux' order of checks */
export function mapFixed(
  space: AddressSpace,
  address: number,
  lengthBytes: number,
  options: MapOptions,
  mode: FixedMode,
): number | MapError {
  const { pageSize = pageBytes } = options;
  if (!(lengthBytes > 0) || options.stretchBytes !== undefined) return 'EINVAL';
  const size = roundUp(lengthBytes, pageSize);
  if (address < userBase || address > userEnd - size) return 'ENOMEM';
  if (address % pageSize !== 0) return 'EINVAL';
  const end = address + size;
  const isTaken = space.areas.overlapping(address, end).length > 0;
  if (isTaken && mode === 'noReplace') return 'EEXIST';
  if (cutsWhole(space, address) || cutsWhole(space, end)) return 'EINVAL';
  if (isTaken) unmapRange(space, address, end, true);
  if (size / pageBytes > space.mm.reachablePages) return 'ENOMEM';
  return beginArea(space, address, size, options) ? address : 'ENOMEM';
}

/** A huge page, or a repeating area, is unmapped as a whole or not at all. */
function cutsWhole(space: AddressSpace, address: number): boolean {
  const area = space.areas.find(address);
  if (area === undefined) return false;
  return area.stretchBytes > 0 ? address !== area.start : address % area.pageSize !== 0;
}

/** Adds the area; huge and stable pages are allocated at once. @returns false if there are not enough: nothing stays */
function beginArea(space: AddressSpace, start: number, size: number, options: MapOptions): boolean {
  const { pageSize = pageBytes, isShared = false, access = 'readWrite', isStable = false } = options;
  const isSharedMemory = isShared && options.file === undefined && pageSize === pageBytes;
  const file = isSharedMemory ? newSharedMemory(size) : options.file;
  if (file !== undefined) file.users++;
  const rights = { isReadable: true, isWritable: access === 'readWrite' };
  const { fileOffset = 0 } = options;
  const kind = options.file === undefined ? 'anonymous' : 'file';
  const end = start + size;
  space.areas.insert(new Vma({ start, end, kind, isShared, pageSize, file, fileOffset, rights, isStable }));
  space.mappedBytes += size;
  if (!isStable && pageSize === pageBytes) return true;
  if (populate(space, start, end, pageSize)) return true;
  space.unmap(start, size);
  return false;
}

/** Makes every page of a range present, for writing if that is allowed. @returns false if memory is exhausted */
export function populate(space: AddressSpace, start: number, end: number, step: number): boolean {
  for (let at = start; at < end; at += step) {
    if ((space.table.flagsAt(at) & flagWritable) !== 0) continue;
    const area = space.areas.find(at)!;
    const access = area.isWritable ? accessWrite : accessRead;
    if (space.mm.faults.handle(space, at, access, kernelAccess) !== faultDone) return false;
  }
  return true;
}

/** Windows into device space of one process: a program may map over a window; the driver unmaps the rest of it. */
export class DeviceWindows {
  readonly #space: AddressSpace;
  /** Ends of the windows by their first addresses. */
  readonly #ends = new Map<number, number>();

  constructor(space: AddressSpace) {
    this.#space = space;
  }

  get count(): number {
    return this.#space.areas.all.filter(({ kind }) => kind === 'device').length;
  }

  /** @returns the window's user address, with the offset in the page kept */
  map(busAddress: number, lengthBytes: number, kind: 'uncached' | 'writeCombining'): number {
    const { table, areas } = this.#space;
    const offset = pageOffsetOf(busAddress);
    const size = pageCountOf(busAddress, lengthBytes) * pageBytes;
    const start = this.#space.takeAddresses(size);
    const flags = flagWritable | flagDevice | (kind === 'writeCombining' ? flagWriteCombining : 0);
    for (let at = 0; at < size; at += pageBytes) table.set(start + at, busAddress - offset + at, flags);
    areas.insert(new Vma({ start, end: start + size, kind: 'device', pageSize: pageBytes, isShared: true }));
    this.#ends.set(start, start + size);
    return start + offset;
  }

  /** Removes the window that {@link map} returned. @throws InvariantError for any other address */
  unmap(userAddress: number): void {
    const start = userAddress - pageOffsetOf(userAddress);
    const end = this.#ends.get(start);
    if (end === undefined)
      throw new InvariantError('device window', userAddress, 'an address that mapDevice returned');
    this.#ends.delete(start);
    for (const area of this.#space.areas.overlapping(start, end))
      if (area.kind === 'device') unmapRange(this.#space, area.start, area.end, true);
  }

  /** The process ends: all of its areas have been removed. */
  clear(): void {
    this.#ends.clear();
  }
}

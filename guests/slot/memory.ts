/**
 * A guest's RAM as the device reaches it: the client's DMA map, in place.
 *
 *   address ──► segment (sorted, the last hit is tried first) ──► window of a mapped memfd, or pread and pwrite
 *
 * A segment is a part of one mapped region that one backing serves. An access may cross adjacent segments; an access that is
 * not completely mapped with the required right does nothing and returns false. Memory becomes inaccessible the moment it is
 * unmapped: no view of it ever leaves guests/slot/native.
 *
 * Files stay mapped while a region uses them, and a few idle ones beyond (a guest's firmware unmaps and maps the same
 * RAM dozens of times); all are released with the client.
 */
import { constants } from 'node:os';
import type { HostMemory } from '../../hw/pcie/index.ts';
import { closeDescriptor } from './native/poll.ts';
import { type Backing, fileKeyOf, SharedFile } from './native/shared-file.ts';
import type { VfioUserConfig } from './vfio-user/parameters.ts';

const { EACCES, EEXIST, EINVAL, ENOENT, ENOMEM, ENOSPC } = constants.errno;

/** The client's DMA map as its user sees it. `sizeBytes` is the end of the highest mapped region. */
export interface GuestMemory extends HostMemory {
  /** A copy of the bytes at an address, or undefined if not all of them are mapped and readable. */
  read(address: number, lengthBytes: number): Uint8Array | undefined;
  /** Present mappings, by address. */
  readonly regions: readonly MemoryRegion[];
}

/** One region of the DMA map. */
export interface MemoryRegion {
  readonly address: number;
  readonly sizeBytes: number;
  readonly isReadable: boolean;
  readonly isWritable: boolean;
  /** mapped: in place; file: by pread and pwrite; none: without a descriptor, every access fails. */
  readonly access: 'mapped' | 'file' | 'none';
}

/** A client's request for a mapping. */
export interface MapRequest {
  readonly address: number;
  readonly sizeBytes: number;
  readonly isReadable: boolean;
  readonly isWritable: boolean;
  /** -1: none. */
  readonly descriptor: number;
  readonly fileOffset: number;
}

interface KeptFile {
  readonly key: string;
  readonly file: SharedFile;
  regionCount: number;
}

interface Region extends MemoryRegion {
  readonly kept: KeptFile | undefined;
}

interface Segment {
  readonly start: number;
  readonly end: number;
  readonly isReadable: boolean;
  readonly isWritable: boolean;
  readonly backing: Backing;
  /** Backing offset = address + this. */
  readonly shift: number;
}

/** Granule of addresses, sizes and file offsets. */
const DMA_PAGE_BYTES = 4096;
/** No PCIe address of a guest is higher: x86 and Arm have at most 52 address bits. */
export const DMA_ADDRESS_MAX = 2 ** 52;

const inaccessible: Backing = { readInto: () => false, write: () => false };
const nowhere: Segment = {
  start: 0,
  end: 0,
  isReadable: false,
  isWritable: false,
  backing: inaccessible,
  shift: 0,
};

export class DmaMap implements GuestMemory {
  sizeBytes = 0;
  readonly #config: VfioUserConfig;
  #regions: Region[] = [];
  #segments: Segment[] = [];
  #lastRead = nowhere;
  #lastWritten = nowhere;
  /** Files by key, oldest use first. */
  readonly #files = new Map<string, KeptFile>();

  constructor(config: VfioUserConfig) {
    this.#config = config;
  }

  get regions(): readonly MemoryRegion[] {
    return this.#regions;
  }

  canRead(address: number, lengthBytes: number): boolean {
    const { start, end } = this.#lastRead;
    if (address >= start && address + lengthBytes <= end) return true;
    return address >= 0 && this.#covers(address, lengthBytes, 'isReadable');
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    let segment = this.#lastRead;
    if (address < segment.start || address + lengthBytes > segment.end) {
      segment = this.#segmentAt(address);
      if (!segment.isReadable) return false;
      if (address + lengthBytes > segment.end) {
        return this.#readAcross(address, lengthBytes, target, targetOffset);
      }
      this.#lastRead = segment;
    }
    return segment.backing.readInto(address + segment.shift, lengthBytes, target, targetOffset);
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    let segment = this.#lastWritten;
    if (address < segment.start || address + lengthBytes > segment.end) {
      segment = this.#segmentAt(address);
      if (!segment.isWritable) return false;
      if (address + lengthBytes > segment.end) {
        return this.#writeAcross(address, lengthBytes, source, sourceOffset);
      }
      this.#lastWritten = segment;
    }
    return segment.backing.write(address + segment.shift, lengthBytes, source, sourceOffset);
  }

  read(address: number, lengthBytes: number): Uint8Array | undefined {
    if (!(lengthBytes >= 0 && this.#covers(address, lengthBytes, 'isReadable'))) return undefined;
    const copy = new Uint8Array(lengthBytes);
    return this.readInto(address, lengthBytes, copy, 0) ? copy : undefined;
  }

  /** Adds a region; always takes over its descriptor. Returns 0, or the errno of the refusal. */
  map(request: MapRequest): number {
    const refusal = this.#refusalOf(request);
    if (refusal !== 0) {
      if (request.descriptor >= 0) closeDescriptor(request.descriptor);
      return refusal;
    }
    if (request.descriptor < 0) {
      this.#insert({ ...regionOf(request), access: 'none', kept: undefined }, []);
      return 0;
    }
    const kept = this.#fileOf(request.descriptor);
    if (typeof kept === 'number') return -kept;
    const errno = this.#mapFile(request, kept);
    this.#trimFiles(this.#config.idleMemoryFileCountMax);
    return errno;
  }

  /** Removes the region of exactly this address and size. 0, or ENOENT. */
  unmap(address: number, sizeBytes: number): number {
    const at = this.#regionIndexAfter(address) - 1;
    const region = this.#regions[at];
    if (region?.address !== address || region.sizeBytes !== sizeBytes) return ENOENT;
    this.#regions.splice(at, 1);
    const first = this.#indexAfter(address - 1);
    const behind = this.#indexAfter(address + sizeBytes - 1);
    this.#segments.splice(first, behind - first);
    this.#forgetHits();
    if (region.kept !== undefined) {
      region.kept.regionCount--;
      this.#trimFiles(this.#config.idleMemoryFileCountMax);
    }
    return 0;
  }

  /** Removes all regions. */
  unmapAll(): void {
    this.#regions = [];
    this.#segments = [];
    this.#forgetHits();
    for (const kept of this.#files.values()) kept.regionCount = 0;
    this.#trimFiles(this.#config.idleMemoryFileCountMax);
  }

  /** Removes all regions and releases every file: the client has disconnected. */
  release(): void {
    this.unmapAll();
    this.#trimFiles(0);
  }

  #refusalOf({ address, sizeBytes, isReadable, isWritable, fileOffset }: MapRequest): number {
    if (!(sizeBytes > 0 && address + sizeBytes <= DMA_ADDRESS_MAX)) return EINVAL;
    if (address % DMA_PAGE_BYTES !== 0 || sizeBytes % DMA_PAGE_BYTES !== 0) return EINVAL;
    if (fileOffset % DMA_PAGE_BYTES !== 0 || fileOffset > Number.MAX_SAFE_INTEGER - sizeBytes) return EINVAL;
    if (!isReadable && !isWritable) return EINVAL;
    const next = this.#regions[this.#regionIndexAfter(address)];
    const previous = this.#regions[this.#regionIndexAfter(address) - 1];
    if (next !== undefined && next.address < address + sizeBytes) return EEXIST;
    if (previous !== undefined && previous.address + previous.sizeBytes > address) return EEXIST;
    return this.#regions.length >= this.#config.dmaMapCountMax ? ENOSPC : 0;
  }

  #mapFile(request: MapRequest, kept: KeptFile): number {
    const { file } = kept;
    if (request.isWritable && !file.isWritable) return EACCES;
    const windowsLeft = this.#config.memoryWindowCountMax - this.#windowCount();
    const parts = file.partsOf(request.fileOffset, request.sizeBytes, windowsLeft);
    if (typeof parts === 'number') {
      if (parts === -ENOMEM) this.#trimFiles(0);
      return -parts;
    }
    const rights = { isReadable: request.isReadable, isWritable: request.isWritable };
    let start = request.address;
    const segments = parts.map(({ backing, backingOffset, lengthBytes }): Segment => {
      const segment = { start, end: start + lengthBytes, ...rights, backing, shift: backingOffset - start };
      start += lengthBytes;
      return segment;
    });
    kept.regionCount++;
    this.#insert({ ...regionOf(request), access: file.isMapped ? 'mapped' : 'file', kept }, segments);
    return 0;
  }

  #insert(region: Region, segments: readonly Segment[]): void {
    this.#regions.splice(this.#regionIndexAfter(region.address), 0, region);
    this.#segments.splice(this.#indexAfter(region.address), 0, ...segments);
    this.#forgetHits();
  }

  #forgetHits(): void {
    this.#lastRead = nowhere;
    this.#lastWritten = nowhere;
    const last = this.#regions.at(-1);
    this.sizeBytes = last === undefined ? 0 : last.address + last.sizeBytes;
  }

  /** The file of a descriptor, which is taken over: kept, or closed if the file is already known or refused (minus errno). */
  #fileOf(descriptor: number): KeptFile | number {
    const key = fileKeyOf(descriptor);
    if (key === undefined) {
      closeDescriptor(descriptor);
      return -EINVAL;
    }
    const known = this.#files.get(key);
    if (known !== undefined) {
      closeDescriptor(descriptor);
      this.#files.delete(key);
      this.#files.set(key, known);
      return known;
    }
    if (this.#files.size >= this.#config.memoryFileCountMax) this.#trimFiles(0);
    if (this.#files.size >= this.#config.memoryFileCountMax) {
      closeDescriptor(descriptor);
      return -ENOSPC;
    }
    const file = SharedFile.open(descriptor);
    if (typeof file === 'number') {
      closeDescriptor(descriptor);
      return file;
    }
    const kept = { key, file, regionCount: 0 };
    this.#files.set(key, kept);
    return kept;
  }

  /** Releases the longest idle files until at most `idleCountMax` are idle. */
  #trimFiles(idleCountMax: number): void {
    let idle = 0;
    for (const { regionCount } of this.#files.values()) if (regionCount === 0) idle++;
    for (const kept of this.#files.values()) {
      if (idle <= idleCountMax) return;
      if (kept.regionCount > 0) continue;
      kept.file.close();
      this.#files.delete(kept.key);
      idle--;
    }
  }

  #windowCount(): number {
    let count = 0;
    for (const { file } of this.#files.values()) count += file.windowCount;
    return count;
  }

  /** The segment that contains an address, or `nowhere`. */
  #segmentAt(address: number): Segment {
    const segment = this.#segments[this.#indexAfter(address) - 1];
    return segment !== undefined && address < segment.end ? segment : nowhere;
  }

  /** Index of the first segment that begins after an address. */
  #indexAfter(address: number): number {
    let low = 0;
    let high = this.#segments.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#segments[middle]!.start <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #regionIndexAfter(address: number): number {
    let low = 0;
    let high = this.#regions.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#regions[middle]!.address <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #covers(address: number, lengthBytes: number, right: 'isReadable' | 'isWritable'): boolean {
    const end = address + lengthBytes;
    for (let at = address; at < end; ) {
      const segment = this.#segmentAt(at);
      if (!segment[right]) return false;
      at = segment.end;
    }
    return true;
  }

  #readAcross(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    if (!this.#covers(address, lengthBytes, 'isReadable')) return false;
    const end = address + lengthBytes;
    for (let at = address; at < end; ) {
      const { backing, shift, end: segmentEnd } = this.#segmentAt(at);
      const count = Math.min(segmentEnd, end) - at;
      if (!backing.readInto(at + shift, count, target, targetOffset + at - address)) return false;
      at += count;
    }
    return true;
  }

  #writeAcross(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    if (!this.#covers(address, lengthBytes, 'isWritable')) return false;
    const end = address + lengthBytes;
    for (let at = address; at < end; ) {
      const { backing, shift, end: segmentEnd } = this.#segmentAt(at);
      const count = Math.min(segmentEnd, end) - at;
      if (!backing.write(at + shift, count, source, sourceOffset + at - address)) return false;
      at += count;
    }
    return true;
  }
}

const regionOf = ({ address, sizeBytes, isReadable, isWritable }: MapRequest) => ({
  address,
  sizeBytes,
  isReadable,
  isWritable,
});

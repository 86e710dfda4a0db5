/**
 * The virtual memory of one process: anonymous memory, windows into device space, and pins.
 *
 *     map ──> area of user addresses ──> page table ──> frames (one reference per mapping)
 *     pin ──> list of physical pages  ────────────────> frames (one reference per pin)
 *
 * Promises, as Linux keeps them: a pin counts against RLIMIT_MEMLOCK each time, also for pages that are pinned
 * already (mm->pinned_vm); a failed map or pin leaves nothing behind; a page that is unmapped or whose process
 * ends while it is pinned keeps its frame until the unpin. Memory is given at once, not on first touch: demand
 * paging is later work. Addresses are never reused, so a stale one is always found out.
 */
import { ConfigurationError, InvariantError } from '../base/assert.ts';
import { roundUp } from '../base/units.ts';
import { hugePageBytes, pageBytes, pageCountOf, pageOffsetOf, pagesPerHugePage } from './page.ts';
import type { PageFrames } from './page-frames.ts';
import { flagDevice, flagHuge, flagWritable, flagWriteCombining, PageTable } from './page-table.ts';
import type { PhysicalMemory } from './physical-memory.ts';

/** Where anonymous mappings and device windows of a process begin; the same in every process, which isolates nothing. */
export const userBase = 0x7f00_0000_0000;

/** Pages held for the device; also the ticket by which they are given back. */
export interface PinnedPages {
  readonly address: number;
  readonly lengthBytes: number;
  /** Physical address of each 4 KiB page, in order. */
  readonly pages: Float64Array;
}

export type Access = 'read' | 'readWrite';

interface Area {
  readonly lengthBytes: number;
  readonly pageSize: number;
}

export class AddressSpace {
  readonly #memory: PhysicalMemory;
  readonly #frames: PageFrames;
  readonly #memlockLimitBytes: number;
  readonly #table = new PageTable(userBase);
  readonly #deviceAreas = new Map<number, Area>();
  readonly #pinned = new Set<PinnedPages>();
  #nextAddress = userBase;
  /** Memory now pinned, every pin counted. */
  pinnedBytes = 0;
  /** Memory now mapped, device windows apart. */
  mappedBytes = 0;

  /** @param memlockLimitBytes Infinity for no limit */
  constructor(memory: PhysicalMemory, frames: PageFrames, memlockLimitBytes = Number.POSITIVE_INFINITY) {
    this.#memory = memory;
    this.#frames = frames;
    this.#memlockLimitBytes = memlockLimitBytes;
  }

  /**
   * Maps zeroed anonymous memory, readable and writable, rounded up to whole pages.
   * @param pageSize 4096, or 2 MiB for huge pages
   * @returns its first address, or -1 when memory has run out
   */
  map(lengthBytes: number, pageSize: number = pageBytes): number {
    checkPageSize(pageSize);
    if (!(lengthBytes > 0)) throw new ConfigurationError('map lengthBytes', lengthBytes, 'more than 0');
    const size = roundUp(lengthBytes, pageSize);
    const address = this.#reserve(size, pageSize);
    const isHuge = pageSize === hugePageBytes;
    for (let at = address; at < address + size; at += pageSize) {
      const frame = isHuge ? this.#frames.allocateHuge() : this.#frames.allocate();
      if (frame < 0) {
        this.unmap(address, at - address);
        return -1;
      }
      this.#table.set(at, frame * pageBytes, flagWritable | (isHuge ? flagHuge : 0));
      this.mappedBytes += pageSize;
    }
    return address;
  }

  /** Removes the mappings of all pages that [address, address + lengthBytes) touches; unmapped ones are skipped. */
  unmap(address: number, lengthBytes: number): void {
    const end = address + lengthBytes;
    for (let at = address - pageOffsetOf(address); at < end; at += pageBytes) {
      const flags = this.#table.flagsAt(at);
      if (flags === 0 || (flags & flagDevice) !== 0) continue;
      if ((flags & flagHuge) === 0) this.#unmapPage(at, 1);
      else this.#unmapPage(at - (at % hugePageBytes), pagesPerHugePage);
    }
  }

  /** Sets the rights of the pages of a range. @returns false (ENOMEM of mprotect) when some page is not mapped */
  protect(address: number, lengthBytes: number, access: Access): boolean {
    if (!this.isMapped(address, lengthBytes)) return false;
    const end = address + lengthBytes;
    for (let at = address - pageOffsetOf(address); at < end; at += pageBytes) {
      const old = this.#table.flagsAt(at);
      const flags = access === 'readWrite' ? old | flagWritable : old & ~flagWritable;
      const start = at - (at % ((flags & flagHuge) === 0 ? pageBytes : hugePageBytes));
      this.#table.set(start, this.#table.translate(start), flags);
    }
    return true;
  }

  /**
   * Maps a window into device space. @returns its user address, with the offset in the page kept
   */
  mapDevice(busAddress: number, lengthBytes: number, kind: 'uncached' | 'writeCombining'): number {
    const offset = pageOffsetOf(busAddress);
    const size = pageCountOf(busAddress, lengthBytes) * pageBytes;
    const address = this.#reserve(size, pageBytes);
    const flags = flagWritable | flagDevice | (kind === 'writeCombining' ? flagWriteCombining : 0);
    for (let at = 0; at < size; at += pageBytes)
      this.#table.set(address + at, busAddress - offset + at, flags);
    this.#deviceAreas.set(address, { lengthBytes: size, pageSize: pageBytes });
    return address + offset;
  }

  /** Removes the window that {@link mapDevice} returned. */
  unmapDevice(userAddress: number): void {
    const address = userAddress - pageOffsetOf(userAddress);
    const area = this.#deviceAreas.get(address);
    if (area === undefined) {
      throw new InvariantError('device window', userAddress, 'an address that mapDevice returned');
    }
    this.#deviceAreas.delete(address);
    for (let at = 0; at < area.lengthBytes; at += pageBytes) this.#table.clear(address + at);
  }

  /** Device windows now mapped. */
  get deviceWindowCount(): number {
    return this.#deviceAreas.size;
  }

  /** Physical (or bus) address of a user address, or -1 when it is not mapped. */
  translate(address: number): number {
    return this.#table.translate(address);
  }

  /** Whether every page of a range is mapped to memory. */
  isMapped(address: number, lengthBytes: number): boolean {
    return this.#allPages(address, lengthBytes, (flags) => flags !== 0 && (flags & flagDevice) === 0);
  }

  isWritable(address: number, lengthBytes: number): boolean {
    return this.#allPages(
      address,
      lengthBytes,
      (flags) => (flags & (flagWritable | flagDevice)) === flagWritable,
    );
  }

  /** Reads across pages. @returns false, with nothing read, when some page is not mapped */
  read(address: number, target: Uint8Array): boolean {
    if (!this.isMapped(address, target.length)) return false;
    this.#forEachPiece(address, target.length, (physical, offset, length) => {
      this.#memory.readInto(physical, length, target, offset);
    });
    return true;
  }

  /** Writes across pages. @returns false, with nothing written, when some page is not mapped writable */
  write(address: number, source: Uint8Array): boolean {
    if (!this.isWritable(address, source.length)) return false;
    this.#forEachPiece(address, source.length, (physical, offset, length) => {
      this.#memory.write(physical, length, source, offset);
    });
    return true;
  }

  /**
   * Pins the pages that a range touches.
   * @returns them, or EFAULT when some page is not memory, ENOMEM when the limit would be passed
   */
  pin(address: number, lengthBytes: number): PinnedPages | 'EFAULT' | 'ENOMEM' {
    const count = pageCountOf(address, lengthBytes);
    if (count === 0 || !this.isMapped(address, lengthBytes)) return 'EFAULT';
    if (this.pinnedBytes + count * pageBytes > this.#memlockLimitBytes) return 'ENOMEM';
    const first = address - pageOffsetOf(address);
    const pages = new Float64Array(count);
    for (let page = 0; page < count; page++) {
      const physical = this.#table.translate(first + page * pageBytes);
      pages[page] = physical;
      this.#frames.pin(physical / pageBytes);
    }
    this.pinnedBytes += count * pageBytes;
    const pinned = { address, lengthBytes, pages };
    this.#pinned.add(pinned);
    return pinned;
  }

  /** Gives a pin back. @throws InvariantError when it was given back before */
  unpin(pinned: PinnedPages): void {
    if (!this.#pinned.delete(pinned)) {
      throw new InvariantError(
        'unpin',
        pinned.address,
        'pages that are pinned: this pin was given back before',
      );
    }
    for (const physical of pinned.pages) this.#frames.unpin(physical / pageBytes);
    this.pinnedBytes -= pinned.pages.length * pageBytes;
  }

  /** Pins not yet given back: what a leak check prints. */
  get pins(): readonly PinnedPages[] {
    return [...this.#pinned];
  }

  /** Unmaps everything, as the end of a process does; pinned frames stay until they are unpinned. */
  release(): void {
    const addresses: number[] = [];
    this.#table.forEach((address, _physical, flags) => {
      if ((flags & flagDevice) === 0) addresses.push(address);
    });
    for (const address of addresses) this.unmap(address, 1);
    for (const address of [...this.#deviceAreas.keys()]) this.unmapDevice(address);
  }

  #unmapPage(address: number, frameCount: number): void {
    const first = this.#table.translate(address) / pageBytes;
    this.#table.clear(address);
    for (let frame = first; frame < first + frameCount; frame++) this.#frames.release(frame);
    this.mappedBytes -= frameCount * pageBytes;
  }

  /** Takes a range of user addresses, with an unmapped page behind it that catches overruns. */
  #reserve(size: number, alignment: number): number {
    const address = roundUp(this.#nextAddress, alignment);
    this.#nextAddress = address + size + pageBytes;
    return address;
  }

  #allPages(address: number, lengthBytes: number, holds: (flags: number) => boolean): boolean {
    const end = address + lengthBytes;
    for (let at = address - pageOffsetOf(address); at < end; at += pageBytes) {
      if (!holds(this.#table.flagsAt(at))) return false;
    }
    return true;
  }

  #forEachPiece(
    address: number,
    lengthBytes: number,
    visit: (physical: number, offset: number, length: number) => void,
  ): void {
    for (let done = 0; done < lengthBytes; ) {
      const length = Math.min(lengthBytes - done, pageBytes - pageOffsetOf(address + done));
      visit(this.#table.translate(address + done), done, length);
      done += length;
    }
  }
}

function checkPageSize(pageSize: number): void {
  if (pageSize === pageBytes || pageSize === hugePageBytes) return;
  throw new ConfigurationError('pageSize', pageSize, `${pageBytes} or ${hugePageBytes}`);
}

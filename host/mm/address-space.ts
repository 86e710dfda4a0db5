/**
 * The virtual memory of one process: areas, the page table, and the operations of programs and the driver.
 *
 *     map ──► area (without pages yet)          load, store ──► page table ── absent ──► fault ──► frame
 *     pin ──► every page made present and the process's own, one reference and one pin for each ──► physical pages
 *
 * Promises, as in Linux: every pin counts against RLIMIT_MEMLOCK, even for pages that are already pinned (mm->pinned_vm); a
 * failed map or pin changes nothing, except that pages may have been faulted in; a pinned page that is unmapped, or whose
 * process ends, keeps its frame until the unpin. Addresses are reused only on request, so that a stale one is detected.
 */
import { roundUp } from '../../base/index.ts';
import { type AccessMode, userAccess } from './access-mode.ts';
import {
  type Advice,
  adviseAreas,
  protectAreas,
  type RemapError,
  reapAreas,
  remapArea,
  unmapRange,
} from './area-changes.ts';
import { accessRead, accessWrite, faultDone, faultLater } from './faults.ts';
import { forkSpace } from './fork.ts';
import {
  type Access,
  DeviceWindows,
  type FixedMode,
  type MapError,
  type MapOptions,
  mapAnywhere,
  mapFixed,
  populate,
  userBase,
  userEnd,
} from './mappings.ts';
import type { MemoryManager } from './memory-manager.ts';
import type { InvalidateReason, InvalidationListener } from './notifier-list.ts';
import { NotifierList } from './notifier-list.ts';
import { pageBytes, pageNumberOf, pageOffsetOf, pagesPerHugePage } from './page.ts';
import {
  flagAccessed,
  flagDevice,
  flagDirty,
  flagHuge,
  flagPresent,
  flagSwap,
  flagWritable,
  PageTable,
} from './page-table.ts';
import { pageDirty } from './pages.ts';
import { type PinAccess, type PinnedPages, PinTable } from './pins.ts';
import { TlbGather } from './tlb-gather.ts';
import { readBytes, writeBytes } from './user-bytes.ts';
import { type Vma, VmaList } from './vma.ts';

/** Answer of {@link AddressSpace.access}: ask again at the memory manager's `retryPs`. */
export const accessLater = -faultLater;

export class AddressSpace {
  readonly id: number;
  readonly mm: MemoryManager;
  readonly table = new PageTable(userBase);
  readonly areas = new VmaList();
  /** Cores on which the process has run and whose TLBs may hold its translations. */
  readonly cores = new Set<number>();
  readonly pinTable: PinTable;
  readonly notifiers: NotifierList;
  /** Mapped memory without device windows. */
  mappedBytes = 0;
  /** The resident part in frames of the process: without the zero page and swapped pages (RSS). */
  residentBytes = 0;
  /** Pages in swap. */
  swappedPages = 0;
  /** True if the out-of-memory killer has chosen this address space. */
  isKilled = false;
  readonly #windows = new DeviceWindows(this);
  #nextAddress = userBase;

  constructor(mm: MemoryManager, id: number, memlockLimitBytes: number) {
    this.mm = mm;
    this.id = id;
    this.pinTable = new PinTable(this, memlockLimitBytes);
    this.notifiers = new NotifierList(mm.counts);
  }

  // Mappings.

  /**
   * Maps anonymous memory that reads as zero, rounded up to whole pages.
   * @returns its first address, or -1 (ENOMEM): more than memory and swap together, or no huge pages
   */
  map(lengthBytes: number, pageSize: number = pageBytes): number {
    return this.mapWith(lengthBytes, { pageSize });
  }

  /** Maps memory by the given options. @returns its first address, or -1 (ENOMEM) */
  mapWith(lengthBytes: number, options: MapOptions): number {
    this.mm.platform.charge('memory', this.mm.config.paging.mapCycles);
    return mapAnywhere(this, lengthBytes, options);
  }

  /**
   * Maps memory at these addresses, replacing existing mappings (MAP_FIXED), or only where none exists (MAP_FIXED_NOREPLACE).
   * @returns the address, or an errno: EINVAL (no multiple of the page size, or a huge page would be cut; nothing mapped),
   *   EEXIST (a mapping exists), ENOMEM (outside user addresses, or no memory: the old mapping is then removed)
   */
  mapFixed(
    address: number,
    lengthBytes: number,
    options: MapOptions = {},
    mode: FixedMode = 'replace',
  ): number | MapError {
    this.mm.platform.charge('memory', this.mm.config.paging.mapCycles);
    return mapFixed(this, address, lengthBytes, options, mode);
  }

  /** Removes the mappings of all pages that [address, address + lengthBytes) touches; unmapped ones are skipped. */
  unmap(address: number, lengthBytes: number): void {
    this.mm.platform.charge('memory', this.mm.config.paging.mapCycles);
    const [start, end] = this.#wholePages(address, lengthBytes);
    unmapRange(this, start, end);
  }

  /**
   * Changes the size of a mapping (mremap): in place if the addresses after it are free, otherwise, if allowed, at a new
   * address with the same pages.
   * @returns its address, or an errno: EFAULT (not one area), ENOMEM (no room here, and it may not move), EINVAL (not the beginning of a
   *   page, a length of 0, huge pages that would grow)
   */
  remap(
    address: number,
    oldLengthBytes: number,
    newLengthBytes: number,
    mayMove: boolean,
  ): number | RemapError {
    this.mm.platform.charge('memory', this.mm.config.paging.mapCycles);
    return remapArea(this, address, oldLengthBytes, newLengthBytes, mayMove);
  }

  /** Sets the rights of the pages of a range. @returns false (ENOMEM of mprotect) if some page is not mapped */
  protect(address: number, lengthBytes: number, access: Access): boolean {
    if (!this.isMapped(address, lengthBytes)) return false;
    this.mm.platform.charge('memory', this.mm.config.paging.mapCycles);
    const [start, end] = this.#wholePages(address, lengthBytes);
    protectAreas(this, start, end, access === 'readWrite');
    return true;
  }

  /** madvise(2). @returns an errno, or undefined: EINVAL for pages that must stay, ENOMEM for a hole or lack of memory */
  advise(address: number, lengthBytes: number, advice: Advice): 'EINVAL' | 'ENOMEM' | undefined {
    this.mm.platform.charge('memory', this.mm.config.paging.mapCycles);
    if (!this.isMapped(address, lengthBytes)) return 'ENOMEM';
    const [start, end] = this.#wholePages(address, lengthBytes);
    if (advice === 'populateWrite') return populate(this, start, end, pageBytes) ? undefined : 'ENOMEM';
    return adviseAreas(this, start, end, advice);
  }

  /** Maps a window into device space. @returns its user address, with the offset in the page kept */
  mapDevice(busAddress: number, lengthBytes: number, kind: 'uncached' | 'writeCombining'): number {
    return this.#windows.map(busAddress, lengthBytes, kind);
  }

  /** Removes the rest of the window that {@link mapDevice} returned. @throws InvariantError for another address */
  unmapDevice(userAddress: number): void {
    this.#windows.unmap(userAddress);
  }

  /** Device windows now mapped. */
  get deviceWindowCount(): number {
    return this.#windows.count;
  }

  // Access.

  /**
   * Physical address of a user address for an access of the running thread: faulted in if necessary.
   * @returns -1 if the access is not allowed, or memory is exhausted; {@link accessLater} in a mode that asks again
   */
  access(address: number, isWrite: boolean, mode: AccessMode = userAccess, isAgain = false): number {
    for (let again = isAgain; ; again = false) {
      const flags = this.table.flagsAt(address);
      if ((flags & flagPresent) !== 0 && (!isWrite || (flags & flagWritable) !== 0)) {
        this.#walk(address, flags, isWrite);
        return this.table.translate(address);
      }
      const outcome = this.mm.faults.handle(this, address, isWrite ? accessWrite : accessRead, mode, again);
      if (outcome === faultLater) return accessLater;
      if (outcome !== faultDone) return -1;
    }
  }

  /** {@link access} for callers that keep the address: for writing if that is allowed. @returns -1 if nothing is mapped */
  locate(address: number): number {
    const flags = this.table.flagsAt(address);
    if ((flags & flagDevice) !== 0) return this.table.translate(address);
    if ((flags & flagWritable) !== 0) return this.access(address, true);
    const area = this.areas.find(address);
    return area === undefined || area.kind === 'device' ? -1 : this.access(address, area.isWritable);
  }

  /** Physical (or bus) address, or -1 if nothing is mapped or the page is in swap; untouched memory is the zero page. */
  translate(address: number): number {
    const present = this.table.translate(address);
    if (present >= 0) return present;
    const area = this.areas.find(address);
    if (area === undefined || area.file !== undefined || this.table.flagsAt(address) !== 0) return -1;
    return this.mm.zeroFrame * pageBytes + pageOffsetOf(address);
  }

  /** Whether every page of a range is mapped to memory. */
  isMapped(address: number, lengthBytes: number): boolean {
    return this.areas.covers(address, address + lengthBytes, ({ kind }) => kind !== 'device');
  }

  isWritable(address: number, lengthBytes: number): boolean {
    return this.areas.covers(
      address,
      address + lengthBytes,
      ({ kind, isWritable }) => kind !== 'device' && isWritable,
    );
  }

  /** Reads across pages. @returns false, and reads nothing, if some page is not mapped */
  read(address: number, target: Uint8Array): boolean {
    return readBytes(this, address, target);
  }

  /** Writes across pages. @returns false, and writes nothing, if some page is not mapped writable */
  write(address: number, source: Uint8Array): boolean {
    return writeBytes(this, address, source);
  }

  // Pins.

  /**
   * Pins the pages that a range touches, for as long as a device needs them (FOLL_LONGTERM).
   * @returns them, or EFAULT if some page is not memory or must not be written, ENOMEM if the limit would be exceeded or memory
   *   is exhausted
   */
  pin(address: number, lengthBytes: number, access: PinAccess = 'write'): PinnedPages | 'EFAULT' | 'ENOMEM' {
    return this.pinTable.pin(address, lengthBytes, access);
  }

  /** Releases a pin; pages pinned for writing are dirty. @throws InvariantError if it was already released */
  unpin(pinned: PinnedPages): void {
    this.pinTable.unpin(pinned);
  }

  /** Unreleased pins, for a leak check. */
  get pins(): readonly PinnedPages[] {
    return this.pinTable.all;
  }

  /** Memory now pinned, every pin counted. */
  get pinnedBytes(): number {
    return this.pinTable.pinnedBytes;
  }

  // Lifecycle.

  /** Calls `listener` before translations of this process are removed. Returns a function that cancels it. */
  onInvalidate(listener: InvalidationListener): () => void {
    return this.notifiers.add(listener);
  }

  /** Fills `child` with the memory that a fork inherits. @returns false (ENOMEM): the child has nothing */
  fork(child: AddressSpace): boolean {
    child.#nextAddress = this.#nextAddress;
    if (forkSpace(this, child)) return true;
    child.release();
    return false;
  }

  /** Unmaps everything, as the end of a process does; pinned frames stay until they are unpinned. */
  release(): void {
    this.notify(userBase, userEnd, 'release');
    unmapRange(this, userBase, userEnd, true);
    this.#windows.clear();
    for (const tlb of this.mm.tlbs) tlb.dropSpace(this.id);
    this.cores.clear();
    this.mm.spaces.delete(this.id);
  }

  /** Reclaims pages of a killed process without other references. @returns the number of pages */
  reap(): number {
    return reapAreas(this);
  }

  /** Badness for the out-of-memory killer: pages in frames and in swap. */
  get badness(): number {
    return this.residentBytes / pageBytes + this.swappedPages;
  }

  // Page-table operations for the parts of memory management.

  /** Maps a frame; the caller has taken the mapping's reference. */
  enter(page: number, frame: number, flags: number): void {
    this.table.set(page, frame * pageBytes, flags);
    this.mm.reverse.add(frame, this.id, page);
    this.residentBytes += pageBytes;
  }

  /** Clears the entry of a present page and releases what it held. */
  drop(page: number): void {
    const flags = this.table.flagsAt(page);
    const frame = this.table.translate(page) / pageBytes;
    this.table.clear(page);
    if ((flags & flagDevice) !== 0 || frame === this.mm.zeroFrame) return;
    this.mm.reverse.remove(frame, this.id, page);
    if ((flags & flagDirty) !== 0) this.mm.pages.set(frame, pageDirty);
    if (this.mm.reverse.countOf(frame) === 0) this.mm.dropUnusedSlot(frame);
    const frameCount = (flags & flagHuge) === 0 ? 1 : pagesPerHugePage;
    for (let at = frame; at < frame + frameCount; at++) this.mm.release(at);
    this.residentBytes -= frameCount * pageBytes;
  }

  /** Clears any kind of entry for a page. */
  clear(page: number): void {
    if ((this.table.flagsAt(page) & flagSwap) === 0) {
      this.drop(page);
      return;
    }
    const slot = this.table.slotAt(page);
    this.takeFromSwap(page);
    this.mm.releaseSlot(slot);
  }

  /** The page is now in a swap slot; the caller has counted the slot's user. */
  noteSwapped(page: number, slot: number): void {
    this.table.setSwap(page, slot);
    this.swappedPages++;
  }

  /** The page is no longer in a swap slot. */
  takeFromSwap(page: number): void {
    this.table.clear(page);
    this.swappedPages--;
  }

  /** A translation was replaced: no TLB may hold the old one. */
  flushPage(page: number): void {
    const gather = new TlbGather(this.mm, this);
    gather.add(page);
    gather.finish();
  }

  notify(start: number, end: number, reason: InvalidateReason): void {
    this.notifiers.invalidate(start, end, reason);
  }

  /** A subscriber's device may reach the page, and needs time to release it. */
  isHeldByDevice(page: number): boolean {
    return this.notifiers.isHeld(page);
  }

  /** Notifies subscribers that reclaim wants the page. */
  askForPage(page: number): boolean {
    return this.notifiers.askFor(page);
  }

  /** Reserves a range of user addresses, followed by an unmapped page that catches overruns. */
  takeAddresses(sizeBytes: number, alignment: number = pageBytes): number {
    let address = roundUp(this.#nextAddress, alignment);
    for (;;) {
      const [inTheWay] = this.areas.overlapping(address, address + sizeBytes);
      if (inTheWay === undefined) break;
      address = roundUp(inTheWay.end + pageBytes, alignment);
    }
    this.#nextAddress = address + sizeBytes + pageBytes;
    return address;
  }

  /** Reserves addresses up to `end`, if the gap is free. @returns whether that succeeded */
  extendAddresses(area: Vma, end: number): boolean {
    if (this.areas.overlapping(area.end, end).length > 0) return false;
    this.#nextAddress = Math.max(this.#nextAddress, end + pageBytes);
    return true;
  }

  /** Bounds of the pages that a range touches; huge pages, and repeating areas, are included as a whole. */
  #wholePages(address: number, lengthBytes: number): [start: number, end: number] {
    const boundsAt = (at: number): [start: number, end: number] => {
      const area = this.areas.find(at);
      if (area !== undefined && area.stretchBytes > 0) return [area.start, area.end];
      const size = area?.pageSize ?? pageBytes;
      const start = at - (at % size);
      return [start, start + size];
    };
    const last = Math.max(address, address + lengthBytes - 1);
    return [boundsAt(address)[0], boundsAt(last)[1]];
  }

  /** The core looks the translation up; a miss walks the table, which marks the page accessed, and dirty for a write. */
  #walk(address: number, flags: number, isWrite: boolean): void {
    const { platform, counts, config, tlbs } = this.mm;
    const core = platform.runningCore();
    if (core >= 0) {
      const page = pageNumberOf(address);
      if (tlbs[core]!.holds(this.id, page, isWrite)) return;
      counts.tlbMisses++;
      platform.charge('memory', config.tlb.walkCycles);
      tlbs[core]!.fill(this.id, page, (flags & flagHuge) !== 0, isWrite);
      this.cores.add(core);
    }
    this.table.setFlags(address, flags | flagAccessed | (isWrite ? flagDirty : 0));
  }
}

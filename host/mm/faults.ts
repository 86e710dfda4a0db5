/**
 * Page faults: the missing page of an access, and its replacement.
 *
 *     no area, or no right ─► SIGSEGV                        after the end of a file ─► SIGBUS
 *     anonymous, nothing there ── read ─► the zero page      ── write ─► a new zeroed page
 *     swap entry ── in the swap cache ─► mapped again        ── else ─► read from the swap device (major)
 *     file ── in the page cache ─► mapped                    ── else ─► read from its device (major)
 *     write to a page without the right to ── own ─► the right is granted ── shared ─► a copy (copy on write)
 *
 * A page is a process's own when it is marked exclusive, or when its one mapping (and the swap cache) is all that
 * references it. Source: Linux mm/memory.c, handle_pte_fault and do_wp_page.
 */

import { type AccessMode, frameLater } from './access-mode.ts';
import type { AddressSpace } from './address-space.ts';
import { inactiveAnonymous, inactiveFile } from './lru.ts';
import type { MemoryFile } from './memory-file.ts';
import type { MemoryManager } from './memory-manager.ts';
import { hugePageBytes, pageBytes, pagesPerHugePage } from './page.ts';
import { flagAccessed, flagDirty, flagHuge, flagPresent, flagSwap, flagWritable } from './page-table.ts';
import { pageAnonymous, pageDirty, pageExclusive, pageStable } from './pages.ts';
import type { Vma } from './vma.ts';

/** Purpose of an access. `own`: to read, in a page in which later writes of the process are visible (FAULT_FLAG_UNSHARE). */
export const accessRead = 0;
export const accessWrite = 1;
export const accessOwn = 2;

/** Outcomes of a fault. */
export const faultDone = 0;
const faultSegmentation = 1;
const faultBus = 2;
export const faultNoMemory = 3;
/** The caller must ask again at {@link MemoryManager.retryPs}. */
export const faultLater = 4;

export class FaultHandler {
  readonly #mm: MemoryManager;
  #isMajor = false;

  constructor(mm: MemoryManager) {
    this.#mm = mm;
  }

  /**
   * Makes the page of `address` present for an access.
   * @param isAgain the access has faulted before and was answered `later`: it is not counted twice
   */
  handle(space: AddressSpace, address: number, access: number, mode: AccessMode, isAgain = false): number {
    const { counts, platform, config } = this.#mm;
    const area = space.areas.find(address);
    const isAllowed = access === accessWrite ? area?.isWritable : area?.isReadable;
    if (area === undefined || area.kind === 'device' || isAllowed !== true || space.isKilled) {
      counts.segmentationFaults++;
      return faultSegmentation;
    }
    this.#isMajor = false;
    platform.charge('memory', config.paging.minorFaultCycles);
    const outcome = this.#resolve(space, area, address - (address % area.pageSize), access, mode);
    if (outcome === faultBus) counts.busErrors++;
    if (this.#isMajor) {
      counts.majorFaults++;
      platform.charge('memory', config.paging.majorFaultCycles);
    } else if (outcome === faultDone && !isAgain) {
      counts.minorFaults++;
    }
    return outcome;
  }

  #resolve(space: AddressSpace, area: Vma, page: number, access: number, mode: AccessMode): number {
    const flags = space.table.flagsAt(page);
    if ((flags & flagPresent) !== 0) {
      if (access === accessRead || (access === accessWrite && (flags & flagWritable) !== 0)) return faultDone;
      return this.#breakSharing(space, area, page, access, mode);
    }
    if ((flags & flagSwap) !== 0) return this.#fromSwap(space, area, page, access, mode);
    if (area.pageSize === hugePageBytes) return this.#newHugePage(space, area, page, access);
    if (area.file !== undefined) return this.#fromFile(space, area, area.file, page, access, mode);
    if (access !== accessRead) return this.#newPage(space, area, page, access, mode);
    this.#mm.counts.zeroPageFaults++;
    space.table.set(page, this.#mm.zeroFrame * pageBytes, flagAccessed);
    return faultDone;
  }

  #newPage(space: AddressSpace, area: Vma, page: number, access: number, mode: AccessMode): number {
    const frame = this.#mm.allocate(mode);
    if (frame < 0) return frame === frameLater ? faultLater : faultNoMemory;
    if (space.isKilled) return this.#tooLate(frame);
    this.#chargeZeroing(1);
    this.#enterOwn(space, area, page, frame, access);
    return faultDone;
  }

  #newHugePage(space: AddressSpace, area: Vma, page: number, access: number): number {
    const frame = this.#mm.allocateRun(pagesPerHugePage, pagesPerHugePage);
    if (frame < 0) return faultBus;
    this.#chargeZeroing(pagesPerHugePage);
    this.enterHuge(space, area, page, frame, access === accessWrite);
    return faultDone;
  }

  /** Maps a huge page that is exclusive to the process. */
  enterHuge(space: AddressSpace, area: Vma, page: number, frame: number, isWrite: boolean): void {
    for (let at = frame; at < frame + pagesPerHugePage; at++)
      this.#mm.pages.start(at, pageAnonymous | pageExclusive | pageStable);
    const rights = (area.isWritable ? flagWritable : 0) | (isWrite ? flagDirty : 0);
    space.table.set(page, frame * pageBytes, flagHuge | flagAccessed | rights);
    this.#mm.reverse.add(frame, space.id, page);
    space.residentBytes += hugePageBytes;
  }

  /** A write to, or a pin of, a page that is mapped without that right. */
  #breakSharing(space: AddressSpace, area: Vma, page: number, access: number, mode: AccessMode): number {
    const { pages, counts } = this.#mm;
    const frame = space.table.translate(page) / pageBytes;
    if (!area.isPrivate) {
      if (access === accessWrite) this.#allowWrite(space, page, frame);
      return faultDone;
    }
    const isAnonymous = frame !== this.#mm.zeroFrame && pages.has(frame, pageAnonymous);
    if (isAnonymous && (pages.has(frame, pageExclusive) || this.#isLastUser(frame))) {
      counts.reusedPages++;
      pages.set(frame, pageExclusive);
      if (access === accessWrite) this.#allowWrite(space, page, frame);
      return faultDone;
    }
    if ((space.table.flagsAt(page) & flagHuge) !== 0) return this.#copyHuge(space, area, page, frame, access);
    return this.#copy(space, area, page, frame, access, mode);
  }

  #isLastUser(frame: number): boolean {
    const { frames, swap, reverse } = this.#mm;
    return reverse.countOf(frame) === 1 && frames.referencesOf(frame) === (swap.slotOf(frame) >= 0 ? 2 : 1);
  }

  #allowWrite(space: AddressSpace, page: number, frame: number): void {
    space.table.setFlags(page, space.table.flagsAt(page) | flagWritable | flagAccessed | flagDirty);
    this.#mm.dropSwapCache(frame);
    if (this.#mm.pages.fileOf(frame) !== undefined) this.#mm.pages.set(frame, pageDirty);
  }

  #copy(space: AddressSpace, area: Vma, page: number, old: number, access: number, mode: AccessMode): number {
    const { frames, memory, counts, config, platform } = this.#mm;
    const isZero = old === this.#mm.zeroFrame;
    if (!isZero) frames.reference(old);
    const frame = this.#mm.allocate(mode);
    const isChanged = space.table.translate(page) !== old * pageBytes;
    if (frame >= 0 && !isChanged && !space.isKilled) {
      if (isZero) this.#chargeZeroing(1);
      else {
        memory.bytes.copyWithin(frame * pageBytes, old * pageBytes, (old + 1) * pageBytes);
        counts.copiedPages++;
        platform.charge('memory', config.paging.copyPageCycles);
      }
      space.notify(page, page + pageBytes, 'clear');
      space.drop(page);
      this.#enterOwn(space, area, page, frame, access);
      space.flushPage(page);
    }
    if (!isZero) this.#mm.release(old);
    if (frame < 0) return frame === frameLater ? faultLater : faultNoMemory;
    return isChanged || space.isKilled ? this.#tooLate(frame) : faultDone;
  }

  /** The process was killed while memory was reclaimed for it. */
  #tooLate(frame: number): number {
    this.#mm.release(frame);
    return faultNoMemory;
  }

  #copyHuge(space: AddressSpace, area: Vma, page: number, old: number, access: number): number {
    const frame = this.#mm.allocateRun(pagesPerHugePage, pagesPerHugePage);
    if (frame < 0) return faultBus;
    this.copyHugeInto(old, frame);
    this.#mm.counts.copiedPages += pagesPerHugePage;
    space.notify(page, page + hugePageBytes, 'clear');
    space.drop(page);
    this.enterHuge(space, area, page, frame, access === accessWrite);
    space.flushPage(page);
    return faultDone;
  }

  /** Copies a huge page. */
  copyHugeInto(old: number, frame: number): void {
    const { memory, platform, config } = this.#mm;
    memory.bytes.copyWithin(frame * pageBytes, old * pageBytes, old * pageBytes + hugePageBytes);
    platform.charge('memory', config.paging.copyPageCycles * pagesPerHugePage);
  }

  #fromSwap(space: AddressSpace, area: Vma, page: number, access: number, mode: AccessMode): number {
    const { swap, pages, reverse, frames } = this.#mm;
    const slot = space.table.slotAt(page);
    const frame = this.#readSlot(slot, mode);
    if (frame < 0) return frame === frameLater ? faultLater : faultNoMemory;
    if (!this.#mm.waitFor(swap.readyPsOf(slot), mode)) return faultLater;
    const isOwn = swap.usersOf(slot) === 1 && reverse.countOf(frame) === 0;
    frames.reference(frame);
    space.takeFromSwap(page);
    const isWrite = access === accessWrite && isOwn;
    const rights = isWrite ? flagWritable | flagDirty : 0;
    space.enter(page, frame, flagAccessed | rights);
    if (isOwn) pages.set(frame, pageExclusive);
    else pages.clear(frame, pageExclusive);
    swap.release(slot);
    // A clean page keeps its slot while swap is less than half full (vm_swap_full).
    const isFull = swap.usedCount * 2 > swap.slotCount;
    if (isOwn && (isWrite || isFull)) {
      this.#mm.dropSwapCache(frame);
      pages.set(frame, pageDirty);
    }
    if (area.isStable) this.#keep(frame);
    if (access === accessRead || isWrite || (access === accessOwn && isOwn)) return faultDone;
    return this.#breakSharing(space, area, page, access, mode);
  }

  /** The frame of a slot's page: found in the swap cache, or read. */
  #readSlot(slot: number, mode: AccessMode): number {
    const { swap, memory, lru, pages, counts, swapDevice, platform } = this.#mm;
    const cached = swap.frameOf(slot);
    if (cached >= 0) return cached;
    const frame = this.#mm.allocate(mode);
    if (frame < 0) return frame;
    memory.bytes.set(swap.contentOf(slot), frame * pageBytes);
    pages.start(frame, pageAnonymous);
    lru.put(frame, inactiveAnonymous);
    swap.cache(slot, frame, swapDevice.read(platform.instantPs(), pageBytes));
    counts.swappedInPages++;
    this.#isMajor = true;
    return frame;
  }

  #fromFile(
    space: AddressSpace,
    area: Vma,
    file: MemoryFile,
    page: number,
    access: number,
    mode: AccessMode,
  ): number {
    const index = Math.floor(area.fileOffsetOf(page) / pageBytes);
    if (index >= file.pageCount) return faultBus;
    const frame = this.#filePage(file, index, mode);
    if (frame < 0) return frame === frameLater ? faultLater : faultNoMemory;
    if (!this.#mm.waitFor(file.readyPsOf(index, this.#mm.platform.epochUs), mode)) return faultLater;
    this.#mm.frames.reference(frame);
    const isSharedWrite = access === accessWrite && area.isShared;
    space.enter(page, frame, flagAccessed | (isSharedWrite ? flagWritable | flagDirty : 0));
    if (isSharedWrite) this.#mm.pages.set(frame, pageDirty);
    if (access === accessRead || area.isShared) return faultDone;
    return this.#copy(space, area, page, frame, access, mode);
  }

  /** The frame of a file's page: found in the page cache, read, or new (shared memory). */
  #filePage(file: MemoryFile, index: number, mode: AccessMode): number {
    const { lru } = this.#mm;
    const cached = file.frames[index]!;
    if (cached >= 0) {
      if (!file.isShared && lru.listOf(cached) === inactiveFile) this.#mm.markReferenced(cached);
      return cached;
    }
    return file.isShared ? this.#sharedPage(file, index, mode) : this.#readFilePage(file, index, mode);
  }

  #readFilePage(file: MemoryFile, index: number, mode: AccessMode): number {
    const { memory, lru, pages, counts, fileDevice, platform } = this.#mm;
    const frame = this.#mm.allocate(mode);
    if (frame < 0) return frame;
    memory.bytes.set(file.stored!.subarray(index * pageBytes, (index + 1) * pageBytes), frame * pageBytes);
    pages.start(frame, 0);
    this.#adopt(file, index, frame);
    lru.put(frame, inactiveFile);
    file.setReady(index, fileDevice.read(platform.instantPs(), pageBytes), platform.epochUs);
    counts.filePagesRead++;
    this.#isMajor = true;
    return frame;
  }

  #sharedPage(file: MemoryFile, index: number, mode: AccessMode): number {
    const { lru, pages, swap, frames, platform } = this.#mm;
    const slot = file.slots[index]!;
    if (slot < 0) {
      const frame = this.#mm.allocate(mode);
      if (frame < 0) return frame;
      this.#chargeZeroing(1);
      pages.start(frame, pageDirty);
      this.#adopt(file, index, frame);
      lru.put(frame, inactiveAnonymous);
      return frame;
    }
    const frame = this.#readSlot(slot, mode);
    if (frame < 0) return frame;
    file.setReady(index, swap.readyPsOf(slot), platform.epochUs);
    file.slots[index] = -1;
    frames.reference(frame);
    swap.release(slot);
    this.#mm.dropSwapCache(frame);
    pages.clear(frame, pageAnonymous | pageExclusive);
    pages.set(frame, pageDirty);
    this.#adopt(file, index, frame);
    return frame;
  }

  #adopt(file: MemoryFile, index: number, frame: number): void {
    file.frames[index] = frame;
    this.#mm.pages.setFile(frame, file, index);
  }

  /** Maps a page that is exclusive to the process. */
  #enterOwn(space: AddressSpace, area: Vma, page: number, frame: number, access: number): void {
    const { pages, lru } = this.#mm;
    pages.start(frame, pageAnonymous | pageExclusive | pageDirty);
    const isWrite = access === accessWrite;
    space.enter(page, frame, flagAccessed | (isWrite ? flagWritable | flagDirty : 0));
    if (area.isStable) this.#keep(frame);
    else lru.put(frame, inactiveAnonymous);
  }

  /** The page stays in memory (it leaves the lists of reclaim). */
  #keep(frame: number): void {
    this.#mm.pages.set(frame, pageStable);
    this.#mm.lru.take(frame);
  }

  #chargeZeroing(pageCount: number): void {
    const { counts, platform, config } = this.#mm;
    counts.zeroedPages += pageCount;
    platform.charge('memory', config.paging.zeroPageCycles * pageCount);
  }
}

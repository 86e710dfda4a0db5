/**
 * The memory management of one host: frames, their contents and mappings, and how they become free.
 *
 *     AddressSpace ── faults ──┐
 *                   pins       ├─ allocate ─ PageFrames          ┌─ kswapd below "low"
 *                   fork       │      └── too few: Reclaim ──────┤
 *                              │                                 └─ the faulting thread itself below "min"
 *                              └─ Pages, ReverseMap, LruLists, SwapArea, page cache
 *
 * Promises: a frame that is pinned is neither reclaimed nor migrated; a frame is freed with its last reference; the contents of
 * a page are preserved, wherever the page is stored meanwhile.
 */
import type { Picoseconds } from '../../base/index.ts';
import type { PhysicalMemory } from '../physical-memory.ts';
import { type AccessMode, frameLater, kernelAccess, noFrame } from './access-mode.ts';
import { AddressSpace } from './address-space.ts';
import type { MmPlatform } from './bare-platform.ts';
import { BlockDevice } from './block-device.ts';
import { FaultHandler } from './faults.ts';
import { LruLists } from './lru.ts';
import type { MemoryFile } from './memory-file.ts';
import { MemoryStatistics } from './memory-statistics.ts';
import type { MmConfig } from './mm-parameters.ts';
import { killForMemory } from './oom.ts';
import { pageBytes } from './page.ts';
import type { PageFrames } from './page-frames.ts';
import { Pages, pageReferenced } from './pages.ts';
import { Reclaim } from './reclaim.ts';
import { ReverseMap } from './reverse-map.ts';
import { SwapArea } from './swap-area.ts';
import { Tlb } from './tlb.ts';

export interface MemoryManagerOptions {
  readonly memory: PhysicalMemory;
  readonly frames: PageFrames;
  readonly config: MmConfig;
  readonly platform: MmPlatform;
  readonly coreCount: number;
}

const bytesPerKib = 1024;

export class MemoryManager {
  readonly memory: PhysicalMemory;
  readonly frames: PageFrames;
  readonly config: MmConfig;
  readonly platform: MmPlatform;
  readonly counts = new MemoryStatistics();
  readonly pages: Pages;
  readonly lru: LruLists;
  readonly reverse: ReverseMap;
  readonly swap: SwapArea;
  readonly swapDevice: BlockDevice;
  readonly fileDevice: BlockDevice;
  readonly tlbs: readonly Tlb[];
  readonly faults: FaultHandler;
  readonly reclaim: Reclaim;
  readonly spaces = new Map<number, AddressSpace>();
  /** The page that backs all untouched anonymous memory. */
  readonly zeroFrame: number;
  /** Watermarks in frames. */
  readonly minFrames: number;
  readonly lowFrames: number;
  readonly highFrames: number;
  /** After an answer "later": when to ask again. */
  retryPs = 0;
  #spaceCount = 0;

  constructor({ memory, frames, config, platform, coreCount }: MemoryManagerOptions) {
    this.memory = memory;
    this.frames = frames;
    this.config = config;
    this.platform = platform;
    this.pages = new Pages();
    this.lru = new LruLists();
    this.reverse = new ReverseMap();
    this.swap = new SwapArea(config.swap.sizeMib);
    this.swapDevice = new BlockDevice(config.swap);
    this.fileDevice = new BlockDevice(config.fileDevice);
    this.tlbs = Array.from({ length: coreCount }, () => new Tlb(config.tlb.entries, config.tlb.ways));
    this.faults = new FaultHandler(this);
    this.reclaim = new Reclaim(this);
    this.zeroFrame = frames.reservedCount - 1;
    const { minFreeKib } = config.paging;
    const computedKib = Math.floor(4 * Math.sqrt(memory.sizeBytes / bytesPerKib));
    this.minFrames = Math.floor(((minFreeKib === 0 ? computedKib : minFreeKib) * bytesPerKib) / pageBytes);
    this.lowFrames = this.minFrames + Math.floor(this.minFrames / 4);
    this.highFrames = this.minFrames + Math.floor(this.minFrames / 2);
  }

  /** A new, empty address space. @param memlockLimitBytes Infinity for no limit */
  newSpace(memlockLimitBytes = Number.POSITIVE_INFINITY): AddressSpace {
    const space = new AddressSpace(this, ++this.#spaceCount, memlockLimitBytes);
    this.spaces.set(space.id, space);
    return space;
  }

  /** Memory of all processes in frames. */
  get residentBytes(): number {
    let bytes = 0;
    for (const space of this.spaces.values()) bytes += space.residentBytes;
    return bytes;
  }

  /** Pages that can exist at all: the limit of an mmap (heuristic overcommit). */
  get reachablePages(): number {
    return this.frames.allocatableCount + this.swap.slotCount;
  }

  /**
   * Allocates one zeroed frame with one reference for a page of user memory, reclaiming others if necessary.
   * @returns its number, {@link noFrame} if none can be had, or {@link frameLater}
   */
  allocate(mode: AccessMode): number {
    const { frames, platform } = this;
    if (frames.freeCount > this.lowFrames) return frames.allocate();
    this.reclaim.completeWriteback(platform.instantPs());
    if (frames.freeCount <= this.lowFrames) platform.wakeReclaim();
    if (frames.freeCount > this.minFrames) return frames.allocate();
    for (;;) {
      const answer = this.reclaim.direct(1, mode);
      if (answer === 'later') return frameLater;
      if (answer === 'enough') return frames.allocate();
      if (!mode.isUser || !killForMemory(this)) {
        this.counts.allocationFailures++;
        return noFrame;
      }
    }
  }

  /** Frames for the kernel, physically contiguous. @returns the first one's number, or -1 (ENOMEM) */
  allocateRun(count: number, alignment = 1): number {
    const { frames } = this;
    if (frames.freeCount - count < this.minFrames) this.reclaim.direct(count, kernelAccess);
    let first = frames.freeCount - count < this.minFrames ? -1 : frames.allocateRun(count, alignment);
    if (first < 0 && frames.freeCount - count >= this.minFrames && this.reclaim.compact(count, alignment)) {
      first = frames.allocateRun(count, alignment);
    }
    if (first < 0) this.counts.allocationFailures++;
    return first;
  }

  /** Waits for an instant as the mode allows. @returns false if the caller must ask again at {@link retryPs} */
  waitFor(atPs: Picoseconds, mode: AccessMode): boolean {
    if (atPs <= this.platform.instantPs()) return true;
    if (mode.waitsInPlace) {
      this.platform.waitUntil(atPs);
      return true;
    }
    this.retryPs = atPs;
    return false;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.retryPs -= ps;
    this.swap.rebase(ps);
    this.swapDevice.rebase(ps);
    this.fileDevice.rebase(ps);
    this.reclaim.rebase(ps);
  }

  /** Called by the platform at a requested instant. */
  writebackDue(): void {
    this.reclaim.completeWriteback(this.platform.instantPs());
  }

  /** Drops a reference; a frame that becomes free leaves all lists. */
  release(frame: number): void {
    if (this.frames.referencesOf(frame) === 1) {
      this.lru.take(frame);
      this.pages.start(frame, 0);
    }
    this.frames.release(frame);
  }

  /** Detaches an anonymous frame from its swap slot: it is about to be written, or its slot has no other user. */
  dropSwapCache(frame: number): void {
    if (this.swap.slotOf(frame) < 0) return;
    this.swap.uncache(frame);
    this.release(frame);
  }

  /** Releases a slot that only the swap cache still holds, when the last mapping of its page is removed. */
  dropUnusedSlot(frame: number): void {
    const slot = this.swap.slotOf(frame);
    if (slot >= 0 && this.swap.usersOf(slot) === 0) this.dropSwapCache(frame);
  }

  /** Removes one user of a swap slot. */
  releaseSlot(slot: number): void {
    const frame = this.swap.release(slot);
    if (frame >= 0 && this.reverse.countOf(frame) === 0) this.dropSwapCache(frame);
  }

  /** Removes one user of a file or shared-memory object; shared memory without users is freed. */
  releaseFile(file: MemoryFile): void {
    if (--file.users > 0 || !file.isShared) return;
    for (let index = 0; index < file.pageCount; index++) {
      const frame = file.frames[index]!;
      if (frame >= 0) {
        file.frames[index] = -1;
        this.pages.clearFile(frame);
        if (this.swap.slotOf(frame) >= 0) this.dropSwapCache(frame);
        this.release(frame);
      }
      if (file.slots[index]! >= 0) {
        this.releaseSlot(file.slots[index]!);
        file.slots[index] = -1;
      }
    }
  }

  /** Marks a page as used through a file descriptor or by a fault without an entry. */
  markReferenced(frame: number): void {
    this.pages.set(frame, pageReferenced);
  }
}

/**
 * Reclaim: takes frames from the pages used least.
 *
 *     inactive list, oldest first ── pinned or busy ──────────────► back to the head, untouched
 *                                 ── accessed since last scan ───► once: head of inactive; twice: active   (second chance)
 *                                 ── anonymous ─ swap slot ─ entries become swap entries ─ dirty: write ─ free
 *                                 ── file ────── entries go ──────────────────────────── dirty: write ─ free
 *     active list, oldest first ───────────────────────────────► inactive, while that is the shorter
 *
 * Direct: a thread that wants a frame below the watermark "min" does it itself. kswapd: below "low" until "high". A page being
 * written keeps its frame until the device has acknowledged; a fault meanwhile finds it in the swap cache. Source: Linux
 * mm/vmscan.c.
 */

import type { Picoseconds } from '../../base/index.ts';
import type { AccessMode } from './access-mode.ts';
import { ascendingWindows } from './compaction.ts';
import { activeAnonymous, activeFile, inactiveAnonymous, inactiveFile } from './lru.ts';
import type { MemoryManager } from './memory-manager.ts';
import { pageBytes } from './page.ts';
import { flagAccessed, flagDirty } from './page-table.ts';
import { pageAnonymous, pageDirty, pageReferenced, pageStable, pageWriteback } from './pages.ts';
import { TlbGather } from './tlb-gather.ts';

/** Pages that one step tries to free (SWAP_CLUSTER_MAX). */
const batchPages = 32;
/** Each round of direct reclaim scans twice the share of the lists (DEF_PRIORITY). */
const firstPriority = 12;
const swappinessMax = 200;

export type DirectAnswer = 'enough' | 'none' | 'later';

export class Reclaim {
  /** Frames whose page is being written to a device. */
  readonly #writeback: { readonly frame: number; donePs: Picoseconds }[] = [];
  readonly #mm: MemoryManager;
  #turn = 0;

  constructor(mm: MemoryManager) {
    this.#mm = mm;
  }

  /** Frees frames for a thread that needs `count` above the watermark "min". */
  direct(count: number, mode: AccessMode): DirectAnswer {
    const { frames, platform, counts, minFrames } = this.#mm;
    const isEnough = (): boolean => frames.freeCount - count >= minFrames;
    counts.directReclaims++;
    for (let priority = firstPriority; ; ) {
      this.completeWriteback(platform.instantPs());
      if (isEnough()) return 'enough';
      // Enough pages are already being written: no more are reclaimed.
      const isOnItsWay = frames.freeCount + this.#writeback.length - count >= minFrames;
      const taken = isOnItsWay ? 0 : this.shrink(batchPages, priority);
      if (isEnough()) return 'enough';
      if (this.#writeback.length > 0) {
        if (!this.#mm.waitFor(this.#writeback[0]!.donePs, mode)) return 'later';
      } else if (taken === 0 && --priority < 0) {
        return 'none';
      }
    }
  }

  /** Instant at which the oldest write completes, Infinity if none is in progress. */
  get writebackDonePs(): Picoseconds {
    return this.#writeback[0]?.donePs ?? Number.POSITIVE_INFINITY;
  }

  /** Frames that will be free when all writes are done. */
  get writebackCount(): number {
    return this.#writeback.length;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (const write of this.#writeback) write.donePs -= ps;
  }

  /** Reclaims up to `wanted` pages. @returns how many: free now, or when they are written */
  shrink(wanted: number, priority: number): number {
    let taken = 0;
    const scanLimit = this.#scanLimit(priority);
    for (let scanned = 0; scanned < scanLimit && taken < wanted; scanned++) {
      const list = this.#nextList();
      if (list < 0) break;
      this.#refillInactive(list);
      const frame = this.#mm.lru.oldest(list);
      if (frame < 0) continue;
      this.#mm.counts.scannedPages++;
      if (this.#takeOne(frame, list)) taken++;
    }
    const { platform, config } = this.#mm;
    platform.charge('reclaim', scanLimit === 0 ? 0 : taken * config.paging.reclaimPageCycles);
    return taken;
  }

  /** Frees the frames of writes completed by an instant. */
  completeWriteback(atPs: Picoseconds): void {
    const { frames, pages, swap, reverse, lru } = this.#mm;
    while (this.#writeback.length > 0 && this.#writeback[0]!.donePs <= atPs) {
      const { frame } = this.#writeback.shift()!;
      pages.clear(frame, pageWriteback);
      const isUnused = reverse.countOf(frame) === 0 && frames.pinsOf(frame) === 0;
      if (isUnused && frames.referencesOf(frame) === 2 && !pages.has(frame, pageDirty)) {
        if (swap.slotOf(frame) >= 0) this.#mm.dropSwapCache(frame);
        else this.#dropFromFile(frame);
      } else if (frames.referencesOf(frame) > 1 && lru.listOf(frame) < 0) {
        lru.put(frame, pages.has(frame, pageAnonymous) ? activeAnonymous : activeFile);
      }
      this.#mm.release(frame);
    }
  }

  /**
   * Makes a run of free frames by moving the pages in the cheapest window (compaction). Pages that are pinned or have
   * references besides their mappings do not move.
   */
  compact(count: number, alignment: number): boolean {
    for (const first of ascendingWindows(this.#mm, count, alignment)) {
      if (this.#emptyWindow(first, count)) return true;
    }
    return false;
  }

  /** Moves a page to another frame. @returns false (EBUSY) if it is pinned or held otherwise */
  migrate(frame: number, target: number): boolean {
    const { pages, reverse, frames, memory, spaces, lru, platform, config } = this.#mm;
    if (!this.isMovable(frame)) return false;
    const mappings = reverse.of(frame);
    memory.bytes.copyWithin(target * pageBytes, frame * pageBytes, (frame + 1) * pageBytes);
    platform.charge('memory', config.paging.copyPageCycles);
    pages.start(target, pages.flagsOf(frame));
    for (const { space: id, address } of mappings) {
      const space = spaces.get(id)!;
      const gather = new TlbGather(this.#mm, space);
      space.notify(address, address + pageBytes, 'protect');
      const flags = space.table.flagsAt(address);
      reverse.remove(frame, id, address);
      space.table.set(address, target * pageBytes, flags);
      reverse.add(target, id, address);
      frames.reference(target);
      this.#mm.release(frame);
      gather.add(address);
      gather.finish();
    }
    lru.put(target, inactiveAnonymous);
    this.#mm.release(target);
    this.#mm.counts.migratedPages++;
    return true;
  }

  /** Anonymous, mapped, on a list, and held only by its mappings. */
  isMovable(frame: number): boolean {
    const { pages, reverse, frames, lru, swap } = this.#mm;
    const mapCount = reverse.countOf(frame);
    return (
      lru.listOf(frame) >= 0 &&
      pages.has(frame, pageAnonymous) &&
      !pages.has(frame, pageWriteback | pageStable) &&
      mapCount > 0 &&
      swap.slotOf(frame) < 0 &&
      frames.pinsOf(frame) === 0 &&
      frames.referencesOf(frame) === mapCount
    );
  }

  #emptyWindow(first: number, count: number): boolean {
    const { frames } = this.#mm;
    const moved: number[] = [];
    for (let frame = first; frame < first + count; frame++) {
      if (frames.referencesOf(frame) === 0) continue;
      const target = frames.allocateOutside(first, first + count);
      if (target < 0 || !this.migrate(frame, target)) {
        if (target >= 0) this.#mm.release(target);
        return false;
      }
      moved.push(target);
    }
    return true;
  }

  #scanLimit(priority: number): number {
    const { lru } = this.#mm;
    let total = 0;
    for (const list of [inactiveAnonymous, activeAnonymous, inactiveFile, activeFile])
      total += lru.lengthOf(list);
    return total === 0 ? 0 : Math.max(batchPages, Math.ceil(total / 2 ** priority));
  }

  /** Alternates between file and anonymous pages, by swappiness; uses the other kind if one has none. */
  #nextList(): number {
    const { lru, config, swap } = this.#mm;
    const files = lru.lengthOf(inactiveFile) + lru.lengthOf(activeFile);
    const anonymous =
      swap.slotCount > 0 ? lru.lengthOf(inactiveAnonymous) + lru.lengthOf(activeAnonymous) : 0;
    if (files + anonymous === 0) return -1;
    if (files === 0) return inactiveAnonymous;
    if (anonymous === 0) return inactiveFile;
    this.#turn = (this.#turn + config.paging.swappiness) % swappinessMax;
    return this.#turn < config.paging.swappiness ? inactiveAnonymous : inactiveFile;
  }

  /** Moves the oldest active pages over while active pages outnumber inactive ones. */
  #refillInactive(inactive: number): void {
    const { lru } = this.#mm;
    const active = inactive + 1;
    if (lru.lengthOf(active) <= lru.lengthOf(inactive)) return;
    const frame = lru.oldest(active);
    this.#clearAccessed(frame);
    lru.put(frame, inactive);
  }

  /** Scans the oldest inactive page. @returns whether it was reclaimed */
  #takeOne(frame: number, list: number): boolean {
    const { lru, pages, counts, platform, config } = this.#mm;
    platform.charge('reclaim', config.paging.scanPageCycles);
    if (!this.#isFreeToTake(frame)) {
      lru.put(frame, list);
      return false;
    }
    const accessed = this.#clearAccessed(frame);
    if (accessed > 0) {
      const isSecond = pages.has(frame, pageReferenced) || accessed > 1;
      if (isSecond) counts.activatedPages++;
      if (isSecond) pages.clear(frame, pageReferenced);
      else pages.set(frame, pageReferenced);
      lru.put(frame, isSecond ? list + 1 : list);
      return false;
    }
    const file = pages.fileOf(frame);
    const isTaken =
      file === undefined || file.file.isShared ? this.#swapOut(frame) : this.#takeFilePage(frame);
    if (!isTaken) lru.put(frame, list + 1);
    return isTaken;
  }

  /** True if the frame is held only by its mappings and caches, and by no device. */
  #isFreeToTake(frame: number): boolean {
    const { frames, reverse, swap, pages, spaces } = this.#mm;
    if (frames.pinsOf(frame) > 0 || pages.has(frame, pageWriteback | pageStable)) return false;
    const caches = (swap.slotOf(frame) >= 0 ? 1 : 0) + (pages.fileOf(frame) === undefined ? 0 : 1);
    const mappings = reverse.of(frame);
    let isHeld = false;
    for (const { space, address } of mappings) {
      if (spaces.get(space)!.askForPage(address)) isHeld = true;
    }
    return !isHeld && frames.referencesOf(frame) === mappings.length + caches;
  }

  #clearAccessed(frame: number): number {
    const { reverse, spaces } = this.#mm;
    let count = 0;
    for (const { space: id, address } of reverse.of(frame)) {
      const { table } = spaces.get(id)!;
      const flags = table.flagsAt(address);
      if ((flags & flagAccessed) === 0) continue;
      count++;
      table.setFlags(address, flags & ~flagAccessed);
    }
    return count;
  }

  /** @returns false if swap is full */
  #swapOut(frame: number): boolean {
    const { swap, pages, counts, lru, frames, memory } = this.#mm;
    const content = memory.bytes.subarray(frame * pageBytes, (frame + 1) * pageBytes);
    let slot = swap.slotOf(frame);
    const isNew = slot < 0;
    if (isNew) {
      slot = swap.add(frame, content);
      if (slot < 0) {
        counts.swapFullRefusals++;
        return false;
      }
      frames.reference(frame);
    }
    const shared = pages.fileOf(frame);
    if (shared !== undefined) swap.reference(slot);
    const wasDirty = this.#unmap(frame, slot);
    if (shared !== undefined) {
      shared.file.frames[shared.index] = -1;
      shared.file.slots[shared.index] = slot;
      pages.clearFile(frame);
      this.#mm.release(frame);
    }
    lru.take(frame);
    if (!isNew && !wasDirty && !pages.has(frame, pageDirty)) {
      counts.droppedPages++;
      this.#mm.dropSwapCache(frame);
      return true;
    }
    swap.rewrite(slot, content);
    pages.clear(frame, pageDirty);
    counts.swappedOutPages++;
    this.#startWriteback(frame, this.#mm.swapDevice.write(this.#mm.platform.instantPs(), pageBytes));
    return true;
  }

  #takeFilePage(frame: number): boolean {
    const { pages, counts, lru, memory } = this.#mm;
    const wasDirty = this.#unmap(frame, -1);
    lru.take(frame);
    if (!wasDirty && !pages.has(frame, pageDirty)) {
      counts.droppedPages++;
      this.#dropFromFile(frame);
      return true;
    }
    const { file, index } = pages.fileOf(frame)!;
    const stored = file.stored!.subarray(index * pageBytes, (index + 1) * pageBytes);
    stored.set(memory.bytes.subarray(frame * pageBytes, frame * pageBytes + stored.length));
    pages.clear(frame, pageDirty);
    counts.filePagesWritten++;
    this.#startWriteback(frame, this.#mm.fileDevice.write(this.#mm.platform.instantPs(), pageBytes));
    return true;
  }

  #startWriteback(frame: number, donePs: Picoseconds): void {
    this.#mm.pages.set(frame, pageWriteback);
    this.#mm.frames.reference(frame);
    // Two devices: the list is kept in order of time.
    let at = this.#writeback.length;
    while (at > 0 && this.#writeback[at - 1]!.donePs > donePs) at--;
    this.#writeback.splice(at, 0, { frame, donePs });
    this.#mm.platform.callAt(donePs);
  }

  /** Removes a page from the page cache; its frame is free if it has no other reference. */
  #dropFromFile(frame: number): void {
    const entry = this.#mm.pages.fileOf(frame);
    if (entry === undefined) return;
    entry.file.frames[entry.index] = -1;
    this.#mm.pages.clearFile(frame);
    this.#mm.release(frame);
  }

  /** Removes all entries of a page, or turns them into entries of a swap slot. @returns whether one was dirty */
  #unmap(frame: number, slot: number): boolean {
    const { reverse, spaces, swap } = this.#mm;
    let wasDirty = false;
    for (const { space: id, address } of reverse.of(frame)) {
      const space = spaces.get(id)!;
      const gather = new TlbGather(this.#mm, space);
      space.notify(address, address + pageBytes, 'clear');
      if ((space.table.flagsAt(address) & flagDirty) !== 0) wasDirty = true;
      const isSwapped = slot >= 0 && this.#mm.pages.fileOf(frame) === undefined;
      // The slot gets its new user before the mapping that kept it is removed.
      if (isSwapped) swap.reference(slot);
      space.drop(address);
      if (isSwapped) space.noteSwapped(address, slot);
      gather.add(address);
      gather.finish();
    }
    return wasDirty;
  }
}

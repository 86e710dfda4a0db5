/**
 * Memory that a child inherits from its parent at fork.
 *
 *     area advised MADV_DONTFORK ─► nothing
 *     shared area ────────────────► the area; its pages are found on the next touch
 *     private page ── own, pinned ► a copy, at once: the parent keeps the frame that the device writes (Linux 5.12)
 *                  ── a device's ─► a copy as well: on-demand regions, until their device has released them
 *                  ── else ───────► both map it, neither may write it, it is no longer exclusive
 *     page in swap ───────────────► one more user of its slot
 *
 * Source: Linux mm/memory.c, copy_page_range.
 */

import { kernelAccess } from './access-mode.ts';
import type { AddressSpace } from './address-space.ts';
import { inactiveAnonymous } from './lru.ts';
import { hugePageBytes, pageBytes, pagesPerHugePage } from './page.ts';
import { flagAccessed, flagDirty, flagHuge, flagSwap, flagWritable } from './page-table.ts';
import { pageAnonymous, pageDirty, pageExclusive, pageStable } from './pages.ts';
import { TlbGather } from './tlb-gather.ts';
import type { Vma } from './vma.ts';

/** @returns false if memory ran out: the child has only part */
export function forkSpace(parent: AddressSpace, child: AddressSpace): boolean {
  const { counts, platform, config } = parent.mm;
  counts.forks++;
  platform.charge('memory', config.paging.forkCycles);
  const gather = new TlbGather(parent.mm, parent);
  let isComplete = true;
  for (const area of parent.areas.all) {
    if (area.isDontFork) continue;
    const copy = area.cut(area.start, area.end);
    copy.isStable = false;
    child.areas.insert(copy);
    if (area.file !== undefined) area.file.users++;
    if (area.kind !== 'device') child.mappedBytes += area.lengthBytes;
    if (area.isPrivate) parent.notify(area.start, area.end, 'protect');
    isComplete &&= copyArea(parent, child, area, gather);
  }
  gather.finish();
  return isComplete;
}

function copyArea(parent: AddressSpace, child: AddressSpace, area: Vma, gather: TlbGather): boolean {
  const { platform, config, swap } = parent.mm;
  let isComplete = true;
  parent.table.forEach(area.start, area.end, (page, value, flags) => {
    if (!isComplete) return;
    platform.charge('memory', config.paging.forkPageCycles);
    if (area.kind === 'device') child.table.set(page, value, flags);
    else if (area.isShared) return;
    else if ((flags & flagSwap) !== 0) {
      swap.reference(value);
      child.noteSwapped(page, value);
    } else isComplete = copyPage(parent, child, page, value / pageBytes, flags, gather);
  });
  return isComplete;
}

function copyPage(
  parent: AddressSpace,
  child: AddressSpace,
  page: number,
  frame: number,
  flags: number,
  gather: TlbGather,
): boolean {
  const { mm } = parent;
  if (frame === mm.zeroFrame) {
    child.table.set(page, frame * pageBytes, flagAccessed);
    return true;
  }
  const frameCount = (flags & flagHuge) === 0 ? 1 : pagesPerHugePage;
  const isHeld = mm.pages.has(frame, pageStable) && frameCount === 1;
  const isKept = isHeld || isPinned(parent, frame, frameCount) || isDevices(parent, page, frameCount);
  if (mm.pages.has(frame, pageAnonymous) && isKept) {
    return copyNow(child, page, frame, flags);
  }
  if ((flags & flagWritable) !== 0) {
    parent.table.setFlags(page, flags & ~flagWritable);
    gather.add(page);
  }
  for (let at = frame; at < frame + frameCount; at++) {
    mm.frames.reference(at);
    mm.pages.clear(at, pageExclusive);
  }
  child.table.set(page, frame * pageBytes, flags & ~(flagWritable | flagDirty));
  mm.reverse.add(frame, child.id, page);
  child.residentBytes += frameCount * pageBytes;
  return true;
}

function isPinned({ mm }: AddressSpace, frame: number, frameCount: number): boolean {
  for (let at = frame; at < frame + frameCount; at++) if (mm.frames.pinsOf(at) > 0) return true;
  return false;
}

/** The subscriber has been notified of the fork, but its device may still use the page. */
function isDevices(parent: AddressSpace, page: number, frameCount: number): boolean {
  for (let at = 0; at < frameCount; at++) if (parent.isHeldByDevice(page + at * pageBytes)) return true;
  return false;
}

/** The child gets its own page. */
function copyNow(child: AddressSpace, page: number, frame: number, flags: number): boolean {
  const { mm } = child;
  const area = child.areas.find(page)!;
  if ((flags & flagHuge) !== 0) {
    const huge = mm.allocateRun(pagesPerHugePage, pagesPerHugePage);
    if (huge < 0) return false;
    mm.faults.copyHugeInto(frame, huge);
    mm.faults.enterHuge(child, area, page, huge, true);
    mm.counts.forkCopiedPages += hugePageBytes / pageBytes;
    return true;
  }
  const copy = mm.allocate(kernelAccess);
  if (copy < 0) return false;
  mm.memory.bytes.copyWithin(copy * pageBytes, frame * pageBytes, (frame + 1) * pageBytes);
  mm.platform.charge('memory', mm.config.paging.copyPageCycles);
  mm.counts.forkCopiedPages++;
  mm.pages.start(copy, pageAnonymous | pageExclusive | pageDirty);
  child.enter(page, copy, flags & (flagWritable | flagAccessed));
  mm.lru.put(copy, inactiveAnonymous);
  return true;
}

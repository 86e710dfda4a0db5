/** Changes of whole ranges of an address space: unmapping, rights, moving. Subscribers are notified before, the TLBs are flushed once after. */
import { roundUp } from '../../base/index.ts';
import type { AddressSpace } from './address-space.ts';
import { pageBytes } from './page.ts';
import { flagDevice, flagHuge, flagSwap, flagWritable } from './page-table.ts';
import { TlbGather } from './tlb-gather.ts';
import type { Vma } from './vma.ts';

/** Clears the entries of a range; the areas remain, so that the next touch allocates new pages. */
function zapPages(space: AddressSpace, start: number, end: number): void {
  const { platform, config } = space.mm;
  space.notify(start, end, 'clear');
  const gather = new TlbGather(space.mm, space);
  let cleared = 0;
  space.table.forEach(start, end, (page) => {
    space.clear(page);
    gather.add(page);
    cleared++;
  });
  platform.charge('memory', cleared * config.paging.unmapPageCycles);
  gather.finish();
}

/** Reclaims pages without other references from a killed process (the OOM reaper). @returns the number of pages */
export function reapAreas(space: AddressSpace): number {
  const before = space.residentBytes;
  for (const area of [...space.areas.all])
    if (area.isPrivate && !area.isStable && area.pageSize === pageBytes)
      zapPages(space, area.start, area.end);
  return (before - space.residentBytes) / pageBytes;
}

/** Unmaps areas and pages of a range. The driver unmaps windows into device space, unless `withDevices` is set. */
export function unmapRange(space: AddressSpace, start: number, end: number, withDevices = false): void {
  for (const area of space.areas.isolate(start, end)) {
    if (area.kind === 'device' && !withDevices) continue;
    if (area.kind !== 'device') space.notify(area.start, area.end, 'unmap');
    clearArea(space, area);
    space.areas.remove(area);
    if (area.kind !== 'device') space.mappedBytes -= area.lengthBytes;
    if (area.file !== undefined) space.mm.releaseFile(area.file);
  }
}

function clearArea(space: AddressSpace, area: Vma): void {
  const { platform, config } = space.mm;
  const gather = new TlbGather(space.mm, space);
  let cleared = 0;
  if (area.stretchBytes > 0) {
    space.table.endRepeat(area.start, area.stretchBytes, area.end);
    gather.addAll();
  }
  space.table.forEach(area.start, area.end, (page) => {
    space.clear(page);
    gather.add(page);
    cleared++;
  });
  platform.charge('memory', cleared * config.paging.unmapPageCycles);
  gather.finish();
}

/** Grants or withdraws the right to write. The next write's fault notices a granted right. */
export function protectAreas(space: AddressSpace, start: number, end: number, isWritable: boolean): void {
  for (const area of space.areas.isolate(start, end)) area.isWritable = isWritable;
  if (isWritable) return;
  space.notify(start, end, 'protect');
  const gather = new TlbGather(space.mm, space);
  space.table.forEach(start, end, (page, _value, flags) => {
    if ((flags & (flagWritable | flagDevice)) !== flagWritable) return;
    space.table.setFlags(page, flags & ~flagWritable);
    gather.add(page);
  });
  if (space.areas.overlapping(start, end).some(({ stretchBytes }) => stretchBytes > 0)) gather.addAll();
  gather.finish();
}

/** Advice for a range: see madvise(2). */
export type Advice = 'dontNeed' | 'dontFork' | 'doFork' | 'populateWrite';

/** madvise(2) of areas. @returns EINVAL for pages that must stay, and for those that a child cannot inherit */
export function adviseAreas(
  space: AddressSpace,
  start: number,
  end: number,
  advice: Exclude<Advice, 'populateWrite'>,
): 'EINVAL' | undefined {
  const areas = space.areas.isolate(start, end);
  if (advice === 'doFork' && areas.some(({ stretchBytes }) => stretchBytes > 0)) return 'EINVAL';
  if (advice !== 'dontNeed') {
    for (const area of areas) area.isDontFork = advice === 'dontFork';
    return undefined;
  }
  if (areas.some(({ isStable }) => isStable)) return 'EINVAL';
  zapPages(space, start, end);
  return undefined;
}

/** Results of mremap(2) that are not addresses. */
export type RemapError = 'EFAULT' | 'EINVAL' | 'ENOMEM';

/**
 * mremap(2) of a range within one area. Huge pages are kept whole and cannot grow (EINVAL), as in Linux 6.1 (mm/mremap.c: their
 * lengths are rounded up, and an expansion has no reservation).
 */
export function remapArea(
  space: AddressSpace,
  address: number,
  oldLengthBytes: number,
  newLengthBytes: number,
  mayMove: boolean,
): number | RemapError {
  const area = space.areas.find(address);
  if (area === undefined || area.kind === 'device') return 'EFAULT';
  const oldBytes = roundUp(oldLengthBytes, area.pageSize);
  const newBytes = roundUp(newLengthBytes, area.pageSize);
  if (address % area.pageSize !== 0 || newBytes === 0 || area.stretchBytes > 0) return 'EINVAL';
  if (area.pageSize !== pageBytes && newBytes > oldBytes) return 'EINVAL';
  if (address + oldBytes > area.end) return 'EFAULT';
  if (newBytes <= oldBytes) {
    if (newBytes < oldBytes) unmapRange(space, address + newBytes, address + oldBytes);
    return address;
  }
  if (newBytes / pageBytes > space.mm.reachablePages) return 'ENOMEM';
  const grownEnd = address + newBytes;
  if (area.end === address + oldBytes && space.extendAddresses(area, grownEnd)) {
    area.end = grownEnd;
    space.mappedBytes += newBytes - oldBytes;
    return address;
  }
  return mayMove ? moveArea(space, address, oldBytes, newBytes) : 'ENOMEM';
}

/** Moves the same pages to a new address, including pinned ones: a device still reaches them. */
function moveArea(space: AddressSpace, address: number, oldBytes: number, newBytes: number): number {
  const { reverse, zeroFrame } = space.mm;
  const start = space.takeAddresses(newBytes);
  const [area] = space.areas.isolate(address, address + oldBytes);
  const moved = area!.cut(address, address + oldBytes);
  moved.start = start;
  moved.end = start + newBytes;
  space.notify(address, address + oldBytes, 'unmap');
  const gather = new TlbGather(space.mm, space);
  space.table.forEach(address, address + oldBytes, (page, value, flags) => {
    const target = start + (page - address);
    space.table.clear(page);
    gather.add(page);
    if ((flags & flagSwap) !== 0) {
      space.table.setSwap(target, value);
      return;
    }
    space.table.set(target, value, flags);
    const frame = value / pageBytes;
    if ((flags & flagHuge) !== 0 || frame === zeroFrame) return;
    reverse.remove(frame, space.id, page);
    reverse.add(frame, space.id, target);
  });
  space.areas.remove(area!);
  space.areas.insert(moved);
  space.mappedBytes += newBytes - oldBytes;
  gather.finish();
  return start;
}

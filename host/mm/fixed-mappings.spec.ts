/** mmap with MAP_FIXED over mapped, pinned, shared, followed or cut pages: the outcomes of Linux 6.1. */
import { describe, expect, it } from 'vitest';
import { userEnd } from './mappings.ts';
import { hugePageBytes, pageBytes } from './page.ts';
import type { PinnedPages } from './pins.ts';
import { newFile, newTestMemory } from './testing.ts';

function newSpace(freeKib?: number) {
  const all = newTestMemory({}, freeKib);
  const space = all.mm.newSpace();
  const notified: string[] = [];
  space.onInvalidate({
    invalidate: (start, end, reason) => void notified.push(`${reason} ${(end - start) / pageBytes}`),
  });
  const firstOf = (address: number): number => {
    const bytes = new Uint8Array(1);
    return space.read(address, bytes) ? bytes[0]! : -1;
  };
  const filled = (pages: number): number => {
    const address = space.map(pages * pageBytes);
    for (let page = 0; page < pages; page++) space.write(address + page * pageBytes, Uint8Array.of(page + 1));
    return address;
  };
  return { ...all, space, notified, firstOf, filled };
}

function pinned(answer: PinnedPages | string): PinnedPages {
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

describe('a fixed mapping', () => {
  it('mmap(2): replaces a part of another: new pages there, both ends unchanged, the old frames freed', () => {
    const { frames, space, notified, firstOf, filled } = newSpace();
    const address = filled(5);
    expect(space.mapFixed(address + pageBytes, 2 * pageBytes)).toBe(address + pageBytes);
    expect([0, 1, 2, 3, 4].map((page) => firstOf(address + page * pageBytes))).toEqual([1, 0, 0, 4, 5]);
    expect([frames.usedCount, space.mappedBytes, notified]).toEqual([3, 5 * pageBytes, ['unmap 2']]);
    space.write(address + pageBytes, Uint8Array.of(9));
    expect([firstOf(address + pageBytes), frames.usedCount]).toEqual([9, 4]);
  });

  it('mmap(2): covers several mappings, holes and the addresses after them, and counts mapped memory', () => {
    const { space, firstOf, filled } = newSpace();
    const [first, second] = [filled(1), filled(1)];
    const pages = (second - first) / pageBytes + 3;
    expect(space.mapFixed(first, pages * pageBytes)).toBe(first);
    expect([firstOf(first), firstOf(second), space.mappedBytes]).toEqual([0, 0, pages * pageBytes]);
    // Addresses chosen by the kernel avoid it, including the guard page.
    expect(space.map(pageBytes)).toBe(first + (pages + 1) * pageBytes);
  });

  it('over pinned pages leaves their frames and contents to their pins; the program sees other pages', () => {
    const { memory, frames, space, firstOf, filled } = newSpace();
    const address = filled(2);
    const pin = pinned(space.pin(address, 2 * pageBytes));
    const used = frames.usedCount;
    space.mapFixed(address, 2 * pageBytes);
    space.write(address, Uint8Array.of(77));
    // The device's view and the program's view now differ.
    expect([memory.bytes[pin.pages[0]!], firstOf(address)]).toEqual([1, 77]);
    expect(space.translate(address)).not.toBe(pin.pages[0]);
    expect([frames.usedCount, space.pinnedBytes]).toEqual([used + 1, 2 * pageBytes]);
    // A second pin holds the new pages, and counts again.
    const again = pinned(space.pin(address, 2 * pageBytes));
    expect(again.pages[0]).toBe(space.translate(address));
    expect(space.pinnedBytes).toBe(4 * pageBytes);
    space.unpin(pin);
    expect([space.pinnedBytes, firstOf(address)]).toEqual([2 * pageBytes, 77]);
    space.unpin(again);
    expect([space.pinnedBytes, frames.usedCount]).toEqual([0, 2]);
  });

  it('over a shared mapping of a file leaves written data in the file; of a file, it shows the file', () => {
    const { space, firstOf } = newSpace();
    const file = newFile('data', new Uint8Array(2 * pageBytes).fill(5));
    const address = space.mapWith(2 * pageBytes, { file, isShared: true });
    space.write(address, Uint8Array.of(6));
    space.mapFixed(address, pageBytes);
    expect(firstOf(address)).toBe(0);
    expect(space.mapFixed(address, pageBytes, { file, isShared: true })).toBe(address);
    expect([firstOf(address), firstOf(address + pageBytes)]).toEqual([6, 5]);
  });

  it('belongs only to the process that made it: an earlier child keeps its inheritance', () => {
    const { mm, space, firstOf, filled } = newSpace();
    const address = filled(1);
    const child = mm.newSpace();
    space.fork(child);
    space.mapFixed(address, pageBytes);
    const bytes = new Uint8Array(1);
    child.read(address, bytes);
    expect([firstOf(address), bytes[0]]).toEqual([0, 1]);
  });

  it('leaves no stale translation in a TLB', () => {
    const { mm, platform, space, firstOf, filled } = newSpace();
    Object.assign(platform, { runningCore: () => 0 });
    const address = filled(1);
    const isHeld = (): boolean => mm.tlbs[0]!.holds(space.id, address / pageBytes, false);
    expect([firstOf(address), isHeld()]).toEqual([1, true]);
    space.mapFixed(address, pageBytes);
    expect([isHeld(), firstOf(address)]).toEqual([false, 0]);
  });

  it('of huge pages replaces small ones, and a huge one only as a whole', () => {
    const { space, firstOf } = newSpace();
    const huge = space.mapWith(2 * hugePageBytes, { pageSize: hugePageBytes });
    space.write(huge, Uint8Array.of(3));
    expect(space.mapFixed(huge + pageBytes, pageBytes)).toBe('EINVAL');
    expect(space.mapFixed(huge, hugePageBytes - pageBytes)).toBe('EINVAL');
    expect(firstOf(huge)).toBe(3);
    expect(space.mapFixed(huge, hugePageBytes)).toBe(huge);
    space.write(huge, Uint8Array.of(4));
    expect(space.mapFixed(huge, hugePageBytes, { pageSize: hugePageBytes })).toBe(huge);
    expect([firstOf(huge), firstOf(huge + hugePageBytes)]).toEqual([0, 0]);
  });

  it('over a window into device space removes it; the driver then unmaps the rest', () => {
    const { space, firstOf } = newSpace();
    const window = space.mapDevice(0x1_0000_0000, 2 * pageBytes, 'uncached');
    expect(space.mapFixed(window, pageBytes)).toBe(window);
    space.write(window, Uint8Array.of(1));
    space.unmapDevice(window);
    expect([firstOf(window), space.deviceWindowCount, space.mappedBytes]).toEqual([1, 0, pageBytes]);
    expect(() => space.unmapDevice(window)).toThrow(/an address that mapDevice returned/);
  });

  it('is removed with its process, at any address', () => {
    const { frames, space } = newSpace();
    const last = userEnd - pageBytes;
    expect(space.mapFixed(last, pageBytes)).toBe(last);
    space.write(last, Uint8Array.of(1));
    const next = space.map(pageBytes);
    space.write(next, Uint8Array.of(1));
    expect(next).toBeLessThan(last);
    space.release();
    expect([frames.usedCount, space.mappedBytes]).toEqual([0, 0]);
  });
});

describe('an invalid fixed mapping', () => {
  it.each([
    ['between pages', 1, pageBytes, 'EINVAL'],
    ['of nothing', 0, 0, 'EINVAL'],
    ['below user addresses', -userEnd, pageBytes, 'ENOMEM'],
    ['beyond user addresses', userEnd, pageBytes, 'ENOMEM'],
    ['of huge pages between huge pages', pageBytes, hugePageBytes, 'EINVAL'],
  ] as const)('%s is rejected, and changes nothing', (_name, offset, length, code) => {
    const { space, notified, firstOf, filled } = newSpace();
    const address = filled(2);
    const options = length === hugePageBytes ? { pageSize: hugePageBytes } : {};
    expect(space.mapFixed(address + offset, length, options)).toBe(code);
    expect([firstOf(address), notified, space.mappedBytes]).toEqual([1, [], 2 * pageBytes]);
  });

  it('mmap(2): replace anything is EEXIST over a mapping, and succeeds over free addresses', () => {
    const { space, notified, firstOf, filled } = newSpace();
    const address = filled(2);
    expect(space.mapFixed(address + pageBytes, 2 * pageBytes, {}, 'noReplace')).toBe('EEXIST');
    expect([firstOf(address + pageBytes), notified]).toEqual([2, []]);
    const behind = address + 2 * pageBytes;
    expect(space.mapFixed(behind, pageBytes, {}, 'noReplace')).toBe(behind);
  });

  it('have its memory is ENOMEM, and the mapping to be replaced is removed', () => {
    const { frames, space, firstOf, filled } = newSpace(64);
    const address = filled(1);
    expect(space.mapFixed(address, 2 ** 30)).toBe('ENOMEM');
    expect([firstOf(address), space.mappedBytes, frames.usedCount]).toEqual([-1, 0, 0]);
    expect(space.mapFixed(address, pageBytes)).toBe(address);
  });
});

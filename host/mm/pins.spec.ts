import { describe, expect, it } from 'vitest';
import { hugePageBytes, pageBytes } from './page.ts';
import type { PinnedPages } from './pins.ts';
import { newFile, newTestMemory } from './testing.ts';

function newSpace(
  memlockLimitBytes?: number,
  parts: Parameters<typeof newTestMemory>[0] = {},
  freeKib?: number,
) {
  const all = newTestMemory(parts, freeKib);
  return { ...all, space: all.mm.newSpace(memlockLimitBytes) };
}

function pinned(answer: PinnedPages | string): PinnedPages {
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

describe('a pin', () => {
  it('faults in missing pages: for writing, and for reading an exclusive page instead of the zero page', () => {
    const { mm, space } = newSpace();
    const address = space.map(2 * pageBytes);
    const write = pinned(space.pin(address, 1));
    space.read(address + pageBytes, new Uint8Array(1));
    const read = pinned(space.pin(address + pageBytes, 1, 'read'));
    expect(read.pages[0]).not.toBe(mm.zeroFrame * pageBytes);
    space.write(address + pageBytes, Uint8Array.of(8));
    // The page was already exclusive to the process: a pin for reading sees its later writes.
    expect(mm.memory.bytes[read.pages[0]!]).toBe(8);
    for (const pin of [write, read]) space.unpin(pin);
  });

  it('for writing, of read-only memory, is EFAULT; for reading it is not', () => {
    const { space } = newSpace();
    const address = space.mapWith(pageBytes, { access: 'read' });
    expect(space.pin(address, 1, 'write')).toBe('EFAULT');
    space.unpin(pinned(space.pin(address, 1, 'read')));
  });

  it('Linux 6.5: for writing, of a shared mapping of a file, is EFAULT; of shared memory, a private mapping or huge pages it is not', () => {
    const { space } = newSpace();
    const file = newFile('data', new Uint8Array(pageBytes));
    expect(space.pin(space.mapWith(pageBytes, { file, isShared: true }), 1)).toBe('EFAULT');
    const others = [
      space.mapWith(pageBytes, { file, isShared: true }),
      space.mapWith(pageBytes, { isShared: true }),
      space.mapWith(pageBytes, { file }),
      space.mapWith(1, { pageSize: hugePageBytes }),
    ];
    const access = ['read', 'write', 'write', 'write'] as const;
    others.forEach((address, at) => {
      space.unpin(pinned(space.pin(address, 1, access[at]!)));
    });
  });

  it('of a range that no memory can hold fails at its first page that is not mapped', () => {
    const { space, frames } = newSpace();
    const address = space.map(pageBytes);
    expect(space.pin(address, 2 ** 51)).toBe('EFAULT');
    expect([space.residentBytes, frames.usedCount]).toEqual([pageBytes, 1]);
  });

  it('that fails half-way releases its pins, and keeps faulted-in pages', () => {
    const { mm, frames, space } = newSpace();
    const address = space.map(4 * pageBytes);
    space.unmap(address + 2 * pageBytes, pageBytes);
    expect(space.pin(address, 4 * pageBytes)).toBe('EFAULT');
    expect([space.pinnedBytes, space.residentBytes, frames.usedCount]).toEqual([0, 2 * pageBytes, 2]);
    expect(frames.pinsOf(space.translate(address) / pageBytes)).toBe(0);
    expect(mm.counts.pinnedPages).toBe(0);
  });

  it('that finds no memory is ENOMEM, kills no process, and releases its pins', () => {
    const { mm, platform, frames, space } = newSpace(undefined, { paging: { minFreeKib: 64 } }, 1024);
    const address = space.map(1024 * 1024);
    expect(space.pin(address, 1024 * 1024)).toBe('ENOMEM');
    expect([space.pinnedBytes, platform.killed.length, mm.counts.oomKills]).toEqual([0, 0, 0]);
    // All but the 16 pages of the watermark were faulted in, and stay.
    expect(space.residentBytes).toBe(1024 * 1024 - 64 * 1024);
    expect(frames.freeCount).toBe(16);
  });

  it('that overlaps others counts again against the limit, and each is released separately, in any order', () => {
    const { frames, space } = newSpace(5 * pageBytes);
    const address = space.map(4 * pageBytes);
    const [whole, part] = [
      pinned(space.pin(address, 3 * pageBytes)),
      pinned(space.pin(address + pageBytes, 8192)),
    ];
    expect(space.pin(address, 1)).toBe('ENOMEM');
    const frame = part.pages[0]! / pageBytes;
    space.unpin(whole);
    expect([frames.pinsOf(frame), space.pinnedBytes]).toEqual([1, 2 * pageBytes]);
    expect(() => space.unpin(whole)).toThrow(/given back before/);
    space.unpin(part);
    expect([frames.pinsOf(frame), space.pinnedBytes]).toEqual([0, 0]);
  });

  it('holds its frames through munmap and exit: the device still reaches them, the process does not', () => {
    const { memory, frames, space } = newSpace();
    const address = space.map(2 * pageBytes);
    space.write(address, Uint8Array.of(1));
    const pin = pinned(space.pin(address, 2 * pageBytes));
    space.unmap(address, pageBytes);
    expect(space.read(address, new Uint8Array(1))).toBe(false);
    space.release();
    expect([frames.usedCount, memory.bytes[pin.pages[0]!], space.pinnedBytes]).toEqual([2, 1, 2 * pageBytes]);
    space.unpin(pin);
    expect(frames.usedCount).toBe(0);
  });

  it('holds its frame through MADV_DONTNEED, after which process and device see different pages', () => {
    const { memory, space } = newSpace();
    const address = space.map(pageBytes);
    space.write(address, Uint8Array.of(1));
    const pin = pinned(space.pin(address, 1));
    expect(space.advise(address, pageBytes, 'dontNeed')).toBe(undefined);
    memory.bytes[pin.pages[0]!] = 5;
    const seen = new Uint8Array(1);
    space.read(address, seen);
    expect(seen[0]).toBe(0);
    space.write(address, Uint8Array.of(2));
    expect([memory.bytes[pin.pages[0]!], space.translate(address) === pin.pages[0]]).toEqual([5, false]);
    space.unpin(pin);
  });

  it('follows its pages when they are moved by mremap', () => {
    const { space } = newSpace();
    const address = space.map(pageBytes);
    const pin = pinned(space.pin(address, 1));
    space.map(pageBytes);
    const moved = space.remap(address, pageBytes, 4 * pageBytes, true);
    expect(moved).not.toBe(address);
    expect(space.translate(moved as number)).toBe(pin.pages[0]);
    space.unpin(pin);
  });

  it('is neither reclaimed nor migrated, while its neighbours are', () => {
    const { mm, space, memory } = newSpace(undefined, { swap: { sizeMib: 64 } });
    const address = space.map(64 * pageBytes);
    for (let page = 0; page < 64; page++) space.write(address + page * pageBytes, Uint8Array.of(page));
    const pin = pinned(space.pin(address + 10 * pageBytes, 5 * pageBytes));
    expect(mm.reclaim.migrate(pin.pages[0]! / pageBytes, mm.frames.allocate())).toBe(false);
    for (let round = 0; round < 4; round++) mm.reclaim.shrink(200, 0);
    expect(space.swappedPages).toBe(59);
    [...pin.pages].forEach((physical, at) => {
      expect([space.translate(address + (10 + at) * pageBytes), memory.bytes[physical]]).toEqual([
        physical,
        10 + at,
      ]);
    });
    // Bytes written by the device are written out, although no store of the process made the page dirty.
    memory.bytes[pin.pages[0]!] = 0xaa;
    space.unpin(pin);
    for (let round = 0; round < 4; round++) mm.reclaim.shrink(200, 0);
    expect(space.swappedPages).toBe(64);
    const back = new Uint8Array(1);
    space.read(address + 10 * pageBytes, back);
    expect(back[0]).toBe(0xaa);
  });
});

import { describe, expect, it } from 'vitest';
import { hugePageBytes, pageBytes } from './page.ts';
import { newFile, newTestMemory } from './testing.ts';

const page = (value: number, length = pageBytes): Uint8Array => new Uint8Array(length).fill(value);

function readOf(space: ReturnType<typeof newSpace>['space'], address: number, length = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  if (!space.read(address, bytes)) throw new Error('not mapped');
  return bytes;
}

function newSpace(parts: Parameters<typeof newTestMemory>[0] = {}) {
  const all = newTestMemory(parts);
  return { ...all, space: all.mm.newSpace() };
}

describe('anonymous memory', () => {
  it('Linux handle_pte_fault: uses no frame until it is touched, reads as the zero page, and gets a frame on the first write', () => {
    const { mm, frames, space } = newSpace();
    const address = space.map(8 * pageBytes);
    expect([frames.usedCount, space.mappedBytes]).toEqual([0, 8 * pageBytes]);
    expect(readOf(space, address, 3 * pageBytes)).toEqual(page(0, 3 * pageBytes));
    expect([frames.usedCount, space.residentBytes, mm.counts.zeroPageFaults]).toEqual([0, 0, 3]);
    expect(space.translate(address)).toBe(mm.zeroFrame * pageBytes);
    space.write(address + pageBytes, Uint8Array.of(7));
    expect([frames.usedCount, space.residentBytes, mm.counts.zeroedPages]).toEqual([1, pageBytes, 1]);
    expect(readOf(space, address)[0]).toBe(0);
    expect(mm.counts).toMatchObject({ minorFaults: 4, majorFaults: 0 });
  });

  it('does not let a write through the zero page', () => {
    const { mm, memory, space } = newSpace();
    const [first, second] = [space.map(pageBytes), space.map(pageBytes)];
    readOf(space, first);
    readOf(space, second);
    space.write(first, page(9));
    expect(readOf(space, second)[0]).toBe(0);
    expect(memory.bytes[mm.zeroFrame * pageBytes]).toBe(0);
  });

  it('may exceed free memory, but not memory and swap together', () => {
    const { space } = newSpace({ swap: { sizeMib: 10 } });
    // 63 MiB of frames and 10 MiB of swap.
    expect(space.map(73 * 2 ** 20)).toBeGreaterThan(0);
    expect(space.map(73 * 2 ** 20)).toBeGreaterThan(0);
    expect(space.map(73 * 2 ** 20 + 1)).toBe(-1);
  });

  it('is seen by all processes of a fork, if it is shared', () => {
    const { mm, space } = newSpace();
    const address = space.mapWith(2 * pageBytes, { isShared: true });
    const child = mm.newSpace();
    expect(space.fork(child)).toBe(true);
    child.write(address, Uint8Array.of(5));
    space.write(address + pageBytes, Uint8Array.of(6));
    expect([readOf(space, address)[0], readOf(child, address + pageBytes)[0]]).toEqual([5, 6]);
    space.release();
    expect(readOf(child, address)[0]).toBe(5);
    child.release();
    expect(mm.frames.usedCount).toBe(0);
  });
});

describe('a file', () => {
  const content = Uint8Array.from({ length: 2 * pageBytes + 10 }, (_, at) => at % 251);

  it('mmap(2): is read from its device once, for all mappings, and the last page is filled with zeros', () => {
    const { mm, platform, space } = newSpace({
      fileDevice: { readLatencyNs: 1000, megabytesPerSecond: 4096 },
    });
    const file = newFile('data', content);
    const address = space.mapWith(content.length, { file, isShared: true });
    const other = mm.newSpace();
    const there = other.mapWith(content.length, { file });
    expect(readOf(space, address, content.length)).toEqual(content);
    // Three pages, one after the other: 1 us each and 4096 bytes at 4096 bytes a microsecond.
    expect([mm.counts.majorFaults, mm.fileDevice.readCount, platform.nowPs]).toEqual([3, 3, 6_000_000]);
    expect(readOf(other, there, content.length)).toEqual(content);
    expect([mm.counts.majorFaults, platform.nowPs]).toEqual([3, 6_000_000]);
    expect(readOf(space, address + content.length, 20)).toEqual(page(0, 20));
  });

  it('mmap(2): shows the writes of a shared mapping to all, and keeps those of a private one in the process', () => {
    const { mm, space } = newSpace();
    const file = newFile('data', content);
    const shared = space.mapWith(pageBytes, { file, isShared: true });
    const own = space.mapWith(pageBytes, { file });
    const other = mm.newSpace();
    const there = other.mapWith(pageBytes, { file, isShared: true });
    readOf(space, own);
    space.write(own, page(1));
    space.write(shared, page(2, 8));
    expect(readOf(other, there, 8)).toEqual(page(2, 8));
    expect(readOf(space, own, 8)).toEqual(page(1, 8));
    expect(mm.counts.copiedPages).toBe(1);
    for (const each of [space, other]) each.release();
    // Only the page cache is left.
    expect(mm.frames.usedCount).toBe(1);
  });

  it('mmap(2): is a bus error after its last page, and has its offset in pages', () => {
    const { mm, space } = newSpace();
    const file = newFile('data', content);
    const address = space.mapWith(4 * pageBytes, { file, fileOffset: pageBytes });
    expect(readOf(space, address, 10)).toEqual(content.slice(pageBytes, pageBytes + 10));
    expect(space.read(address + 2 * pageBytes, new Uint8Array(1))).toBe(false);
    expect(mm.counts.busErrors).toBe(1);
  });
});

describe('huge pages', () => {
  it('are all present at once, or the mapping fails', () => {
    const { frames, space } = newSpace();
    const address = space.map(2 * hugePageBytes, hugePageBytes);
    expect(frames.usedCount).toBe(1024);
    expect(space.map(62 * 2 ** 20, hugePageBytes)).toBe(-1);
    expect(frames.usedCount).toBe(1024);
    space.unmap(address, 2 * hugePageBytes);
    expect(frames.usedCount).toBe(0);
  });

  it('are copied as a whole on the write after a fork', () => {
    const { mm, space } = newSpace();
    const address = space.map(hugePageBytes, hugePageBytes);
    space.write(address + 5000, page(3));
    const child = mm.newSpace();
    space.fork(child);
    child.write(address, Uint8Array.of(1));
    expect([readOf(space, address)[0], readOf(child, address + 5000)[0]]).toEqual([0, 3]);
    expect(mm.counts.copiedPages).toBe(512);
    space.write(address, Uint8Array.of(2));
    expect([mm.counts.copiedPages, mm.counts.reusedPages]).toEqual([512, 1]);
    for (const each of [space, child]) each.release();
    expect(mm.frames.usedCount).toBe(0);
  });
});

describe('an access without a mapping, or against its rights', () => {
  it('does nothing, and is counted as a segmentation fault when it reaches a page', () => {
    const { mm, space } = newSpace();
    const address = space.mapWith(pageBytes, { access: 'read' });
    expect(space.access(address, true)).toBe(-1);
    expect(space.access(address + 2 * pageBytes, false)).toBe(-1);
    expect(mm.counts.segmentationFaults).toBe(2);
  });
});

import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/index.ts';
import { hugePageBytes, pageBytes } from './page.ts';
import { newTestMemory } from './testing.ts';

const gib = 2 ** 30;
const stretchBytes = 3 * hugePageBytes;
const stretchPages = stretchBytes / pageBytes;

function repeating(lengthBytes = 64 * gib, pageSize = pageBytes) {
  const { mm, frames } = newTestMemory();
  const space = mm.newSpace();
  const address = space.mapWith(lengthBytes, { stretchBytes, pageSize });
  return { mm, frames, space, address, lengthBytes };
}

/** Bytes written at one address, and the bytes read at another. */
function written(space: ReturnType<typeof repeating>['space'], at: number, bytes: number[], found: number) {
  expect(space.write(at, Uint8Array.from(bytes))).toBe(true);
  const target = new Uint8Array(bytes.length);
  expect(space.read(found, target)).toBe(true);
  return [...target];
}

describe.each([
  ['4 KiB', pageBytes],
  ['2 MiB', hugePageBytes],
])('memory that repeats, of pages of %s', (_name, pageSize) => {
  it('spans more than physical memory and takes the frames of one stretch', () => {
    const { space, frames, lengthBytes } = repeating(64 * gib, pageSize);
    expect(space.mappedBytes).toBe(lengthBytes);
    expect(space.residentBytes).toBe(stretchBytes);
    expect(frames.usedCount).toBe(stretchPages);
  });

  it('has the same bytes a stretch further on, and different ones within a stretch', () => {
    const { space, address } = repeating(64 * gib, pageSize);
    const far = address + 10_000 * stretchBytes;
    expect(written(space, address + 5, [1, 2, 3], far + 5)).toEqual([1, 2, 3]);
    expect(written(space, far + pageBytes - 1, [4, 5], address + pageBytes - 1)).toEqual([4, 5]);
    expect(space.translate(address)).not.toBe(space.translate(address + pageBytes));
  });

  it('has no page whose frame follows the frame of the previous page', () => {
    const { space, address } = repeating(64 * gib, pageSize);
    for (let at = pageSize; at < 2 * stretchBytes; at += pageSize)
      expect(space.translate(address + at)).not.toBe(space.translate(address + at - pageSize) + pageSize);
  });

  it('is pinned as a whole: each page counts against the limit, and the ticket lists the frames of one stretch', () => {
    const { space, mm, frames, address, lengthBytes } = repeating(64 * gib, pageSize);
    const pin = space.pin(address, lengthBytes);
    if (typeof pin === 'string') throw new Error(pin);
    expect([pin.pageCount, pin.pages.length]).toEqual([lengthBytes / pageBytes, stretchPages]);
    expect(space.pinnedBytes).toBe(lengthBytes);
    for (const page of [0, 1, stretchPages - 1, stretchPages, 7 * stretchPages + 3])
      expect(pin.pages[page % pin.pages.length]).toBe(space.translate(address + page * pageBytes));
    space.unmap(address, lengthBytes);
    expect(frames.usedCount).toBe(stretchPages);
    space.unpin(pin);
    expect([frames.usedCount, space.pinnedBytes]).toEqual([0, 0]);
    expect(mm.counts.unpinnedPages).toBe(lengthBytes / pageBytes);
  });

  it('pins a part that begins anywhere, with the frames of its own first pages', () => {
    const { space, address } = repeating(gib, pageSize);
    const from = address + stretchBytes - 3 * pageBytes;
    const pin = space.pin(from, 5 * pageBytes);
    if (typeof pin === 'string') throw new Error(pin);
    const found = Array.from({ length: 5 }, (_, page) => space.translate(from + page * pageBytes));
    expect(pin.pages).toEqual(found);
    space.unpin(pin);
  });

  it('is unmapped as a whole, and leaves no entry', () => {
    const { space, frames, address, lengthBytes } = repeating(gib, pageSize);
    space.unmap(address + 10 * pageBytes, 1);
    expect([space.mappedBytes, space.residentBytes, frames.usedCount]).toEqual([0, 0, 0]);
    for (const at of [0, stretchBytes, lengthBytes - 1]) expect(space.table.flagsAt(address + at)).toBe(0);
  });

  it('rejects operations that would cut it: EINVAL of mremap and of MAP_FIXED, and a child does not inherit it', () => {
    const { mm, space, address, lengthBytes } = repeating(gib, pageSize);
    expect(space.remap(address, lengthBytes, 2 * lengthBytes, true)).toBe('EINVAL');
    expect(space.mapFixed(address + hugePageBytes, pageBytes)).toBe('EINVAL');
    expect(space.advise(address, lengthBytes, 'doFork')).toBe('EINVAL');
    const child = mm.newSpace();
    expect(space.fork(child)).toBe(true);
    expect([child.isMapped(address, 1), space.isMapped(address, lengthBytes)]).toEqual([false, true]);
  });

  it('loses and regains the right to write everywhere at once', () => {
    const { space, address, lengthBytes } = repeating(gib, pageSize);
    expect(space.protect(address, pageBytes, 'read')).toBe(true);
    expect(space.write(address + lengthBytes - 1, Uint8Array.of(1))).toBe(false);
    expect(space.protect(address, pageBytes, 'readWrite')).toBe(true);
    expect(written(space, address + 100 * stretchBytes, [7], address)).toEqual([7]);
  });
});

describe('a mapping that is to repeat', () => {
  it.each([1, pageBytes, hugePageBytes + pageBytes, -hugePageBytes])(
    'rejects a stretch of %d bytes',
    (bytes) => {
      const space = newTestMemory().mm.newSpace();
      expect(() => space.mapWith(gib, { stretchBytes: bytes })).toThrow(ConfigurationError);
    },
  );

  it('is an ordinary one if the stretch is equally long', () => {
    const { mm } = newTestMemory();
    const space = mm.newSpace();
    const address = space.mapWith(stretchBytes, { stretchBytes });
    expect(space.residentBytes).toBe(0);
    expect(space.areas.find(address)?.stretchBytes).toBe(0);
  });

  it('is ENOMEM if memory has no stretch, and leaves nothing', () => {
    const { mm, frames } = newTestMemory({}, 1024);
    const space = mm.newSpace();
    expect(space.mapWith(gib, { stretchBytes })).toBe(-1);
    expect([space.mappedBytes, frames.usedCount]).toEqual([0, 0]);
  });
});

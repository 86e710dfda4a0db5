import { describe, expect, it } from 'vitest';
import { hugePageBytes, pageBytes } from './page.ts';
import { newTestMemory } from './testing.ts';

function newSpace() {
  const all = newTestMemory();
  const space = all.mm.newSpace();
  const notified: string[] = [];
  const base = { at: 0 };
  space.onInvalidate({
    invalidate: (start, end, reason) => {
      notified.push(`${reason} ${(start - base.at) / pageBytes}+${(end - start) / pageBytes}`);
    },
  });
  const fill = (address: number, count: number): void => {
    for (let page = 0; page < count; page++) space.write(address + page * pageBytes, Uint8Array.of(page + 1));
  };
  const firstOf = (address: number): number => {
    const bytes = new Uint8Array(1);
    return space.read(address, bytes) ? bytes[0]! : -1;
  };
  return { ...all, space, notified, base, fill, firstOf };
}

describe('munmap', () => {
  it('in the middle leaves both ends unchanged', () => {
    const { frames, space, fill, firstOf, notified, base } = newSpace();
    const address = space.map(5 * pageBytes);
    base.at = address;
    fill(address, 5);
    space.unmap(address + pageBytes, 2 * pageBytes);
    expect([0, 1, 2, 3, 4].map((page) => firstOf(address + page * pageBytes))).toEqual([1, -1, -1, 4, 5]);
    expect([frames.usedCount, space.mappedBytes, notified]).toEqual([3, 3 * pageBytes, ['unmap 1+2']]);
  });
});

describe('mremap', () => {
  it('mremap(2): shrinks in place', () => {
    const { space, fill, frames, firstOf } = newSpace();
    const address = space.map(4 * pageBytes);
    fill(address, 4);
    expect(space.remap(address, 4 * pageBytes, pageBytes, false)).toBe(address);
    expect([frames.usedCount, firstOf(address), firstOf(address + pageBytes)]).toEqual([1, 1, -1]);
  });

  it('mremap(2): grows in place if the next addresses are free', () => {
    const { space, fill, firstOf } = newSpace();
    const address = space.map(2 * pageBytes);
    fill(address, 2);
    expect(space.remap(address, 2 * pageBytes, 6 * pageBytes, false)).toBe(address);
    expect([firstOf(address + pageBytes), firstOf(address + 5 * pageBytes)]).toEqual([2, 0]);
    expect(space.map(pageBytes)).toBeGreaterThan(address + 6 * pageBytes);
  });

  it('mremap(2): otherwise moves with all its pages if allowed, notifies its listeners, and is ENOMEM if not allowed', () => {
    const { space, fill, firstOf, frames, notified, base } = newSpace();
    const address = space.map(2 * pageBytes);
    base.at = address;
    space.map(pageBytes);
    fill(address, 2);
    const before = [0, 1].map((page) => space.translate(address + page * pageBytes));
    expect(space.remap(address, 2 * pageBytes, 4 * pageBytes, false)).toBe('ENOMEM');
    const moved = space.remap(address, 2 * pageBytes, 4 * pageBytes, true) as number;
    expect([0, 1].map((page) => space.translate(moved + page * pageBytes))).toEqual(before);
    expect([firstOf(address), firstOf(moved + pageBytes), frames.usedCount]).toEqual([-1, 2, 2]);
    expect(notified).toEqual(['unmap 0+2']);
  });

  it('mremap(2): of more than one mapping is EFAULT', () => {
    const { space } = newSpace();
    const address = space.map(2 * pageBytes);
    expect(space.remap(address, 3 * pageBytes, 4 * pageBytes, true)).toBe('EFAULT');
    expect(space.remap(address - pageBytes, pageBytes, 2 * pageBytes, true)).toBe('EFAULT');
  });
});

describe('mremap of an unsuitable range', () => {
  it('mremap(2): is EINVAL within a page, for length 0, and for huge pages that would grow or be cut; they shrink by whole ones', () => {
    const { space, fill, firstOf } = newSpace();
    const small = space.map(2 * pageBytes);
    fill(small, 2);
    expect(space.remap(small + 1, pageBytes, 4 * pageBytes, true)).toBe('EINVAL');
    expect(space.remap(small, pageBytes, 0, true)).toBe('EINVAL');
    const huge = space.map(2 * hugePageBytes, hugePageBytes);
    space.write(huge, Uint8Array.of(5));
    space.write(huge + hugePageBytes, Uint8Array.of(6));
    expect(space.remap(huge, 2 * hugePageBytes, 3 * hugePageBytes, true)).toBe('EINVAL');
    expect(space.remap(huge + pageBytes, pageBytes, 2 * pageBytes, true)).toBe('EINVAL');
    expect(space.remap(huge, 2 * hugePageBytes, 2 * hugePageBytes - pageBytes, true)).toBe(huge);
    expect([firstOf(huge), firstOf(huge + hugePageBytes), firstOf(small + pageBytes)]).toEqual([5, 6, 2]);
    expect(space.remap(huge, 2 * hugePageBytes, pageBytes, true)).toBe(huge);
    expect([firstOf(huge), firstOf(huge + hugePageBytes)]).toEqual([5, -1]);
  });

  it('mremap(2): is ENOMEM where it would reach beyond memory and swap together', () => {
    const { space, fill, firstOf } = newSpace();
    const address = space.map(pageBytes);
    fill(address, 1);
    expect(space.remap(address, pageBytes, 2 ** 52, true)).toBe('ENOMEM');
    expect([firstOf(address), space.mappedBytes]).toEqual([1, pageBytes]);
  });
});

describe('a part of shared memory', () => {
  it('that is unmapped remains for the other mappings', () => {
    const { mm, frames, space, fill, firstOf } = newSpace();
    const address = space.mapWith(3 * pageBytes, { isShared: true });
    fill(address, 3);
    const child = mm.newSpace();
    space.fork(child);
    space.unmap(address, pageBytes);
    const byte = new Uint8Array(1);
    expect([child.read(address + pageBytes, byte), byte[0]]).toEqual([true, 2]);
    child.write(address + 2 * pageBytes, Uint8Array.of(9));
    expect(firstOf(address + 2 * pageBytes)).toBe(9);
    space.release();
    child.release();
    expect(frames.usedCount).toBe(0);
  });
});

describe('mprotect and madvise', () => {
  it('mprotect(2): withdraw the right to write from present pages, and restore it on the next write', () => {
    const { mm, space, fill, notified, base } = newSpace();
    const address = space.map(3 * pageBytes);
    base.at = address;
    fill(address, 3);
    space.protect(address + pageBytes, pageBytes, 'read');
    expect([0, 1, 2].map((page) => space.write(address + page * pageBytes, Uint8Array.of(9)))).toEqual([
      true,
      false,
      true,
    ]);
    space.protect(address, 3 * pageBytes, 'readWrite');
    expect(space.write(address + pageBytes, Uint8Array.of(9))).toBe(true);
    expect([mm.counts.reusedPages, mm.counts.copiedPages, notified]).toEqual([1, 0, ['protect 1+1']]);
  });

  it('madvise(2): give untouched pages for DONTNEED, all at once for POPULATE_WRITE, and reject queue memory', () => {
    const { frames, space, fill, firstOf } = newSpace();
    const address = space.map(4 * pageBytes);
    fill(address, 4);
    expect(space.advise(address + pageBytes, 2 * pageBytes, 'dontNeed')).toBe(undefined);
    expect([frames.usedCount, firstOf(address + pageBytes), firstOf(address + 3 * pageBytes)]).toEqual([
      2, 0, 4,
    ]);
    expect(space.advise(address, 4 * pageBytes, 'populateWrite')).toBe(undefined);
    expect(frames.usedCount).toBe(4);
    expect(space.advise(address, 5 * pageBytes, 'dontNeed')).toBe('ENOMEM');
    expect(space.advise(space.mapWith(pageBytes, { isStable: true }), 1, 'dontNeed')).toBe('EINVAL');
  });
});

describe('a listener', () => {
  it('is notified before each change that invalidates a translation, and no longer after its removal', () => {
    const { mm, space, notified, base, fill } = newSpace();
    const address = space.map(2 * pageBytes);
    base.at = address;
    space.read(address, new Uint8Array(1));
    fill(address, 1);
    // The zero page was removed.
    expect(notified).toEqual(['clear 0+1']);
    const child = mm.newSpace();
    space.fork(child);
    fill(address, 1);
    expect(notified.slice(1)).toEqual(['protect 0+2', 'clear 0+1']);
    notified.length = 0;
    space.release();
    expect(notified.some((line) => line.startsWith('release'))).toBe(true);
    expect(notified).toContain('unmap 0+2');
  });
});

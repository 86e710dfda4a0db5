import { describe, expect, it } from 'vitest';
import { holdForDevice, releaseFromDevice } from './device-pages.ts';
import { pageBytes } from './page.ts';
import { newTestMemory } from './testing.ts';

function held(access: 'read' | 'write', swapMib = 8) {
  const all = newTestMemory({ paging: { minFreeKib: 64 }, swap: { sizeMib: swapMib } }, 1024);
  const space = all.mm.newSpace();
  const address = space.map(4 * pageBytes);
  space.write(address, Uint8Array.of(1));
  const physical = holdForDevice(space, address, access);
  if (typeof physical === 'string') throw new Error(physical);
  return { ...all, space, address, physical };
}

describe('a page held for a device', () => {
  it('is the process’s page, does not count as locked memory, and outlives its mapping', () => {
    const { frames, space, address, physical, mm } = held('write');
    expect(physical).toBe(space.translate(address));
    expect([space.pinnedBytes, frames.pinsOf(physical / pageBytes)]).toEqual([0, 0]);
    space.unmap(address, 4 * pageBytes);
    expect(frames.referencesOf(physical / pageBytes)).toBe(1);
    releaseFromDevice(space, physical, 'write');
    expect([frames.usedCount, mm.counts.devicePagesHeld, mm.counts.devicePagesReleased]).toEqual([0, 1, 1]);
  });

  it('shows later writes of the process, also when it is held for reading', () => {
    const { space, address } = held('read');
    const untouched = holdForDevice(space, address + pageBytes, 'read');
    space.write(address + pageBytes, Uint8Array.of(7));
    expect(space.translate(address + pageBytes)).toBe(untouched);
  });

  it('is one major fault if it is in swap, however often it is requested meanwhile', () => {
    const { mm, space, address, physical } = held('write');
    releaseFromDevice(space, physical, 'write');
    for (let round = 0; round < 4; round++) mm.reclaim.shrink(100, 0);
    mm.reclaim.completeWriteback(Number.POSITIVE_INFINITY);
    expect(space.translate(address)).toBe(-1);
    const { minorFaults, majorFaults } = mm.counts;
    expect(holdForDevice(space, address, 'write')).toBe('later');
    mm.platform.waitUntil(mm.retryPs);
    expect(holdForDevice(space, address, 'write', true)).toBe(space.translate(address));
    expect([mm.counts.minorFaults - minorFaults, mm.counts.majorFaults - majorFaults]).toEqual([0, 1]);
  });

  it('is unavailable for unmapped addresses, or if the process may not write', () => {
    const { space, address } = held('write');
    expect(holdForDevice(space, address + 64 * pageBytes, 'read')).toBe('EFAULT');
    space.protect(address, pageBytes, 'read');
    expect(holdForDevice(space, address, 'write')).toBe('EFAULT');
  });

  it('stays the parent’s in a fork, and the child gets a copy', () => {
    const { mm, space, address, physical } = held('write');
    space.onInvalidate({ invalidate: () => {}, holds: (page) => page === address });
    const child = mm.newSpace();
    expect(space.fork(child)).toBe(true);
    space.write(address, Uint8Array.of(2));
    expect(space.translate(address)).toBe(physical);
    const seen = new Uint8Array(1);
    child.read(address, seen);
    expect([seen[0], mm.counts.forkCopiedPages]).toEqual([1, 1]);
  });

  it('is skipped by reclaim, which reports that it wants it, and reclaimed after its release', () => {
    const { mm, space, address, physical } = held('write');
    const wanted: number[] = [];
    let isHeld = true;
    space.onInvalidate({
      invalidate: () => {},
      holds: (page) => isHeld && page === address,
      wanted: (page) => wanted.push(page),
    });
    const other = space.map(600 * pageBytes);
    const press = (): void => {
      for (let page = 0; page < 600; page++)
        space.write(other + page * pageBytes, Uint8Array.of(page & 0xff));
    };
    press();
    expect(space.translate(address)).toBe(physical);
    expect(new Set(wanted)).toEqual(new Set([address]));
    isHeld = false;
    releaseFromDevice(space, physical, 'write');
    press();
    expect(space.translate(address)).toBe(-1);
    const back = new Uint8Array(1);
    space.read(address, back);
    expect([back[0], mm.counts.allocationFailures]).toEqual([1, 0]);
  });
});

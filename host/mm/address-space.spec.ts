import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mib } from '../../base/units.ts';
import { hugePageBytes, pageBytes } from './page.ts';
import { newTestMemory } from './testing.ts';

function newSpace(memlockLimitBytes?: number) {
  const { memory, frames, mm } = newTestMemory();
  return { memory, frames, mm, space: mm.newSpace(memlockLimitBytes) };
}

describe('an address space', () => {
  it('reads back what was written across scattered pages, at every offset and length', () => {
    const { space } = newSpace();
    const address = space.map(5 * pageBytes);
    const model = new Uint8Array(5 * pageBytes);
    const property = fc.property(
      fc.integer({ min: 0, max: 5 * pageBytes - 1 }),
      fc.uint8Array({ minLength: 0, maxLength: 9000 }),
      (offset, bytes) => {
        const fits = offset + bytes.length <= 5 * pageBytes;
        expect(space.write(address + offset, bytes)).toBe(fits);
        if (fits) model.set(bytes, offset);
        const back = new Uint8Array(model.length);
        expect(space.read(address, back)).toBe(true);
        expect(back).toEqual(model);
      },
    );
    fc.assert(property, { numRuns: 50, seed: 1 });
  });

  it('translates page by page, and not outside a mapping', () => {
    const { memory, space } = newSpace();
    const address = space.map(2 * pageBytes);
    space.write(address + pageBytes + 5, Uint8Array.of(0x77));
    expect(memory.bytes[space.translate(address + pageBytes + 5)]).toBe(0x77);
    expect(space.translate(address) % pageBytes).toBe(0);
    expect(space.translate(address - 1)).toBe(-1);
    expect(space.translate(address + 2 * pageBytes)).toBe(-1);
    expect(space.translate(4096)).toBe(-1);
  });

  it('separates two processes', () => {
    const { mm, space } = newSpace();
    const other = mm.newSpace();
    const address = space.map(pageBytes);
    expect(other.map(pageBytes)).toBe(address);
    space.write(address, Uint8Array.of(1));
    const back = new Uint8Array(1);
    other.read(address, back);
    expect(back[0]).toBe(0);
    expect(other.translate(address)).not.toBe(space.translate(address));
  });

  it('maps huge pages on aligned memory', () => {
    const { frames, space } = newSpace();
    const address = space.map(hugePageBytes + 1, hugePageBytes);
    expect(address % hugePageBytes).toBe(0);
    expect(space.translate(address) % hugePageBytes).toBe(0);
    expect(space.translate(address + 12_345) - space.translate(address)).toBe(12_345);
    expect(space.mappedBytes).toBe(2 * hugePageBytes);
    space.unmap(address, 1);
    expect(frames.usedCount).toBe(512);
    expect(space.translate(address + hugePageBytes - 1)).toBe(-1);
    expect(() => space.map(1, 8192)).toThrow(/pageSize is 8192/);
  });

  it('answers -1 when memory is exhausted, and keeps nothing', () => {
    const { frames, space } = newSpace();
    expect(space.map(mib(64))).toBe(-1);
    expect(frames.usedCount).toBe(0);
    expect(space.mappedBytes).toBe(0);
    expect(space.map(mib(63))).toBeGreaterThan(0);
  });

  it('rejects writes to protected pages', () => {
    const { space } = newSpace();
    const address = space.map(2 * pageBytes);
    expect(space.protect(address + pageBytes, 1, 'read')).toBe(true);
    expect(space.write(address + pageBytes - 1, Uint8Array.of(1, 2))).toBe(false);
    expect(space.write(address, Uint8Array.of(1))).toBe(true);
    expect(space.read(address, new Uint8Array(2 * pageBytes))).toBe(true);
    expect(space.protect(address + pageBytes, 1, 'readWrite')).toBe(true);
    expect(space.write(address + pageBytes - 1, Uint8Array.of(1, 2))).toBe(true);
    expect(space.protect(address + pageBytes, 2 * pageBytes, 'read')).toBe(false);
  });

  it('maps windows into device space, which are not memory and cannot be pinned', () => {
    const { space } = newSpace();
    const bus = 2 ** 35 + 0x3000;
    const window = space.mapDevice(bus + 0x14, 8, 'writeCombining');
    expect(space.translate(window)).toBe(bus + 0x14);
    expect(space.read(window, new Uint8Array(4))).toBe(false);
    expect(space.pin(window, 4)).toBe('EFAULT');
    space.unmapDevice(window);
    expect(space.translate(window)).toBe(-1);
    expect(() => space.unmapDevice(window)).toThrow(/device window/);
  });
});

describe('pins', () => {
  it('list the physical page of every page the range touches', () => {
    const { space } = newSpace();
    const address = space.map(4 * pageBytes);
    const pinned = space.pin(address + pageBytes - 1, pageBytes + 2);
    if (typeof pinned === 'string') throw new Error(pinned);
    // Bytes 4095 to 8192 lie in pages 0, 1 and 2.
    expect([...pinned.pages]).toEqual([0, 1, 2].map((page) => space.translate(address + page * pageBytes)));
    expect(space.pinnedBytes).toBe(3 * pageBytes);
    space.unpin(pinned);
    expect(space.pinnedBytes).toBe(0);
  });

  it('keep the frames of pages that are unmapped', () => {
    const { memory, frames, space } = newSpace();
    const address = space.map(pageBytes);
    const pinned = space.pin(address, 8);
    if (typeof pinned === 'string') throw new Error(pinned);
    space.unmap(address, pageBytes);
    expect(space.translate(address)).toBe(-1);
    const physical = pinned.pages[0]!;
    memory.bytes[physical] = 0x5a;
    for (let frame = frames.allocate(); frame >= 0; frame = frames.allocate()) {
      expect(frame * pageBytes).not.toBe(physical);
    }
    expect(memory.bytes[physical]).toBe(0x5a);
    space.unpin(pinned);
    expect(frames.allocate() * pageBytes).toBe(physical);
  });

  it('count each time, also for the same pages, and are released one by one', () => {
    const { frames, space } = newSpace();
    const address = space.map(2 * pageBytes);
    const first = space.pin(address, 2 * pageBytes);
    const second = space.pin(address + pageBytes, 1);
    if (typeof first === 'string' || typeof second === 'string') throw new Error('pin');
    const frame = second.pages[0]! / pageBytes;
    expect([space.pinnedBytes, frames.pinsOf(frame)]).toEqual([3 * pageBytes, 2]);
    space.unpin(first);
    expect([space.pinnedBytes, frames.pinsOf(frame)]).toEqual([pageBytes, 1]);
    expect(() => space.unpin(first)).toThrow(/given back before/);
    expect(frames.pinsOf(frame)).toBe(1);
    expect(space.pins).toEqual([second]);
  });

  it('stop at RLIMIT_MEMLOCK with ENOMEM and at a hole with EFAULT, and leave nothing pinned', () => {
    const { frames, space } = newSpace(3 * pageBytes);
    const address = space.map(4 * pageBytes);
    expect(space.pin(address, 4 * pageBytes)).toBe('ENOMEM');
    expect(space.pin(address + 2 * pageBytes, 2 * pageBytes + 1)).toBe('EFAULT');
    expect(space.pin(address, 0)).toBe('EFAULT');
    expect(space.pinnedBytes).toBe(0);
    expect(frames.pinsOf(space.translate(address) / pageBytes)).toBe(0);
    expect(typeof space.pin(address, 3 * pageBytes)).toBe('object');
    expect(space.pin(address + 3 * pageBytes, 1)).toBe('ENOMEM');
  });

  it('outlive the process by as long as the device needs them', () => {
    const { frames, space } = newSpace();
    const address = space.map(3 * pageBytes);
    space.mapDevice(2 ** 35, pageBytes, 'uncached');
    const pinned = space.pin(address, 1);
    if (typeof pinned === 'string') throw new Error(pinned);
    space.release();
    expect([frames.usedCount, space.mappedBytes, space.deviceWindowCount]).toEqual([1, 0, 0]);
    space.unpin(pinned);
    expect(frames.usedCount).toBe(0);
  });
});

import { describe, expect, it } from 'vitest';
import { configurationOf } from '../../machine/profile/index.ts';
import { LogicalProcess } from '../../sim/index.ts';
import { HostCache } from './host-cache.ts';
import { memoryOfSlot } from './slot-memory.ts';

const memory = { sizeBytes: 2 ** 20, readInto: () => true, write: () => true };
/** Two sets of four ways, of which devices fill one: line n belongs to set n mod 2. */
const newCache = () => new HostCache(memory, { sizeBytes: 8 * 64, ways: 4, deviceWays: 1 }, 70_000);
const lines = (count: number) => Array.from({ length: count }, (_, line) => line * 64);
const bytes = new Uint8Array(64);

describe('the last-level cache of the slot’s host', () => {
  it('holds what cores touched: a read misses if one of its lines is not held', () => {
    const cache = newCache();
    expect(cache.missPs(0, 64)).toBe(70_000);
    cache.touch(0, 128);
    expect([cache.missPs(0, 64), cache.missPs(60, 8), cache.missPs(127, 1), cache.missPs(127, 2)]).toEqual([
      0, 0, 0, 70_000,
    ]);
  });

  it('keeps the most recently used of a set, and nothing of what devices read', () => {
    const cache = newCache();
    cache.touch(0, 8 * 64);
    cache.missPs(0, 64);
    cache.missPs(20 * 64, 64);
    expect(cache.missPs(20 * 64, 64)).toBe(70_000);
    // A fifth line of set 0 replaces line 2, since line 0 was read later.
    cache.touch(8 * 64, 64);
    expect(lines(9).map((at) => cache.missPs(at, 64) > 0)).toEqual([
      false,
      false,
      true,
      false,
      false,
      false,
      false,
      false,
      false,
    ]);
  });

  it('gives writes of devices one way of a set, unless the line is held', () => {
    const cache = newCache();
    for (const at of lines(8)) cache.write(at, 64, bytes, 0);
    expect(lines(8).filter((at) => cache.missPs(at, 64) === 0)).toEqual([6 * 64, 7 * 64]);
    const warm = newCache();
    warm.touch(0, 8 * 64);
    for (const at of lines(8)) warm.write(at, 64, bytes, 0);
    expect(lines(8).every((at) => warm.missPs(at, 64) === 0)).toBe(true);
  });
});

it('the memory of the slot is mapped to itself, page by page, and what is not accessed is not mapped', () => {
  const config = configurationOf({ set: { 'pcie.iommu.isEnabled': true } });
  const window = { bytes: 4 * 2 ** 20, cacheBytes: 2 ** 20, cached: 'nothing' } as const;
  const point = {
    kind: 'slot',
    via: 'command',
    access: 'read',
    sizeBytes: 64,
    window: 1,
    memory: window,
  } as const;
  const reached = memoryOfSlot(config, new LogicalProcess('host'), point);
  const content = Uint8Array.from({ length: 64 }, (_, at) => at + 1);
  const back = new Uint8Array(64);
  for (const address of [0, 0x1fff00, 0x200000, 0x3fffc0]) {
    expect(reached.write(address, 64, content, 0)).toBe(true);
    expect(reached.readInto(address, 64, back, 0)).toBe(true);
    expect(back).toEqual(content);
  }
  expect(reached.canRead?.(0x40_0000, 64)).toBe(false);
});

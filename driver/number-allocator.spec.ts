import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BuddyAllocator } from './buddy-allocator.ts';
import { NumberAllocator } from './number-allocator.ts';

const range = { name: 'number', count: 64, reserved: 4, end: 64, mask: 0xff, reuse: 'roundRobin' } as const;

describe('numbers', () => {
  it('end where the range ends, below the size of the table', () => {
    const allocator = new NumberAllocator({ ...range, end: 10 });
    expect(allocator.available).toBe(6);
    expect(Array.from({ length: 7 }, () => allocator.allocate())).toEqual([4, 5, 6, 7, 8, 9, -1]);
    allocator.release(6);
    // The index that is free again, in the next generation.
    expect(allocator.allocate() % 64).toBe(6);
  });

  it('start above the reserved ones and are all different until all are taken', () => {
    const allocator = new NumberAllocator(range);
    const taken = Array.from({ length: 60 }, () => allocator.allocate());
    expect(taken[0]).toBe(4);
    expect(new Set(taken).size).toBe(60);
    expect(allocator.allocate()).toBe(-1);
    expect(allocator.taken).toBe(60);
  });

  it('are reused late with round robin, and with the next generation after a wrap', () => {
    const allocator = new NumberAllocator(range);
    allocator.release(allocator.allocate());
    expect(allocator.allocate()).toBe(5);
    for (let index = 6; index < 64; index++) allocator.allocate();
    // The search wraps to index 4, now with 64 added: the second generation.
    expect(allocator.allocate()).toBe(64 + 4);
  });

  it('are reused at once with reuse first, each time in another generation of the key', () => {
    const keys = new NumberAllocator({
      ...range,
      count: 2 ** 19,
      end: 2 ** 19,
      mask: 0xffff_ffff,
      reuse: 'first',
    });
    const first = keys.allocate();
    keys.release(first);
    // Golden captures: slot 0x10 is handed out as 0x10, later as 0x100010, each release adding 2^19.
    expect(keys.allocate()).toBe(first + 2 ** 19);
  });

  it('reject a release of a free number', () => {
    const allocator = new NumberAllocator(range);
    expect(() => allocator.release(5)).toThrow('number to release');
  });

  it('never lose or duplicate a number, in any order of calls', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(99), { maxLength: 300 }), (steps) => {
        const allocator = new NumberAllocator(range);
        const live: number[] = [];
        for (const step of steps) {
          if (step < 60 || live.length === 0) {
            const number = allocator.allocate();
            if (number >= 0) {
              expect(live.map((other) => other & 63)).not.toContain(number & 63);
              live.push(number);
            }
          } else allocator.release(live.splice(step % live.length, 1)[0]!);
          expect(allocator.taken).toBe(live.length);
        }
      }),
    );
  });
});

describe('runs of translation entries', () => {
  it('are aligned to their size, do not overlap, and leave the reserved ones free', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 }), (sizes) => {
        const runs = new BuddyAllocator(256, 16);
        const owner = new Int32Array(256).fill(-1);
        for (const [at, size] of sizes.entries()) {
          const start = runs.allocate(size);
          if (start < 0) continue;
          const rounded = 2 ** Math.ceil(Math.log2(size));
          expect(start % rounded).toBe(0);
          expect(start).toBeGreaterThanOrEqual(16);
          for (let entry = start; entry < start + rounded; entry++) {
            expect(owner[entry]).toBe(-1);
            owner[entry] = at;
          }
        }
      }),
    );
  });

  it('join again when they are released', () => {
    const runs = new BuddyAllocator(256, 0);
    const starts = Array.from({ length: 256 }, () => runs.allocate(1));
    expect(runs.allocate(1)).toBe(-1);
    for (const start of starts) runs.release(start);
    expect(runs.taken).toBe(0);
    expect(runs.allocate(256)).toBe(0);
  });

  it('reject a release of a free run', () => {
    expect(() => new BuddyAllocator(16, 0).release(3)).toThrow('first entry to release');
  });
});

import { describe, expect, it } from 'vitest';
import { Random } from '../../sim/index.ts';
import { Places } from './perf-places.ts';
import type { PerfRegion } from './perf-plan.ts';
import { ZipfRanks } from './zipf-ranks.ts';

const taken = (region: PerfRegion, placeBytes: number, count: number): number[] => {
  const places = new Places(region, placeBytes, new Random(1));
  return Array.from({ length: count }, () => places.take());
};

describe('places of a region', () => {
  it('are used one after another, and again from the first', () => {
    expect(taken({ bytes: 300, pattern: 'sequential' }, 64, 6)).toEqual([0, 1, 2, 3, 0, 1]);
  });

  it('lie a stride apart', () => {
    const region = { bytes: 1024, pattern: 'stride', strideBytes: 384 } as const;
    // 16 places of 64 bytes, 6 places apart.
    expect(taken(region, 64, 5)).toEqual([0, 6, 12, 2, 8]);
    expect(taken({ bytes: 16_384, pattern: 'stride' }, 64, 3)).toEqual([0, 64, 128]);
  });

  it.each(['random', 'zipf'] as const)('are all inside, with %s', (pattern) => {
    const places = taken({ bytes: 64 * 1000, pattern }, 64, 5000);
    expect(Math.min(...places)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...places)).toBeLessThan(1000);
    const distinct = new Set(places).size;
    // 5000 draws from 1000 equally likely places miss 1000 e^-5 = 7 of them; a Zipf distribution misses many.
    if (pattern === 'random') expect(distinct).toBeGreaterThan(980);
    else expect(distinct).toBeLessThan(900);
  });
});

describe('ranks of a Zipf distribution', () => {
  it('are drawn in proportion to k^-0.99', () => {
    const [count, draws] = [100, 200_000];
    const ranks = new ZipfRanks(count, new Random(2));
    const seen = new Float64Array(count + 1);
    for (let draw = 0; draw < draws; draw++) seen[ranks.next()]!++;
    let sum = 0;
    for (let rank = 1; rank <= count; rank++) sum += rank ** -0.99;
    for (const rank of [1, 2, 3, 10, 50, 100]) {
      const expected = (draws * rank ** -0.99) / sum;
      // Five standard deviations.
      expect(Math.abs(seen[rank]! - expected)).toBeLessThan(5 * Math.sqrt(expected));
    }
    expect(seen[0]).toBe(0);
  });
});

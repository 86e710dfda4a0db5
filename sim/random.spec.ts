import { describe, expect, it } from 'vitest';
import { Random } from './random.ts';

const first = (random: Random, count = 4): number[] => Array.from({ length: count }, () => random.uint32());

/** sfc32 as its author wrote it (PractRand, RNG/sfc.cpp), on integers without bound. */
function* reference(a: bigint, b: bigint, c: bigint): Generator<number> {
  const mask = 0xffff_ffffn;
  for (let counter = 1n; ; counter++) {
    const sum = (a + b + counter) & mask;
    a = b ^ (b >> 9n);
    b = (c + (c << 3n)) & mask;
    c = ((((c << 21n) | (c >> 11n)) & mask) + sum) & mask;
    yield Number(sum);
  }
}

describe('random', () => {
  it('is sfc32, warmed up by 15 numbers', () => {
    // FNV-1a of the empty name is its offset basis.
    const numbers = reference(0x811c9dc5n, 0x89abcdefn, 0x1234n);
    for (let count = 0; count < 15; count++) numbers.next();
    const expected = Array.from({ length: 1000 }, () => numbers.next().value);
    expect(first(new Random(0x1234_89ab_cdef), 1000)).toEqual(expected);
  });

  it('gives the same numbers for a seed and stream, and others for others', () => {
    expect(first(new Random(7, 'wire'))).toEqual(first(new Random(7, 'wire')));
    const others = [
      new Random(7),
      new Random(8, 'wire'),
      new Random(7, 'cable'),
      new Random(7 + 2 ** 32, 'wire'),
    ];
    for (const other of others) expect(first(other)).not.toEqual(first(new Random(7, 'wire')));
  });

  it('spreads numbers evenly over any range', () => {
    const random = new Random(1);
    const counts = new Float64Array(7);
    for (let count = 0; count < 70_000; count++) counts[random.below(7)]!++;
    // Each of 7 is binomial with mean 10,000 and deviation 93: five deviations are 463.
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(463);
    const between = Array.from({ length: 1000 }, () => random.between(-2, 2));
    expect([Math.min(...between), Math.max(...between)]).toEqual([-2, 2]);
  });

  it('draws fractions from 0 up to but not including 1, and random decisions', () => {
    const random = new Random(2);
    const fractions = Array.from({ length: 1000 }, () => random.unit());
    expect(fractions.every((fraction) => fraction >= 0 && fraction < 1)).toBe(true);
    expect(random.chance(0)).toBe(false);
    expect(random.chance(1)).toBe(true);
  });

  it('rejects seeds that are not whole numbers from 0 to 2^53 - 1', () => {
    for (const seed of [-1, 0.5, 2 ** 53, Number.NaN]) expect(() => new Random(seed)).toThrow('seed is');
  });
});

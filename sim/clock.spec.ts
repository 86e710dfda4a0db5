import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Clock } from './clock.ts';

/** Edge n lies at floor(n × 10^6 / MHz) ps: exact in integers without bound. */
/** A division of BigInts rounds towards 0: so whole seconds are added before, and subtracted after it. */
function exactEdgePs(cycle: number, frequencyMHz: number): number {
  const secondsAgo = Math.max(0, Math.ceil(-cycle / (frequencyMHz * 1_000_000)));
  const shifted = BigInt(cycle) + BigInt(secondsAgo) * BigInt(frequencyMHz) * 1_000_000n;
  return Number((shifted * 1_000_000n) / BigInt(frequencyMHz) - BigInt(secondsAgo) * 1_000_000_000_000n);
}

const frequency = fc.oneof(
  fc.constantFrom(1, 3, 250, 427, 1000, 2500, 99_991, 100_000),
  fc.integer({ min: 1, max: 100_000 }),
);
/** Instants up to 2 hours, in any order. */
const cycleOf = (frequencyMHz: number) => fc.integer({ min: 0, max: 7200 * frequencyMHz * 1_000_000 });

describe('clock', () => {
  it('ends 10^9 cycles of 427 MHz on the right picosecond', () => {
    // 10^9 cycles × 10^6 ps / 427 = 10^15 / 427, and 10^15 = 427 × 2341920374707 + 111.
    expect(new Clock(427).edgePs(1e9)).toBe(2_341_920_374_707);
    expect(new Clock(427).cycleAtOrAfter(2_341_920_374_707)).toBe(1e9);
  });

  it('never drifts: the steps of 427 cycles add up to a million picoseconds', () => {
    const clock = new Clock(427);
    for (let block = 1; block < 3000; block++) expect(clock.edgePs(block * 427)).toBe(block * 1_000_000);
    // 10^6 / 427 = 2341.9…: single steps are 2341 or 2342 ps.
    for (let cycle = 0; cycle < 3000; cycle++) {
      expect([2341, 2342]).toContain(clock.edgePs(cycle + 1) - clock.edgePs(cycle));
    }
  });

  it('gives every edge its exact picosecond, asked in any order', () => {
    const asked = frequency.chain((mhz) =>
      fc.tuple(fc.constant(mhz), fc.array(cycleOf(mhz), { minLength: 1 })),
    );
    fc.assert(
      fc.property(asked, ([mhz, cycles]) => {
        const clock = new Clock(mhz);
        for (const cycle of cycles) expect(clock.edgePs(cycle)).toBe(exactEdgePs(cycle, mhz));
      }),
      { numRuns: 500 },
    );
  });

  it('finds for every instant the first edge at or after it, and strictly after it', () => {
    const asked = frequency.chain((mhz) =>
      fc.tuple(fc.constant(mhz), fc.array(cycleOf(mhz), { minLength: 1 }), fc.nat(3_000)),
    );
    fc.assert(
      fc.property(asked, ([mhz, cycles, offsetPs]) => {
        const clock = new Clock(mhz);
        for (const near of cycles) {
          const ps = clock.edgePs(near) + offsetPs;
          const cycle = clock.cycleAtOrAfter(ps);
          expect(clock.edgePs(cycle)).toBeGreaterThanOrEqual(ps);
          if (cycle > 0) expect(clock.edgePs(cycle - 1)).toBeLessThan(ps);
          const after = clock.cycleAfter(ps);
          expect(clock.edgePs(after)).toBeGreaterThan(ps);
          expect(clock.edgePs(after - 1)).toBeLessThanOrEqual(ps);
          expect(clock.cyclesElapsed(ps)).toBe(cycle);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('finds them in an earlier epoch as well, at any distance', () => {
    const ago = fc.tuple(frequency, fc.oneof(fc.nat(10_000), fc.integer({ min: 0, max: 2 ** 50 })));
    fc.assert(
      fc.property(ago, ([mhz, agoPs]) => {
        const cycle = new Clock(mhz).cycleAtOrAfter(-agoPs);
        expect(exactEdgePs(cycle, mhz)).toBeGreaterThanOrEqual(-agoPs);
        expect(exactEdgePs(cycle - 1, mhz)).toBeLessThan(-agoPs);
      }),
      { numRuns: 500 },
    );
  });

  it('rounds durations up to a whole picosecond', () => {
    expect(new Clock(427).durationPs(1)).toBe(2342);
    expect(new Clock(427).durationPs(427)).toBe(1_000_000);
    expect(new Clock(250).durationPs(3)).toBe(12_000);
    expect(new Clock(427).durationPs(0)).toBe(0);
  });

  it('refuses frequencies that are not whole megahertz from 1 to 100000', () => {
    for (const mhz of [0, -1, 1.5, 100_001, Number.NaN]) expect(() => new Clock(mhz)).toThrow(RangeError);
  });
});

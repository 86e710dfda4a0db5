import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Histogram } from './histogram.ts';

const value = fc.oneof(fc.nat(300), fc.nat(1_000_000), fc.maxSafeNat());

function histogramOf(values: readonly number[]): Histogram {
  const histogram = new Histogram();
  for (const each of values) histogram.record(each);
  return histogram;
}

describe('histogram', () => {
  it('keeps count, sum, minimum and maximum exactly', () => {
    const histogram = histogramOf([5, 1e12 + 1, 0, 7]);
    expect([histogram.count, histogram.sum, histogram.min, histogram.max]).toEqual([
      4,
      1e12 + 13,
      0,
      1e12 + 1,
    ]);
    expect(histogram.mean).toBe((1e12 + 13) / 4);
  });

  it('gives percentiles of small numbers exactly', () => {
    const histogram = histogramOf(Array.from({ length: 200 }, (_, index) => index + 1));
    // Nearest rank: p of 1…200 is the value at rank ceil(p × 200 / 100).
    expect([0, 0.5, 50, 99, 99.9, 100].map((percent) => histogram.percentile(percent))).toEqual([
      1, 1, 100, 198, 200, 200,
    ]);
  });

  it('gives any percentile within half a per cent of the sorted values', () => {
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 200 }),
        fc.double({ min: 0, max: 100, noNaN: true }),
        (values, percent) => {
          const sorted = values.toSorted((a, b) => a - b);
          const exact = sorted[Math.max(1, Math.ceil((percent / 100) * sorted.length)) - 1]!;
          const found = histogramOf(values).percentile(percent);
          expect(Math.abs(found - exact)).toBeLessThanOrEqual(exact * 0.004);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('merges parts into the whole, and survives serialisation', () => {
    fc.assert(
      fc.property(fc.array(value), fc.array(value), (left, right) => {
        const merged = histogramOf(left);
        merged.merge(histogramOf(right));
        const { sum, ...whole } = histogramOf([...left, ...right]).toData();
        const written = JSON.parse(JSON.stringify(merged.toData()));
        expect(written).toMatchObject(whole);
        expect(Histogram.from(written).toData()).toEqual(merged.toData());
        expect(merged.sum).toBe(sum);
      }),
    );
  });

  it('has no percentile when empty, and rejects negative values', () => {
    expect(new Histogram().percentile(50)).toBeNaN();
    for (const wrong of [-1, Number.NaN])
      expect(() => new Histogram().record(wrong)).toThrow('value of a histogram');
  });

  it('counts a value many times at once', () => {
    const histogram = new Histogram();
    histogram.record(3, 1000);
    expect([histogram.count, histogram.sum]).toEqual([1000, 3000]);
  });
});

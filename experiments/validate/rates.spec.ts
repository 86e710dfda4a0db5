import { describe, expect, it } from 'vitest';
import { flowFigures } from './rates.ts';

describe('the rate of flows', () => {
  it('is that of the second half of each, and of its messages the ninth tenth', () => {
    // The first ten messages of both take 100 and 50 us; the next ten 10 and 20: 1 and 0.5 a microsecond.
    const flow = (from: number, halfUs: number, endUs: number, times: (at: number) => number) => ({
      from,
      to: 0,
      halfPs: halfUs * 1e6,
      durationPs: endUs * 1e6,
      messagePs: Array.from({ length: 20 }, (_, at) => (at < 10 ? 99e6 : times(at - 10) * 1e6)),
    });
    const sides = [flow(1, 100, 110, (at) => 1 + at), flow(2, 50, 70, (at) => 11 + at)].map((one) => ({
      startPs: 0,
      flows: [one],
      wrong: [],
    }));
    const figures = flowFigures({ messages: 20, sizeBytes: 1000 }, sides);
    expect(figures['mops']).toBeCloseTo(1.5, 9);
    expect(figures['gbps']).toBeCloseTo(12, 9);
    // Times of 1 to 20 us.
    expect(figures['p90Us']).toBe(18);
  });
});

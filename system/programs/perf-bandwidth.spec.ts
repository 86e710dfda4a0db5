import { expect, it } from 'vitest';
import { resultOf } from './perf-bandwidth.ts';

it('takes as peak the best rate of all pairs of a post and a completion, and as average that of the whole run', () => {
  const postedPs = Float64Array.of(0, 100, 200, 300);
  // Best are the first two messages in 450 ps; the last pair, one message in 800 ps, is far worse.
  const result = resultOf(64, 4, postedPs, [1, 2, 3, 4], [400, 450, 1000, 1100], 1, 4);
  expect(result.peakBytesPerSecond).toBeCloseTo((64 * 2 * 1e12) / 450, 0);
  expect(result.averageBytesPerSecond).toBeCloseTo((64 * 4 * 1e12) / 1100, 0);
  expect(result.durationPs).toBe(1100);
});

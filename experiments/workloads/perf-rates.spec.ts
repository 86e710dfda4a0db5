import { expect, it } from 'vitest';
import { Random } from '../../sim/index.ts';
import { resultOf } from './perf-rates.ts';

it('uses as peak the best rate of all pairs of a post and a completion, and as average that of the whole run', () => {
  // The best pair is the first two messages in 450 ps; the last pair, one message in 800 ps, is far worse.
  const result = resultOf(64, 4, [0, 100, 200, 300], [1, 2, 3, 4], [400, 450, 1000, 1100], 1);
  expect(result.peakBytesPerSecond).toBeCloseTo((64 * 2 * 1e12) / 450, 0);
  expect(result.averageBytesPerSecond).toBeCloseTo((64 * 4 * 1e12) / 1100, 0);
  expect(result.durationPs).toBe(1100);
});

it('finds in random runs the same pair as an exhaustive search', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed);
    const postedPs: number[] = [];
    const doneCounts: number[] = [];
    const donePs: number[] = [];
    for (let nowPs = 0, done = 0; done < 60; nowPs += 1 + random.below(50)) {
      if (postedPs.length < 60 && random.chance(0.7)) postedPs.push(nowPs);
      else if (postedPs.length > done) {
        done += 1 + random.below(postedPs.length - done);
        doneCounts.push(done);
        donePs.push(nowPs);
      }
    }
    let best = 0;
    for (const [index, done] of doneCounts.entries())
      for (let post = 0; post < done; post++)
        best = Math.max(best, (done - post) / (donePs[index]! - postedPs[post]!));
    const { peakBytesPerSecond } = resultOf(1, 60, postedPs, doneCounts, donePs, 1);
    expect(peakBytesPerSecond / 1e12).toBeCloseTo(best, 12);
  }
});

it('has no peak above the rate of the link if one QP is far ahead of the others', () => {
  // A link that takes 10 ps per message; QP 0 posts 16 at once, and again as they complete; QP 1 posts 16 and waits.
  const postedPs = [...Array.from({ length: 32 }, () => 0), ...Array.from({ length: 32 }, () => 170)];
  const donePs = [160, 320, 480, 640];
  const { peakBytesPerSecond } = resultOf(1, 64, postedPs, [16, 32, 48, 64], donePs, 2);
  expect(peakBytesPerSecond).toBeLessThanOrEqual(1e11);
});

it('has a peak even if a completion precedes the end of the first message: for an echo, that of its send', () => {
  // Two messages, answered at 100 and 200 ps; their sends complete at 50 and 150.
  const { peakBytesPerSecond } = resultOf(64, 2, [0, 0], [0, 1, 1, 2], [50, 100, 150, 200], 1);
  expect(peakBytesPerSecond).toBeCloseTo((64 * 2 * 1e12) / 200, 0);
});

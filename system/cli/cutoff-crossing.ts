/**
 * Where two simulated lines cross: the interval between two measured sizes is cut into pieces, these are measured, and so on
 * until the interval is within a hundredth; then interpolated.
 *
 *     64 … 4K ─┬─ 8K … 1M        first loses at 4K, wins at 8K
 *              └─ 4.6K 5.2K 5.8K …   └─ 5.2K 5.25K 5.3K …
 */
import type { Way } from '../model/index.ts';

/** Measures one way at some sizes; latencies in picoseconds. */
export type Measure = (way: Way, sizes: readonly number[]) => Promise<readonly number[]>;

export interface Sample {
  readonly size: number;
  readonly firstPs: number;
  readonly secondPs: number;
}

const piecesOfInterval = 8;
const closeEnough = 1.01;

/**
 * The size from which on `second` is cheaper, up to the largest sample.
 * @returns undefined when it is not even there; the smallest size when it is everywhere
 */
export async function simulatedCrossing(
  measure: Measure,
  ways: readonly [first: Way, second: Way],
  samples: readonly Sample[],
): Promise<number | undefined> {
  const wins = ({ firstPs, secondPs }: Sample): boolean => secondPs < firstPs;
  if (!wins(samples.at(-1)!)) return undefined;
  const lastLoss = samples.findLastIndex((sample) => !wins(sample));
  if (lastLoss < 0) return samples[0]!.size;
  const [low, high] = [samples[lastLoss]!, samples[lastLoss + 1]!];
  const sizes = sizesBetween(low.size, high.size);
  if (high.size / low.size <= closeEnough || sizes.length === 0) return interpolated(low, high);
  const [first, second] = await Promise.all(ways.map((way) => measure(way, sizes)));
  const between = sizes.map((size, at) => ({ size, firstPs: first![at]!, secondPs: second![at]! }));
  return simulatedCrossing(measure, ways, [low, ...between, high]);
}

/** Whole sizes in even ratios between two. */
function sizesBetween(low: number, high: number): number[] {
  const sizes = Array.from({ length: piecesOfInterval - 1 }, (_, at) =>
    Math.round(low * (high / low) ** ((at + 1) / piecesOfInterval)),
  );
  return [...new Set(sizes)].filter((size) => size > low && size < high);
}

/** Where the difference of the two lines is nothing. */
function interpolated(low: Sample, high: Sample): number {
  const before = low.firstPs - low.secondPs;
  const after = high.firstPs - high.secondPs;
  return Math.round(low.size + ((high.size - low.size) * -before) / (after - before));
}

/**
 * Finds the crossing of two simulated lines. Each round measures three sizes in the interval between two measured
 * sizes: its middle, and a close pair around the place where straight lines would cross. Rounds continue until the
 * interval is within one percent; then the crossing is interpolated. The lines are nearly straight, so the close pair
 * usually encloses the crossing; otherwise the middle halves the interval.
 *
 *     64 … 4K ─┬─ 8K … 1M        first loses at 4K, wins at 8K
 *              └─ 5.18K 5.21K 5.8K       loses at 5.18K, wins at 5.21K
 */
import type { Way } from '../../experiments/model/index.ts';

/** Measures one way at several sizes; latencies in picoseconds. */
export type Measure = (way: Way, sizes: readonly number[]) => Promise<readonly number[]>;

export interface Sample {
  readonly size: number;
  readonly firstPs: number;
  readonly secondPs: number;
}

const closeEnough = 1.01;
/** The close pair around the expected place, within the tolerance. */
const [below, above] = [0.997, 1.003];

/**
 * The size from which on `second` is cheaper, up to the largest sample.
 * @returns undefined if it is not cheaper even there; the smallest size if it is cheaper everywhere
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
  const sizes = sizesBetween(low, high);
  if (high.size / low.size <= closeEnough || sizes.length === 0) return interpolated(low, high);
  const [first, second] = await Promise.all(ways.map((way) => measure(way, sizes)));
  const between = sizes.map((size, at) => ({ size, firstPs: first![at]!, secondPs: second![at]! }));
  return simulatedCrossing(measure, ways, [low, ...between, high]);
}

/** Whole sizes between two sizes, in ascending order. */
function sizesBetween(low: Sample, high: Sample): number[] {
  const expected = interpolated(low, high);
  const middle = Math.sqrt(low.size * high.size);
  const sizes = [below * expected, above * expected, middle].map(Math.round);
  return [...new Set(sizes)]
    .filter((size) => size > low.size && size < high.size)
    .toSorted((one, other) => one - other);
}

/** The size at which the two lines are equal. */
function interpolated(low: Sample, high: Sample): number {
  const before = low.firstPs - low.secondPs;
  const after = high.firstPs - high.secondPs;
  return Math.round(low.size + ((high.size - low.size) * -before) / (after - before));
}

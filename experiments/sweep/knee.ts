/**
 * The knee of a line, as V. Satopää and others define it in "Finding a 'Kneedle' in a Haystack" (2011), without
 * smoothing: both axes are scaled from 0 to 1, and the knee is the point of the curve farthest on one side of the line
 * between its ends. The side follows from the curve's direction; a figure of which less is better is mirrored first.
 *
 *     rises    ── above the line: it has risen, and saturates; the foot of a rise is not a knee
 *     falls    ── above the line: it was flat, and begins to fall; failing that, below the line: it has fallen, and is flat
 *
 * A candidate is a local maximum of the distance after which the distance drops by the mean step of x (the paper's
 * threshold with its sensitivity 1). A range of x that spans a factor of 8 is scaled logarithmically, which bends
 * straight lines: the curve must therefore also be bent in x itself, to either side and anywhere.
 *
 * If a rising curve only steepens up to its end, the knee is that end, or beyond.
 */

/** Limits below which a line has no knee: too few points, too small a change, or too straight. */
const pointsMin = 4;
const changeMin = 0.05;
const distanceMin = 0.1;
/** Limit of the sum of all its changes, in units of its range: a line that oscillates more has no knee. */
const wanderingMax = 2.5;
/** Least bend of a curve in x itself. */
const bentMin = 0.02;
const logarithmicRatio = 8;
const rounding = 1e-9;

export type Point = readonly [x: number, y: number];

/**
 * @param points by rising x
 * @param isMoreBetter false if the figure should be low
 * @returns the x of the knee, where the last point means "there or beyond", or undefined without a knee
 */
export function kneeOf(points: readonly Point[], isMoreBetter = true): number | undefined {
  if (points.length < pointsMin) return undefined;
  const heights = heightsOf(points, isMoreBetter);
  if (heights === undefined) return undefined;
  const xs = points.map(([x]) => x);
  const isLogarithmic = xs[0]! > 0 && xs.at(-1)! / xs[0]! >= logarithmicRatio;
  const places = fromZeroToOne(isLogarithmic ? xs.map(Math.log) : xs);
  const plain = fromZeroToOne(xs);
  const isRising = heights.at(-1)! >= heights[0]!;
  const sides = isRising ? [aboveRising] : [aboveFalling, belowFalling];
  for (const side of sides) {
    // A straight line stays on the line between its ends, whatever the scale of x.
    if (!heights.some((height, at) => Math.abs(side(plain[at]!, height)) >= bentMin)) continue;
    const at = farthest(heights.map((height, each) => side(places[each]!, height)));
    if (at !== undefined) return xs[at];
  }
  return isRising && steepens(plain, heights)
    ? xs[heights.findIndex((height) => height >= 1 - changeMin)]
    : undefined;
}

/** Distance from the line between the ends, along y. */
type Side = (place: number, height: number) => number;
const aboveRising: Side = (place, height) => height - place;
const aboveFalling: Side = (place, height) => height - (1 - place);
const belowFalling: Side = (place, height) => 1 - place - height;

/** The figure scaled from 0, its worst, to 1; undefined if it changes too little or oscillates. */
function heightsOf(points: readonly Point[], isMoreBetter: boolean): number[] | undefined {
  const ys = points.map(([, y]) => (isMoreBetter ? y : -y));
  const low = Math.min(...ys);
  const high = Math.max(...ys);
  if (high - low <= changeMin * Math.max(Math.abs(low), Math.abs(high))) return undefined;
  const heights = fromZeroToOne(ys);
  const changes = heights.reduce(
    (sum, height, at) => sum + Math.abs(height - (heights[at - 1] ?? height)),
    0,
  );
  return changes > wanderingMax ? undefined : heights;
}

/** The knee that is farthest. */
function farthest(distances: readonly number[]): number | undefined {
  const step = 1 / (distances.length - 1);
  let best: number | undefined;
  for (let at = 1; at < distances.length - 1; at++) {
    const distance = distances[at]!;
    if (distance < distanceMin - rounding || distance <= (distances[best ?? -1] ?? 0)) continue;
    const isPeak = distance > distances[at - 1]! && distance >= distances[at + 1]!;
    if (isPeak && dropsBelow(distances, at, distance - step)) best = at;
  }
  return best;
}

/** Whether the distance falls to the threshold before it rises above its earlier value. */
function dropsBelow(distances: readonly number[], from: number, threshold: number): boolean {
  for (const distance of distances.slice(from + 1)) {
    if (distance <= threshold + rounding) return true;
    if (distance > distances[from]!) return false;
  }
  return false;
}

/** Whether a rising curve is below the line between its ends, in x itself, because a straight line does not steepen. */
const steepens = (plain: readonly number[], heights: readonly number[]): boolean =>
  Math.max(...plain.map((place, at) => -aboveRising(place, heights[at]!))) >= distanceMin;

function fromZeroToOne(values: readonly number[]): number[] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  return values.map((value) => (value - low) / (high - low));
}

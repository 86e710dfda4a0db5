/**
 * The knee of a line: the point that lies farthest from the straight line between both ends, each axis taken from 0 to 1. There a
 * curve that rises or falls begins to be flat, or a flat one to fall. After V. Satopää and others, Finding a "Kneedle" in a
 * Haystack, 2011, without its smoothing: simulated figures have no noise.
 */

/** Below, a line has no knee: it has too few points, changes too little, or is too straight. */
const pointsMin = 4;
const changeMin = 0.05;
const distanceMin = 0.15;
/** A range of x that spans so much is taken by its logarithm. */
const logarithmicRatio = 8;

export type Point = readonly [x: number, y: number];

/** @param points by rising x @returns the x of the knee, or undefined when there is none */
export function kneeOf(points: readonly Point[]): number | undefined {
  if (points.length < pointsMin) return undefined;
  const xs = scaled(points.map(([x]) => x));
  const ys = points.map(([, y]) => y);
  const low = Math.min(...ys);
  const high = Math.max(...ys);
  if (high - low <= changeMin * Math.max(Math.abs(low), Math.abs(high))) return undefined;
  const heights = ys.map((y) => (y - low) / (high - low));
  const first = heights[0]!;
  const last = heights.at(-1)!;
  const distances = heights.map((height, at) => Math.abs(height - (first + (last - first) * xs[at]!)));
  const most = Math.max(...distances);
  return most < distanceMin ? undefined : points[distances.indexOf(most)]![0];
}

/** From 0 to 1, by value or by logarithm. */
function scaled(xs: readonly number[]): number[] {
  const isLogarithmic = xs[0]! > 0 && xs.at(-1)! / xs[0]! >= logarithmicRatio;
  const places = isLogarithmic ? xs.map(Math.log) : xs;
  const [low, high] = [places[0]!, places.at(-1)!];
  return places.map((place) => (place - low) / (high - low));
}

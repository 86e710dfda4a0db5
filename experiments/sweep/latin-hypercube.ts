/**
 * Latin hypercube samples: with `count` points, each axis is divided into `count` strata of equal weight, and each
 * stratum has one point. Every axis is thus covered evenly, even by few points.
 *
 * Each axis draws from a random stream of its own, named by its path: an additional axis does not change the values of
 * the others.
 */
import { Random } from '../../sim/index.ts';
import type { Axis, AxisValue } from './axis.ts';

export interface Sample {
  readonly count: number;
  readonly seed: number;
}

/** The values of each point, by axis, in the order of the points. */
export function latinHypercube(axes: readonly Axis[], { count, seed }: Sample): AxisValue[][] {
  const columns = axes.map((axis) => columnOf(axis, count, new Random(seed, `sweep.${axis.path}`)));
  return Array.from({ length: count }, (_, point) => columns.map((column) => column[point]!));
}

/** One value of each stratum, in a random order. Each value of a list occurs equally often, within one. */
function columnOf(axis: Axis, count: number, random: Random): AxisValue[] {
  const values = Array.from({ length: count }, (_, stratum) => valueIn(axis, stratum, count, random));
  for (let at = count - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [values[at], values[other]] = [values[other]!, values[at]!];
  }
  return values;
}

function valueIn(axis: Axis, stratum: number, count: number, random: Random): AxisValue {
  const length = 'values' in axis ? axis.values.length : axis.span.to - axis.span.from + 1;
  const at = placeIn(length, stratum, count, random.unit());
  return 'values' in axis ? axis.values[at]! : axis.span.from + at;
}

/**
 * An index from 0 up to but not including `length`. Two strata share none that is wide enough to be exclusive.
 * @param draw from 0 up to but not including 1
 */
function placeIn(length: number, stratum: number, count: number, draw: number): number {
  const first = Math.floor((stratum * length) / count);
  const next = Math.floor(((stratum + 1) * length) / count);
  return next <= first ? first : first + Math.floor(draw * (next - first));
}

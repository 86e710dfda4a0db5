/**
 * Latin hypercube samples: with `count` points, each axis is cut into `count` strata of equal weight, and each stratum has one
 * point. So every axis is covered evenly however few points there are.
 *
 * Each axis draws from a stream of its own, named by its path: a further axis does not change the values of the others.
 */
import { Random } from '../../sim/index.ts';
import type { Axis, AxisValue } from './axis.ts';
import type { Span } from './axis-text.ts';

export interface Sample {
  readonly count: number;
  readonly seed: number;
}

/** The values of each point, by axis, in the order of the points. */
export function latinHypercube(axes: readonly Axis[], { count, seed }: Sample): AxisValue[][] {
  const columns = axes.map((axis) => columnOf(axis, count, new Random(seed, `sweep.${axis.path}`)));
  return Array.from({ length: count }, (_, point) => columns.map((column) => column[point]!));
}

/** One value of each stratum, in a random order. A list gives each of its values as often as any other, give or take one. */
function columnOf(axis: Axis, count: number, random: Random): AxisValue[] {
  const values = Array.from({ length: count }, (_, stratum) => valueIn(axis, stratum, count, random));
  for (let at = count - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [values[at], values[other]] = [values[other]!, values[at]!];
  }
  return values;
}

function valueIn(axis: Axis, stratum: number, count: number, random: Random): AxisValue {
  const draw = random.unit();
  if (!('values' in axis)) return wholeNumberIn(axis.span, (stratum + draw) / count);
  const { values } = axis;
  // A stratum that is narrower than a value has that value; one that is wider draws one of its own.
  const within = count < values.length ? draw : 0;
  return values[Math.floor(((stratum + within) * values.length) / count)]!;
}

/** @param share of the way, from 0 up to but not including 1 */
const wholeNumberIn = ({ from, to }: Span, share: number): number =>
  Math.min(to, from + Math.floor(share * (to - from + 1)));

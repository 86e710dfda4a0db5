/** Changes from one output to another of its kind: requested values, then results, largest first. */
import { ConfigurationError } from '../../base/index.ts';
import { figuresOf, type Leaf, soleRowOf } from './figures.ts';
import { type FigureGroup, figureGroups, groupOf } from './groups.ts';
import type { Output } from './output.ts';
import { type RequestChange, requestChanges } from './request.ts';
import { type Tolerance, toleranceBy } from './tolerance.ts';
import { unlikeTopologies, withSwitchesByOrder } from './topologies.ts';

/** A figure that differs. */
export interface FigureChange {
  readonly path: string;
  /** Left out if the output lacks the figure. */
  readonly before?: Leaf;
  readonly after?: Leaf;
  /** Relative growth: 0.5 for half as much again; null if it is meaningless: from zero, or for words. */
  readonly change: number | null;
  readonly isWithinTolerance: boolean;
}

export interface ReportDiff {
  readonly schema: 'hca-diff/1';
  /** Schema of both outputs. */
  readonly compared: string;
  /** Whether both outputs have the same request, and every figure is equal within its tolerance. */
  readonly isEqual: boolean;
  readonly request: readonly RequestChange[];
  /** Number of figures that were compared. */
  readonly figures: number;
  /** Number of figures that only one output has, because its topology differs: they are not compared. Left out for equal topologies. */
  readonly unmatched?: number;
  /** Number of figures that differ. */
  readonly changed: number;
  /** Number of figures that differ by more than their tolerance. */
  readonly beyond: number;
  /** Largest first; groups without changes are left out. */
  readonly groups: readonly { readonly group: FigureGroup; readonly changes: readonly FigureChange[] }[];
}

/** @throws ConfigurationError for outputs of different schemas */
export function reportDiff(before: Output, after: Output, tolerances: readonly Tolerance[] = []): ReportDiff {
  if (before.schema !== after.schema)
    throw new ConfigurationError(
      'schema of the second file',
      after.schema,
      `${before.schema}, as of the first`,
    );
  const soleRow = soleRowOf(before, after);
  const topologies = unlikeTopologies(before, after);
  const [left, right] =
    topologies === undefined
      ? [figuresOf(before, soleRow), figuresOf(after, soleRow)]
      : [
          figuresOf(withSwitchesByOrder(before, topologies[0]), soleRow),
          figuresOf(withSwitchesByOrder(after, topologies[1]), soleRow),
        ];
  const all = [...new Set([...left.keys(), ...right.keys()])];
  // Hosts, cables and flows that one topology lacks have no counterpart.
  const paths = topologies === undefined ? all : all.filter((path) => left.has(path) && right.has(path));
  const toleranceOf = toleranceBy(tolerances);
  const changes = paths.flatMap((path) => {
    const [one, other] = [left.get(path), right.get(path)];
    return one === other ? [] : [changeOf(path, one, other, toleranceOf(path))];
  });
  const request = requestChanges(before, after, topologies);
  const beyond = changes.filter(({ isWithinTolerance }) => !isWithinTolerance).length;
  return {
    schema: 'hca-diff/1',
    compared: before.schema,
    isEqual: beyond === 0 && !request.some(({ isAsked }) => isAsked),
    request,
    figures: paths.length,
    ...(topologies === undefined ? {} : { unmatched: all.length - paths.length }),
    changed: changes.length,
    beyond,
    groups: figureGroups.flatMap((group) => {
      const rows = changes.filter(({ path }) => groupOf(path) === group).toSorted(byMagnitude);
      return rows.length === 0 ? [] : [{ group, changes: rows }];
    }),
  };
}

function changeOf(
  path: string,
  before: Leaf | undefined,
  after: Leaf | undefined,
  percent: number,
): FigureChange {
  const [from, to] = [numberOf(path, before), numberOf(path, after)];
  const isNumeric = from !== undefined && to !== undefined;
  return {
    path,
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
    change: isNumeric && from !== 0 ? (to - from) / Math.abs(from) : null,
    isWithinTolerance: isNumeric && Math.abs(to - from) <= (percent / 100) * Math.abs(from),
  };
}

/** A figure's number; times that no number represents are decimal digits (exactPs). */
function numberOf(path: string, value: Leaf | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /Ps(\.|$)/.test(path) && /^-?\d+$/.test(value)
    ? Number(value)
    : undefined;
}

/** Order by the ratio of the larger to the smaller; pairs without a ratio come first; then by difference, then by name. */
function byMagnitude(left: FigureChange, right: FigureChange): number {
  const [one, other] = [magnitudeOf(left), magnitudeOf(right)];
  return other.ratio - one.ratio || other.difference - one.difference || (left.path < right.path ? -1 : 1);
}

function magnitudeOf({ path, before, after }: FigureChange): {
  readonly ratio: number;
  readonly difference: number;
} {
  const [from, to] = [numberOf(path, before), numberOf(path, after)];
  if (from === undefined || to === undefined) return { ratio: 2, difference: 0 };
  const difference = Math.abs(to - from);
  return { ratio: difference / Math.max(Math.abs(from), Math.abs(to)), difference };
}

/** Summary of a sweep: places of the best and worst of each figure, and axes along which it has a knee. */
import { figureKindOf } from './figure-kinds.ts';
import { kneeOf } from './knee.ts';
import { linesOver } from './lines.ts';
import type { SweepRow } from './row.ts';

/** The figures of a summary: the measurements of a test's client, or of all flows of a fabric. */
const headlineFigures = [
  ...['messagesPerSecond', 'averageBytesPerSecond', 'typicalPs'],
  ...['bytesPerSecond', 'fairness', 'p99Ps'],
];

interface Extreme {
  readonly value: number;
  readonly row: SweepRow;
}

export interface FigureSummary {
  readonly figure: string;
  readonly best: Extreme;
  readonly worst: Extreme;
  readonly knees: readonly KneeSummary[];
}

/** Knees of a figure over an axis, one line for each choice of the other axes. */
export interface KneeSummary {
  readonly axis: string;
  /** Number of lines with enough points. */
  readonly lineCount: number;
  /** The knees of those that have one, rising. */
  readonly at: readonly number[];
  /** End of the longest line: a knee there may lie beyond. */
  readonly end: number;
}

export function summaryOf(
  rows: readonly SweepRow[],
  axes: readonly string[],
  figures: readonly string[] = headlineFigures,
): FigureSummary[] {
  return figures.flatMap((figure) => {
    const found = rows.flatMap((row) => {
      const value = row.figures[figure];
      return typeof value === 'number' ? [{ value, row }] : [];
    });
    if (found.length === 0) return [];
    const rising = found.toSorted(
      (left, right) => left.value - right.value || left.row.index - right.row.index,
    );
    const isMoreBetter = figureKindOf(figure).isMoreBetter ?? true;
    const [best, worst] = isMoreBetter
      ? [firstOf(rising, rising.at(-1)!.value), rising[0]!]
      : [rising[0]!, firstOf(rising, rising.at(-1)!.value)];
    const knees = axes.flatMap((axis) => kneesOver(rows, axes, axis, figure));
    return [{ figure, best, worst, knees }];
  });
}

/** Returns the first of the points with this value. */
const firstOf = (rising: readonly Extreme[], value: number): Extreme =>
  rising.find((extreme) => extreme.value === value)!;

function kneesOver(
  rows: readonly SweepRow[],
  axes: readonly string[],
  axis: string,
  figure: string,
): KneeSummary[] {
  const lines = linesOver(rows, axes, axis, figure);
  const long = lines.filter(({ points }) => points.length >= 4);
  if (long.length === 0) return [];
  const { isMoreBetter } = figureKindOf(figure);
  const at = long
    .flatMap(({ points }) => kneeOf(points, isMoreBetter) ?? [])
    .toSorted((left, right) => left - right);
  const end = Math.max(...long.map(({ points }) => points.at(-1)![0]));
  return [{ axis, lineCount: long.length, at, end }];
}

/** Axes along which none of these figures ever changes, for all values of the other axes. */
export function idleAxesOf(
  rows: readonly SweepRow[],
  axes: readonly string[],
  figures: readonly string[] = headlineFigures,
): string[] {
  return axes.filter((axis) => {
    const others = axes.filter((path) => path !== axis);
    const groups = Map.groupBy(rows, (row) => JSON.stringify(others.map((path) => row.axes[path] ?? null)));
    const isCompared = [...groups.values()].some(({ length }) => length > 1);
    const isSame = (group: readonly SweepRow[]): boolean =>
      figures.every((figure) => new Set(group.map((row) => row.figures[figure])).size === 1);
    return isCompared && [...groups.values()].every(isSame);
  });
}

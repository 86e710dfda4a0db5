/** Lines of a figure over a numeric axis: one for each choice of all other axes. */
import type { AxisValue } from './axis.ts';
import type { SweepRow } from './row.ts';

export interface FigureLine {
  /** Settings common to the whole line. */
  readonly fixed: Readonly<Record<string, AxisValue | null>>;
  /** Points by rising x. */
  readonly points: readonly (readonly [x: number, y: number])[];
  /** The row of each point. */
  readonly rows: readonly SweepRow[];
}

/** Lines in the order of their first rows; rows without a number on the axis or in the figure are left out. */
export function linesOver(
  rows: readonly SweepRow[],
  axes: readonly string[],
  axis: string,
  figure: string,
): FigureLine[] {
  const others = axes.filter((path) => path !== axis);
  const groups = Map.groupBy(
    rows.filter((row) => typeof row.axes[axis] === 'number' && typeof row.figures[figure] === 'number'),
    (row) => JSON.stringify(others.map((path) => row.axes[path] ?? null)),
  );
  return [...groups.values()].map((group) => {
    const rising = group.toSorted((left, right) => Number(left.axes[axis]) - Number(right.axes[axis]));
    return {
      fixed: Object.fromEntries(others.map((path) => [path, rising[0]!.axes[path] ?? null])),
      points: rising.map((row) => [Number(row.axes[axis]), Number(row.figures[figure])] as const),
      rows: rising,
    };
  });
}

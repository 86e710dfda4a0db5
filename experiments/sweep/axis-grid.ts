/** A figure over two axes: one grid for each choice of the others. */
import type { AxisValue } from './axis.ts';
import type { SweepRow } from './row.ts';

export interface AxisGrid {
  /** Settings common to the whole grid. */
  readonly fixed: Readonly<Record<string, AxisValue | null>>;
  readonly xs: readonly (AxisValue | null)[];
  readonly ys: readonly (AxisValue | null)[];
  /** Cells by y and x; undefined if the point does not exist or lacks the figure. */
  readonly cells: readonly (readonly (number | undefined)[])[];
  /** Indexes of the cells' points, by y and x; undefined if the point does not exist. */
  readonly indexes: readonly (readonly (number | undefined)[])[];
}

export function gridsOver(
  rows: readonly SweepRow[],
  axes: readonly string[],
  [x, y]: readonly [x: string, y: string],
  figure: string,
): AxisGrid[] {
  const others = axes.filter((path) => path !== x && path !== y);
  const groups = Map.groupBy(rows, (row) => JSON.stringify(others.map((path) => row.axes[path] ?? null)));
  return [...groups.values()].map((group) => {
    const [xs, ys] = [axisValuesOf(group, x), axisValuesOf(group, y)];
    const byPlace = new Map(
      group.map((row) => [JSON.stringify([row.axes[x] ?? null, row.axes[y] ?? null]), row]),
    );
    const found = ys.map((atY) => xs.map((atX) => byPlace.get(JSON.stringify([atX, atY]))));
    const cells = found.map((row) =>
      row.map((point) => {
        const value = point?.figures[figure];
        return typeof value === 'number' ? value : undefined;
      }),
    );
    return {
      fixed: Object.fromEntries(others.map((path) => [path, group[0]!.axes[path] ?? null])),
      xs,
      ys,
      cells,
      indexes: found.map((row) => row.map((point) => point?.index)),
    };
  });
}

/** The values that rows have on an axis: numbers rising, words in order of appearance. */
export function axisValuesOf(rows: readonly SweepRow[], axis: string): (AxisValue | null)[] {
  const values = [...new Set(rows.map((row) => row.axes[axis] ?? null))];
  return values.every((value) => typeof value === 'number')
    ? values.toSorted((left, right) => Number(left) - Number(right))
    : values;
}

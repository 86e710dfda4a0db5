/** The Pareto front of two figures: the rows that no other row beats in one figure without being worse in the other. */
import { figureKindOf } from './figure-kinds.ts';
import type { SweepRow } from './row.ts';

/**
 * Returns the Pareto front by rising first figure; of rows with both figures equal, only the first.
 * @param rows that have both figures, as numbers
 */
export function paretoFront(rows: readonly SweepRow[], x: string, y: string): SweepRow[] {
  const worthOf = (row: SweepRow, figure: string): number =>
    Number(row.figures[figure]) * (isMoreBetter(figure) ? 1 : -1);
  const best = rows.toSorted(
    (left, right) =>
      worthOf(right, x) - worthOf(left, x) ||
      worthOf(right, y) - worthOf(left, y) ||
      left.index - right.index,
  );
  let most = Number.NEGATIVE_INFINITY;
  const front = best.filter((row) => {
    if (worthOf(row, y) <= most) return false;
    most = worthOf(row, y);
    return true;
  });
  return front.toSorted((left, right) => Number(left.figures[x]) - Number(right.figures[x]));
}

/** A figure of unknown direction counts as a rate: more is better. */
export const isMoreBetter = (figure: string): boolean => figureKindOf(figure).isMoreBetter ?? true;

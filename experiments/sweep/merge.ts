/** Joins separately written results of one sweep: from shards, or from interrupted runs on several machines. */
import { isDeepStrictEqual } from 'node:util';
import { ConfigurationError } from '../../base/index.ts';
import type { Results } from './results-file.ts';
import { type SweepRow, worthOfStatus } from './row.ts';

export interface NamedResults extends Results {
  readonly file: string;
}

/**
 * One row of each point, by rising index.
 * @throws ConfigurationError for files of different sweeps, and for a point with different results in two of them
 */
export function mergedResults(parts: readonly NamedResults[]): Results {
  const first = parts[0]!;
  const byIndex = new Map<number, { readonly row: SweepRow; readonly file: string }>();
  for (const { file, header, rows } of parts) {
    if (header.sweep !== first.header.sweep)
      throw new ConfigurationError('results', file, `a file of the same sweep as ${first.file}`);
    for (const row of rows) {
      const other = byIndex.get(row.index);
      if (other?.row.status === 'done' && row.status === 'done') checkEqual(other.row, row, other.file, file);
      if (other === undefined || worthOfStatus[row.status] > worthOfStatus[other.row.status])
        byIndex.set(row.index, { row, file });
    }
  }
  const rows = [...byIndex.values()].map(({ row }) => row);
  return { header: first.header, rows: rows.toSorted((left, right) => left.index - right.index) };
}

function checkEqual(one: SweepRow, other: SweepRow, file: string, otherFile: string): void {
  if (one.hash === other.hash && isDeepStrictEqual(one.figures, other.figures)) return;
  throw new ConfigurationError(
    `point ${one.index} of ${otherFile}`,
    'other figures',
    `those of ${file}: the same point gives the same figures, so one of both was not run by this version`,
  );
}

/** Indexes of points without a row. */
export function missingOf({ header, rows }: Results): number[] {
  const there = new Set(rows.map(({ index }) => index));
  return Array.from({ length: header.pointCount }, (_, index) => index).filter((index) => !there.has(index));
}

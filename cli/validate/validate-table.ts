/** Output of `hca validate`: a table for each family, rows that did not run, and a summary by group. */

import {
  type Case,
  circumstancesText,
  errorText,
  figureText,
  type GroupResult,
  groupTitle,
  isRun,
  type RowResult,
  tallyText,
  tolerances,
} from '../../experiments/validate/index.ts';
import { tableOf } from '../../explain/text/table.ts';

/** Rows with their cases, by family and source. */
function together(cases: readonly Case[], results: readonly RowResult[]): [Case, RowResult][][] {
  const found = new Map<string, [Case, RowResult][]>();
  for (const [at, one] of cases.entries()) {
    const why = isRun(one.family) ? '' : one.family.notRun.why;
    const key = [one.family.name, one.row.source, why].join('\n');
    const rows = found.get(key) ?? [];
    rows.push([one, results[at]!]);
    found.set(key, rows);
  }
  return [...found.values()];
}

export function familyTables(cases: readonly Case[], results: readonly RowResult[]): string[] {
  return together(cases, results).flatMap((rows) => {
    const [{ family, row }] = rows[0]!;
    if (!isRun(family)) return [];
    const source = row.source === '' ? '' : `\nSource: ${row.source}, ${row.where}`;
    const title = `\n${family.name}: ${family.workload}${source}`;
    const head = ['row', 'at', 'measured', 'simulated', 'error', 'tolerance', 'verdict'];
    return [
      tableOf(
        title,
        head,
        rows.map(([one, result]) => cellsOf(one, result)),
      ),
    ];
  });
}

function cellsOf(
  { row }: Case,
  { id, measured, unit, simulated, error, tolerance, verdict }: RowResult,
): string[] {
  return [
    id,
    circumstancesText(row).slice(0, 24),
    `${figureText(measured)} ${unit}`,
    simulated === undefined ? '–' : figureText(simulated),
    error === undefined ? '–' : errorText(measured, error),
    tolerance === undefined ? '–' : tolerances[tolerance].name,
    verdict,
  ];
}

/** More rows are named by the first and the last. */
const idsMax = 6;

/** A sentence for each family that does not run, and for each row whose simulation failed. */
export function reasons(cases: readonly Case[], results: readonly RowResult[]): string[] {
  const left = together(cases, results).flatMap((rows) => {
    const [{ family }] = rows[0]!;
    if (isRun(family)) return [];
    const ids = rows.map(([, { id }]) => id);
    const which = ids.length <= idsMax ? ids.join(', ') : `${ids[0]} to ${ids.at(-1)} (${ids.length} rows)`;
    return [`Not run: ${which}, ${family.name}: ${family.notRun.why}.`];
  });
  const failed = results.flatMap(({ id, verdict, why }) =>
    verdict === 'failed' ? [`Failed: ${id}: ${why}`] : [],
  );
  return [...left, ...failed];
}

export const summaryTable = (groups: readonly GroupResult[]): string =>
  tableOf(
    '\nRows within tolerance among those that run. Parameters were fitted when the given rows were known; unseen rows test them',
    ['group', 'rows', 'not run', 'failed', 'given rows', 'unseen rows'],
    groups.map(({ group, rows, failed, notRun, given, unseen }) => [
      group === 'all' ? 'all' : `${group} ${groupTitle(group)}`.slice(0, 34),
      rows,
      notRun,
      failed,
      tallyText(given),
      tallyText(unseen),
    ]),
  );

/** Shows for --list how each row would run, without running it. */
export const listTable = (cases: readonly Case[], results: readonly RowResult[]): string =>
  tableOf(
    'Rows by family',
    ['family', 'rows', 'from', 'workload, or why it is not run'],
    together(cases, results).map((rows) => {
      const [{ family, row }] = rows[0]!;
      return [
        family.name,
        rows.length,
        row.id,
        isRun(family) ? family.workload : `Not run: ${family.notRun.why}`,
      ];
    }),
  );

/** Measured and simulated curves of each family in one chart, as one self-contained page. */

import {
  type Case,
  circumstance,
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
import type { PageHead } from '../../explain/page/index.ts';
import { titled, wordsOf } from '../../explain/text/words.ts';
import { type Chart, type ChartLine, chartPage } from '../chart/index.ts';

/** Fewer points make no curve. */
const pointsLeast = 3;

/** First sentences of the page. */
export function validateSentences(groups: readonly GroupResult[]): string[] {
  const all = groups.at(-1)!;
  return [
    `Within tolerance: ${tallyText(all.given)}, of the rows that were known when parameters were fitted, and ${tallyText(all.unseen)}, of the rows that were not; ${all.notRun} rows cannot be run.`,
    'Thick lines are simulated, dashed ones measured on hardware.',
  ];
}

export function validatePage(
  head: PageHead,
  cases: readonly Case[],
  results: readonly RowResult[],
  groups: readonly GroupResult[],
): string {
  return chartPage(head, {
    charts: chartsOf(cases, results),
    tables: [groupTable(groups), rowTable(cases, results)],
  });
}

interface Curve {
  readonly over: string;
  readonly unit: string;
  readonly source: string;
  readonly names: Map<string, [x: number, measured: number, simulated: number][]>;
}

/** A chart for each source, unit and condition; a line for each family. */
function chartsOf(cases: readonly Case[], results: readonly RowResult[]): Chart[] {
  const curves = new Map<string, Curve>();
  const metrics = metricsOf(cases);
  for (const [at, { row, family }] of cases.entries()) {
    const { simulated } = results[at]!;
    if (!isRun(family) || family.over === undefined || simulated === undefined) continue;
    // Axes are logarithmic.
    if (row.value <= 0 || !(simulated > 0)) continue;
    const key = [row.source, row.unit, family.over].join('\n');
    const curve = curves.get(key) ?? {
      over: family.over,
      unit: row.unit,
      source: row.source,
      names: new Map(),
    };
    curves.set(key, curve);
    const isOneOfSeveral = metrics.get(family.name)!.size > 1;
    const name = lineName(
      isOneOfSeveral ? `${family.name}, ${row.metric}` : family.name,
      row.params,
      family.over,
    );
    const points = curve.names.get(name) ?? [];
    points.push([circumstance(row, family.over), row.value, simulated]);
    curve.names.set(name, points);
  }
  return [...curves.values()].flatMap(chartOf);
}

/** Quantities of the rows of each family: mean and median form one line each. */
function metricsOf(cases: readonly Case[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = Map.groupBy(cases, ({ family }) => family.name);
  return new Map([...found].map(([name, own]) => [name, new Set(own.map(({ row }) => row.metric))]));
}

/** Rows of a family over sizes may also differ in window: one line for each window. */
function lineName(family: string, params: string, over: string): string {
  const window = /window\/thread=\d+/.exec(params)?.[0];
  return window === undefined || over.startsWith('window') ? family : `${family}, ${window}`;
}

function chartOf({ over, unit, source, names }: Curve): Chart[] {
  const lines = [...names].flatMap(([name, points]): ChartLine[] => {
    if (new Set(points.map(([x]) => x)).size < pointsLeast) return [];
    const rising = points.toSorted(([left], [right]) => left - right);
    return [
      { name: `${name}, simulated`, points: rising.map(([x, , simulated]) => [x, simulated] as const) },
      {
        name: `${name}, measured`,
        points: rising.map(([x, measured]) => [x, measured] as const),
        besides: `${name}, simulated`,
      },
    ];
  });
  return lines.length === 0
    ? []
    : [
        {
          title: `${source}: ${unit} over ${wordsOf(over)}`,
          xLabel: titled(wordsOf(over)),
          yLabel: unit,
          lines,
        },
      ];
}

const groupTable = (groups: readonly GroupResult[]) => ({
  title: 'By group',
  head: ['group', 'rows', 'hold', 'miss', 'failed', 'not run', 'share', 'given rows', 'unseen rows'],
  rows: groups.map((one) => {
    const { group, rows, holds, misses, failed, notRun, given, unseen } = one;
    return [
      group === 'all' ? 'all' : `${group}: ${groupTitle(group)}`,
      ...[rows, holds, misses, failed, notRun].map(String),
      ...[one, given, unseen].map(tallyText),
    ];
  }),
});

const rowTable = (cases: readonly Case[], results: readonly RowResult[]) => ({
  title: 'Rows',
  head: ['row', 'family', 'at', 'measured', 'simulated', 'error', 'tolerance', 'verdict'],
  rows: results.map(({ id, family, measured, unit, simulated, error, tolerance, verdict, why }, at) => [
    id,
    family,
    circumstancesText(cases[at]!.row),
    `${figureText(measured)} ${unit}`,
    simulated === undefined ? '' : figureText(simulated),
    error === undefined ? '' : errorText(measured, error),
    tolerance === undefined ? '' : tolerances[tolerance].name,
    why === undefined ? verdict : `${verdict}: ${why}`,
  ]),
});

/** Summary at the end of a sweep: best and worst of each figure, knees, and the number of points of each kind. */

import {
  type FigureSummary,
  figureText,
  idleAxesOf,
  type KneeSummary,
  type SweepRow,
  summaryOf,
} from '../../experiments/sweep/index.ts';
import type { PageTable } from '../../explain/page/index.ts';
import { countText } from '../../explain/text/format.ts';
import { tableOf } from '../../explain/text/table.ts';
import { axisTitleOf, figureTitleOf } from '../../explain/text/titles.ts';
import { titled } from '../../explain/text/words.ts';

/** @param pointCount points of the whole sweep; the rows may be a part of it */
export function sweepSummary(
  rows: readonly SweepRow[],
  axes: readonly string[],
  pointCount: number,
): string[] {
  const varying = varyingOf(rows, axes);
  return [
    ...(varying.length === 0
      ? []
      : [
          tableOf(
            bestAndWorst.title,
            [...bestAndWorst.head],
            varying.map((each) => cellsOf(each, axes)),
          ),
        ]),
    ...summarySentences(rows, axes, pointCount),
  ];
}

const bestAndWorst = { title: 'Best and worst', head: ['figure', 'best', 'at', 'worst', 'at'] } as const;

/** Figures that differ between points. */
const varyingOf = (rows: readonly SweepRow[], axes: readonly string[]): FigureSummary[] =>
  summaryOf(
    rows.filter(({ status }) => status === 'done'),
    axes,
  ).filter(({ best, worst }) => best.value !== worst.value);

/** Best and worst as a table of a page, with figures and axes in words; undefined if no figure changes. */
export function bestAndWorstTable(rows: readonly SweepRow[], axes: readonly string[]): PageTable | undefined {
  const varying = varyingOf(rows, axes);
  if (varying.length === 0) return undefined;
  return {
    ...bestAndWorst,
    rows: varying.map(({ figure, best, worst }) => [
      titled(figureTitleOf(figure)),
      figureText(figure, best.value),
      placeWords(best.row, axes),
      figureText(figure, worst.value),
      placeWords(worst.row, axes),
    ]),
  };
}

/** The sentences of the summary. */
export function summarySentences(
  rows: readonly SweepRow[],
  axes: readonly string[],
  pointCount: number,
): string[] {
  const done = rows.filter(({ status }) => status === 'done');
  const all = summaryOf(done, axes);
  const varying = varyingOf(rows, axes);
  const idle = idleAxesOf(done, axes);
  const same = all.filter(({ best, worst }) => best.value === worst.value);
  return [
    ...same.map(({ figure, best }) => `${figure} is ${figureText(figure, best.value)} at every point.`),
    ...varying.flatMap(({ figure, knees }) =>
      knees.filter(({ axis }) => !idle.includes(axis)).map((knee) => kneeText(figure, knee)),
    ),
    ...idle.map((axis) => `${axis} changes none of these figures, at any point.`),
    ...roundTripText(done),
    ...lossText(done),
    countsText(rows, pointCount),
    ...errorLines(rows, axes),
  ];
}

function cellsOf({ figure, best, worst }: FigureSummary, axes: readonly string[]): string[] {
  return [
    figure,
    figureText(figure, best.value),
    placeText(best.row, axes),
    figureText(figure, worst.value),
    placeText(worst.row, axes),
  ];
}

/** The values of a row's axes, one per line, under the last parts of their paths if these are distinct. */
export function placeText({ axes: values }: SweepRow, axes: readonly string[], separator = '\n'): string {
  const lastNames = axes.map((path) => path.slice(path.lastIndexOf('.') + 1));
  const isApart = new Set(lastNames).size === axes.length;
  return axes.map((path, at) => `${isApart ? lastNames[at] : path}=${values[path] ?? '-'}`).join(separator);
}

/** The same in words, for a page: axes by title, with the unit next to the value. */
export function placeWords({ axes: values }: SweepRow, axes: readonly string[]): string {
  return axes.map((path) => `${axisTitleOf(path)}: ${values[path] ?? '–'}`).join(', ');
}

/** Text added to a knee at the last point of a line. */
export const kneeAtEndText = ', where the range ends, or beyond';

function kneeText(figure: string, { axis, lineCount, at, end }: KneeSummary): string {
  if (at.length === 0) return `${figure} has no knee over ${axis}.`;
  const [low, high] = [at[0]!, at.at(-1)!];
  const middle = at[Math.floor((at.length - 1) / 2)]!;
  const where = low === high ? `at ${low}` : `around ${middle} (${low} to ${high})`;
  const lines = lineCount === 1 ? '' : `, in ${at.length} of ${lineCount} lines`;
  const beyond = high === end ? kneeAtEndText : '';
  return `${figure} has its knee over ${axis} ${where}${lines}${beyond}.`;
}

/** Latencies of tests of both kinds cover different ways. */
export function roundTripText(rows: readonly SweepRow[]): string[] {
  const tests = new Set(rows.map(({ axes }) => axes['test']));
  const hasOne = (...names: readonly string[]): boolean => names.some((name) => tests.has(name));
  return hasOne('write-lat', 'send-lat') && hasOne('read-lat', 'atomic-lat')
    ? [
        'Latencies of write-lat and send-lat are half a round trip, those of read-lat and atomic-lat a whole one.',
      ]
    : [];
}

/** Unreliable services lose messages that find no receive. */
function lossText(rows: readonly SweepRow[]): string[] {
  const lost = rows.filter(
    ({ figures }) => Number(figures['received.count'] ?? 0) < Number(figures['received.expected'] ?? 0),
  );
  return lost.length === 0
    ? []
    : [
        `Messages were lost at ${countText(lost.length)} of these points (received.count of received.expected): their rates are the sender's.`,
      ];
}

function countsText(rows: readonly SweepRow[], pointCount: number): string {
  const countOf = (status: SweepRow['status']): number => rows.filter((row) => row.status === status).length;
  const parts = [`${countText(countOf('done'))} of ${countText(pointCount)} points are done`];
  const [failed, refused] = [countOf('failed'), countOf('refused')];
  if (failed > 0) parts.push(`${countText(failed)} failed`);
  if (refused > 0) parts.push(`${countText(refused)} cannot be`);
  return `${parts.join(', ')}.`;
}

/** The first failed points and the first impossible ones; the file has the others. */
function errorLines(rows: readonly SweepRow[], axes: readonly string[]): string[] {
  return (['failed', 'refused'] as const).flatMap((status) => {
    const row = rows.find((each) => each.status === status);
    if (row === undefined) return [];
    const what = status === 'failed' ? 'The first that failed' : 'The first that cannot be';
    return [`${what} is ${placeText(row, axes, ', ')}: ${row.error}`];
  });
}

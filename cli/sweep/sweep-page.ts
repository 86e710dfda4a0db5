/** The page of `hca sweep`: changes over each axis, best and worst with knees, and the points themselves. */

import {
  axisValuesOf,
  type FigureSummary,
  figureText,
  type Results,
  type SweepRow,
  summaryOf,
} from '../../experiments/sweep/index.ts';
import {
  foldedSection,
  html,
  type PageHead,
  type PageTable,
  tableSection,
} from '../../explain/page/index.ts';
import { countText } from '../../explain/text/format.ts';
import { axisTitleOf, figureTitleOf } from '../../explain/text/titles.ts';
import { type Chart, chartPage } from '../chart/index.ts';
import { plotOf } from '../plot/plot-choice.ts';
import { linesMax, plotPage } from '../plot/plot-page.ts';
import { pointReports } from '../plot/point-reports.ts';
import { bestAndWorstTable, summarySentences } from './sweep-summary.ts';

/** Greatest number of points in a table; the results file has all of them. */
const pointsShown = 1000;

export function sweepPage(head: PageHead, results: Results): string {
  const { header, rows } = results;
  const done = rows.filter(({ status }) => status === 'done');
  const varying = summaryOf(done, header.axes).filter(({ best, worst }) => best.value !== worst.value);
  const extremes = bestAndWorstTable(rows, header.axes);
  const said = summarySentences(rows, header.axes, header.pointCount);
  return chartPage(head, {
    charts:
      varying.length === 0 ? [] : header.axes.flatMap((axis) => chartsOver(axis, results, done, varying)),
    tables: [pointTable(results)],
    sections: [
      html`<h2>In short</h2>`,
      ...(extremes === undefined ? [] : [tableSection(extremes)]),
      ...said.map((sentence) => html`<p>${sentence}</p>`),
      foldedSection('The sweep, as hca sweep reads it', JSON.stringify(header.spec, undefined, 1)),
    ],
    reports: pointReports(results),
  });
}

/**
 * Charts over each axis with several values, of each figure that changes; omitted if a chart would have more lines than
 * people can distinguish.
 */
function chartsOver(
  axis: string,
  results: Results,
  done: readonly SweepRow[],
  varying: readonly FigureSummary[],
): readonly Chart[] {
  const values = axisValuesOf(done, axis).length;
  const lines = results.header.axes
    .filter((other) => other !== axis)
    .reduce((product, other) => product * axisValuesOf(done, other).length, 1);
  if (values < 2 || lines > linesMax) return [];
  const y = varying.map(({ figure }) => figure);
  return plotPage(plotOf(results, { x: axis, y, where: [] })).charts;
}

function pointTable({ header: { axes, pointCount }, rows }: Results): PageTable {
  const figures = summaryOf(rows, axes).map(({ figure }) => figure);
  const shown = rows.slice(0, pointsShown);
  return {
    title: `${countText(shown.length)} of ${countText(pointCount)} points`,
    head: ['point', ...axes.map(axisTitleOf), ...figures.map(figureTitleOf), 'status'],
    reports: shown.map(({ index }) => index),
    rows: shown.map((row) => [
      row.index,
      ...axes.map((path) => String(row.axes[path] ?? '-')),
      ...figures.map((figure) => {
        const value = row.figures[figure];
        return typeof value === 'number' ? figureText(figure, value) : '–';
      }),
      row.status === 'done' ? 'done' : `${row.status}: ${row.error}`,
    ]),
  };
}

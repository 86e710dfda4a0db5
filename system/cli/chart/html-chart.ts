/**
 * Charts as one HTML file that needs nothing else: uPlot with its style sheet is put into the page, the figures stand below
 * as tables. Moving the mouse shows values below the chart, dragging zooms, a double click goes back, a click on a name hides its
 * line. Charts are as wide as the page; light or dark is the reader's choice. `page-script.ts` is the page's own script.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  type Html,
  html,
  type PageHead,
  type PageTable,
  pageOf,
  table,
  tableSection,
} from '../../page/index.ts';
import { type Chart, xTextOf, xValuesOf } from './chart.ts';
import { type HeatMap, heatMapHtml } from './heat-map.ts';
import { pageScript } from './page-script.ts';

/** Of lines one after the other: seen on white and on black. */
const colours = ['#d0463a', '#3b86c4', '#2e9e5b', '#a25fc0', '#d98e12', '#7a8b99'] as const;

/**
 * What tells lines of one colour apart, for each time round: strokes and gaps of a line, the size of a cloud's points and whether they
 * are filled, and the border that stands for either in the legend.
 */
const manners = [
  { marker: 'solid', dash: undefined, size: 7, isFilled: true },
  { marker: 'dashed', dash: [14, 5], size: 8, isFilled: false },
  { marker: 'dotted', dash: [2, 5], size: 4, isFilled: true },
  { marker: 'double', dash: [14, 4, 2, 4], size: 13, isFilled: false },
] as const;

export interface ChartPage {
  readonly charts: readonly Chart[];
  /** Below the charts. */
  readonly heatMaps?: readonly HeatMap[];
  /** Below the charts, beside their own. */
  readonly tables?: readonly PageTable[];
  /** Below everything. */
  readonly sections?: readonly Html[];
}

/** A page of charts. The library is in it only when there is one. */
export function chartPage(
  head: PageHead,
  { charts, heatMaps = [], tables = [], sections = [] }: ChartPage,
): string {
  const parts = [
    ...charts.map(chartHtml),
    ...heatMaps.map(heatMapHtml),
    ...tables.map(tableSection),
    ...sections,
  ];
  if (charts.length === 0) return pageOf(head, parts);
  return pageOf(head, parts, {
    styles: [packageFile('uPlot.min.css')],
    scripts: [
      packageFile('uPlot.iife.min.js'),
      `const charts = ${embedded(charts.map(dataOf))};\n${pageScript}`,
    ],
  });
}

/** For screen readers a chart is an image: its figures are in the table below. */
const chartHtml = (chart: Chart, at: number): Html =>
  html`<div id="chart${at}" class="chart" role="img" aria-label="${chart.title}; a table below has its figures"></div>
${hint}
${chart.isScattered === true ? html`` : figuresTable(chart)}`;

const hint = html`<p class="hint">Point at the chart for values, drag to zoom, double-click to go back, click on a name to hide its line.</p>`;

/** What the script in the page is given: columns by x, null where a line has no value. */
function dataOf(chart: Chart): object {
  const { title, xLabel, yLabel, marks = [], xScale, yScale, xWords } = chart;
  const data = chart.isScattered === true ? cloudColumns(chart) : lineColumns(chart);
  return { title, xLabel, yLabel, marks, xScale, yScale, xWords, lines: seriesOf(chart), data };
}

function lineColumns(chart: Chart): (number | null)[][] {
  const xs = xValuesOf(chart);
  const columns = chart.lines.map(({ points }) => {
    const byX = new Map(points.map(([x, y]) => [x, y]));
    return xs.map((x) => byX.get(x) ?? null);
  });
  return [xs, ...columns];
}

/** Points may have the same x: each has a place of its own. */
function cloudColumns({ lines }: Chart): (number | null)[][] {
  const points = lines
    .flatMap((line, at) => line.points.map(([x, y]) => ({ x, y, at })))
    .toSorted((left, right) => left.x - right.x);
  return [
    points.map(({ x }) => x),
    ...lines.map((_line, at) => points.map((point) => (point.at === at ? point.y : null))),
  ];
}

/** No line is wider than by so many halves of a pixel. */
const widerMax = 8;

/** Lines that are drawn later are narrower: where two coincide, both are seen. */
function seriesOf({ lines, isScattered = false }: Chart): object[] {
  const own = lines.filter(({ besides }) => besides === undefined);
  return lines.map((line) => {
    const { name: label, besides } = line;
    if (besides !== undefined)
      return { label, marker: 'dashed', width: 1.25, dash: [4, 5], spanGaps: true, points: { show: false } };
    const at = own.indexOf(line);
    const stroke = colours[at % colours.length]!;
    const { marker, dash, size, isFilled } = manners[Math.floor(at / colours.length) % manners.length]!;
    const points = { show: true, size, fill: isFilled ? stroke : 'transparent' };
    if (isScattered) return { label, marker, stroke, isScattered, points };
    const width = 2 + Math.min(own.length - 1 - at, widerMax) / 2;
    return { label, marker, stroke, width, spanGaps: true, ...(dash === undefined ? {} : { dash }) };
  });
}

/** A line may go over powers of ten: so many behind the point would leave nothing of its low end. */
const digitsPreset = 5;

function figuresTable(chart: Chart): Html {
  const { title, xLabel, yLabel, lines, digits = digitsPreset } = chart;
  const head = [xLabel, ...lines.map(({ name }) => (yLabel === '' ? name : `${name} (${yLabel})`))];
  const textOf = (y: number): string => String(Number(y.toPrecision(digits)));
  const rows = xValuesOf(chart).map((x) => [
    xTextOf(chart, x),
    ...lines.map(({ points }) => {
      const found = points.find(([at]) => at === x);
      return found === undefined ? '' : textOf(found[1]);
    }),
  ]);
  return table(title, head, rows);
}

/** JSON that cannot end the script it stands in. */
const embedded = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

function packageFile(name: string): string {
  return readFileSync(fileURLToPath(import.meta.resolve(`uplot/dist/${name}`)), 'utf8');
}

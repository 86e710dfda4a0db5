/**
 * Charts as one self-contained HTML file: uPlot and its style sheet are embedded in the page, and tables below show the
 * figures. Moving the mouse shows values below the chart, dragging zooms, a double click zooms out, a click on a name
 * hides its line, and a click on a point opens its report, if the page has it. Charts are as wide as the page and
 * follow the reader's light or dark scheme. `page-script.ts` is the page's own script.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  type Html,
  html,
  type PageHead,
  type PageReports,
  type PageTable,
  pageOf,
  reportLink,
  reportsScript,
  reportsSection,
  table,
  tableSection,
} from '../../explain/page/index.ts';
import { type Chart, type ChartLine, type ChartMark, xTextOf, xValuesOf } from './chart.ts';
import { type HeatMap, heatMapHtml, heatMapStyle } from './heat-map.ts';
import { pageScript } from './page-script.ts';

/** Colours of successive lines; readable on white and on black. */
const colours = ['#d0463a', '#3b86c4', '#2e9e5b', '#a25fc0', '#d98e12', '#7a8b99'] as const;

/**
 * Distinguishes lines of one colour, per repetition of the colours: dash pattern of a line, size and fill of a cloud's
 * points, and the border that represents either in the legend.
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
  /** Tables below the charts, next to their own. */
  readonly tables?: readonly PageTable[];
  /** Sections below the tables. */
  readonly sections?: readonly Html[];
  /** Reports at the end of the page; points, cells and rows that name a report open it. */
  readonly reports?: PageReports;
}

/** A page of charts. It embeds the library only if it has a chart. */
export function chartPage(head: PageHead, given: ChartPage): string {
  const { charts, heatMaps = [], tables = [], sections = [], reports } = withoutMissing(given);
  const hasReports = reports !== undefined && reports.reports.length > 0;
  const parts = [
    ...charts.map(chartHtml),
    ...heatMaps.map(heatMapHtml),
    ...tables.map(tableSection),
    ...sections,
    ...(hasReports ? [reportsSection(reports)] : []),
  ];
  const script = `const charts = ${embedded(charts.map(dataOf))};\n${pageScript}`;
  return pageOf(head, parts, {
    styles: [...(charts.length === 0 ? [] : [packageFile('uPlot.min.css')]), ...heatMaps.map(heatMapStyle)],
    scripts: [
      ...(hasReports ? [reportsScript] : []),
      ...(charts.length === 0 ? [] : [packageFile('uPlot.iife.min.js'), script]),
    ],
  });
}

/** Drops the numbers of reports that the page lacks, so that nothing looks clickable without effect. */
function withoutMissing(page: ChartPage): Omit<ChartPage, 'charts'> & { readonly charts: readonly Drawn[] } {
  const numbers = new Set(page.reports?.reports.map(({ number }) => number));
  const known = (number: number | undefined): number | undefined =>
    number !== undefined && numbers.has(number) ? number : undefined;
  const { charts, heatMaps = [], tables = [] } = page;
  return {
    ...page,
    charts: charts.map((chart) => ({
      ...chart,
      lines: chart.lines.map((line) => ({
        ...line,
        reports: line.points.map((_, at) => known(line.reports?.[at])),
      })),
      marks: (chart.marks ?? []).map((mark) => ({
        ...mark,
        reports: (mark.reports ?? []).filter((number) => numbers.has(number)),
      })),
    })),
    heatMaps: heatMaps.map((map) => ({ ...map, reports: map.reports?.map((row) => row.map(known)) ?? [] })),
    tables: tables.map((each) => ({ ...each, reports: each.reports?.map(known) ?? [] })),
  };
}

/** A chart whose points and marks name only reports of the page. */
interface Drawn extends Omit<Chart, 'lines' | 'marks'> {
  readonly lines: readonly DrawnLine[];
  readonly marks: readonly ChartMark[];
}

interface DrawnLine extends Omit<ChartLine, 'reports'> {
  readonly reports: readonly (number | undefined)[];
}

/** Screen readers cannot read the drawing; the table below has the figures. */
const chartHtml = (chart: Drawn, at: number): Html =>
  html`<div id="chart${at}" class="chart" role="figure" aria-label="${chart.title}; a table below has its figures"></div>
<p class="hint">${opens(chart) ? 'Click on a point, or on its figure below, for its report. ' : ''}Point at the chart for values, drag to zoom, double-click to go back, click on a name to hide its line.</p>
${chart.isScattered === true ? html`` : figuresTable(chart)}`;

const opens = ({ lines }: Drawn): boolean =>
  lines.some(({ reports }) => reports.some((number) => number !== undefined));

/** Input of the page's script: columns by x, null if a line has no value there. */
function dataOf(chart: Drawn): object {
  const { title, xLabel, yLabel, yTitle = yLabel, marks, xScale, yScale, xWords, isScattered } = chart;
  const { xs, columns } = chart.isScattered === true ? cloudColumns(chart) : lineColumns(chart);
  const data = [xs, ...columns.map((column) => column.map((point) => point?.y ?? null))];
  const reports = opens(chart) ? columns.map((column) => column.map((point) => point?.report ?? null)) : [];
  const shown = { title, xLabel, yLabel, yTitle, marks, xScale, yScale, xWords, isScattered };
  return { ...shown, lines: seriesOf(chart), data, reports };
}

/** The values of each line at each x. */
interface Columns {
  readonly xs: readonly number[];
  readonly columns: readonly (readonly (PlacedPoint | undefined)[])[];
}

interface PlacedPoint {
  readonly x: number;
  readonly y: number;
  readonly report: number | undefined;
}

const pointsOf = ({ points, reports }: DrawnLine): PlacedPoint[] =>
  points.map(([x, y], at) => ({ x, y, report: reports[at] }));

function lineColumns(chart: Drawn): Columns {
  const xs = xValuesOf(chart);
  const columns = chart.lines.map((line) => {
    const byX = new Map(pointsOf(line).map((point) => [point.x, point]));
    return xs.map((x) => byX.get(x));
  });
  return { xs, columns };
}

/** Points may share an x: each has an index of its own. */
function cloudColumns({ lines }: Drawn): Columns {
  const points = lines
    .flatMap((line, at) => pointsOf(line).map((point) => ({ at, point })))
    .toSorted((left, right) => left.point.x - right.point.x);
  return {
    xs: points.map(({ point }) => point.x),
    columns: lines.map((_line, at) => points.map((each) => (each.at === at ? each.point : undefined))),
  };
}

/** Greatest width of a line, in half pixels. */
const widerMax = 8;

/** Lines drawn later are narrower, so that both remain visible where two coincide. */
function seriesOf({ lines, isScattered = false }: Drawn): object[] {
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

/** A line may span several powers of ten: a fixed number of decimals would hide its low end. */
const digitsPreset = 5;

function figuresTable(chart: Drawn): Html {
  const { title, xLabel, yLabel, lines, digits = digitsPreset } = chart;
  const head = [xLabel, ...lines.map(({ name }) => (yLabel === '' ? name : `${name} (${yLabel})`))];
  const textOf = (y: number): string => String(Number(y.toPrecision(digits)));
  const rows = xValuesOf(chart).map((x) => [
    xTextOf(chart, x),
    ...lines.map(({ points, reports }) => {
      const at = points.findIndex(([placed]) => placed === x);
      if (at < 0) return '';
      const [text, report] = [textOf(points[at]![1]), reports[at]];
      return report === undefined ? text : reportLink(report, html`${text}`);
    }),
  ]);
  return table(title, head, rows);
}

/** JSON that cannot close the script element around it. */
const embedded = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

function packageFile(name: string): string {
  return readFileSync(fileURLToPath(import.meta.resolve(`uplot/dist/${name}`)), 'utf8');
}

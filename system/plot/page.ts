/**
 * Charts as one page of HTML that needs nothing else: the library (uPlot) and the figures are in it. Logarithmic axes,
 * values under the cursor, a legend that switches lines on and off.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Chart, drawable } from './chart.ts';

/** A table below the charts. */
export interface PageTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface ChartPage {
  readonly title: string;
  /** Paragraphs before the charts. */
  readonly intro: readonly string[];
  readonly charts: readonly Chart[];
  readonly tables: readonly PageTable[];
}

const colours = ['#7f3c8d', '#11a579', '#3969ac', '#e68310', '#d42c2c', '#80ba5a', '#008695', '#5b5b5b'];

export function chartPage({ title, intro, charts, tables }: ChartPage): string {
  const figures = charts.map((chart, index) => {
    const json = JSON.stringify(figureOf(chart)).replaceAll('<', '\\u003c');
    return `<h2>${escaped(chart.title)}</h2>\n<div id="chart${index}" class="chart"></div>\n<script>draw("chart${index}", ${json});</script>`;
  });
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escaped(title)}</title>`,
    `<style>${library('uPlot.min.css')}\n${style}</style>`,
    `<script>${library('uPlot.iife.min.js')}</script>`,
    `<script>${script}</script>`,
    `</head><body><h1>${escaped(title)}</h1>`,
    ...intro.map((text) => `<p>${escaped(text)}</p>`),
    ...figures,
    ...tables.map(tableHtml),
    '</body></html>',
    '',
  ].join('\n');
}

/** What the page's script is given: one x axis for all lines, null where a line has no point. */
function figureOf(chart: Chart): object {
  const lines = chart.lines.map((line) => ({ name: line.name, points: new Map(drawable(chart, line)) }));
  const xs = [...new Set(lines.flatMap(({ points }) => [...points.keys()]))].toSorted((a, b) => a - b);
  return {
    xTitle: chart.xTitle,
    yTitle: chart.yTitle,
    isLogX: chart.isLogX,
    isLogY: chart.isLogY,
    names: lines.map(({ name }) => name),
    colours,
    xTexts: Object.fromEntries(xs.map((x) => [x, chart.xText(x)])),
    data: [xs, ...lines.map(({ points }) => xs.map((x) => points.get(x) ?? null))],
  };
}

function tableHtml({ title, head, rows }: PageTable): string {
  const cells = (tag: string, texts: readonly string[]): string =>
    `<tr>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>`;
  return `<h2>${escaped(title)}</h2>\n<div class="scroll"><table>${cells('th', head)}${rows
    .map((row) => cells('td', row))
    .join('\n')}</table></div>`;
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** A file of the library, as it is put into the page. */
function library(file: string): string {
  const path = createRequire(import.meta.url).resolve(`uplot/dist/${file}`);
  return readFileSync(path, 'utf8').replaceAll('</script', '<\\/script');
}

const style = `
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #222; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; white-space: nowrap; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }`;

const script = `
function draw(id, figure) {
  const place = document.getElementById(id);
  const short = (value) => value == null ? '–' : Number(value.toPrecision(3)).toString();
  const text = (x) => x == null ? '–' : (figure.xTexts[x] ?? '');
  new uPlot({
    width: Math.min(place.clientWidth || 900, 980), height: 380,
    scales: { x: { time: false, distr: figure.isLogX ? 3 : 1, log: 2 }, y: { distr: figure.isLogY ? 3 : 1 } },
    axes: [
      { label: figure.xTitle, splits: () => figure.data[0], filter: (u, splits) => splits, values: (u, splits) => splits.map(text) },
      { label: figure.yTitle, size: 70, values: (u, splits) => splits.map((value) => value == null ? '' : short(value)) },
    ],
    series: [
      { label: figure.xTitle, value: (u, x) => text(x) },
      ...figure.names.map((label, index) => ({
        label, stroke: figure.colours[index % figure.colours.length], width: 2, spanGaps: true,
        points: { show: true, size: 6 }, value: (u, y) => short(y),
      })),
    ],
  }, figure.data, place);
}`;

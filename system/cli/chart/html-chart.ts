/**
 * Charts as one HTML file that needs nothing else: uPlot with its style sheet is put into the page, the figures stand below
 * as tables. Both axes are logarithmic; moving the mouse shows values below the chart, dragging zooms, a double click goes back,
 * a click on a name hides its line. `page-script.ts` is the page's own script.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Chart, sizeText, xValuesOf } from './chart.ts';
import { pageScript } from './page-script.ts';

const colours = ['#c0392b', '#2471a3', '#1e8449', '#8e44ad', '#d68910', '#5d6d7e'] as const;
/** Of lines that are held against others, drawn over them. */
const besidesColour = '#1b1b1b';

export interface HtmlPage {
  readonly title: string;
  /** Paragraphs above the charts. */
  readonly text: readonly string[];
  readonly charts: readonly Chart[];
  /** Below the charts, beside their own. */
  readonly tables?: readonly HtmlTable[];
}

interface HtmlTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function htmlPage({ title, text, charts, tables = [] }: HtmlPage): string {
  const library = packageFile('uPlot.iife.min.js');
  const style = packageFile('uPlot.min.css');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escaped(title)}</title>
<style>
${style}
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
.scroll { overflow-x: auto; margin: 1rem 0 2.5rem; }
table { border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums; }
td, th { padding: 0.15rem 0.8rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
td:first-child, th:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
.u-legend { font-size: 14px; }
.u-legend .u-value { display: inline-block; min-width: 4.5em; text-align: left; }
.hint { color: #555; font-size: 13px; margin: 0 0 1rem; }
</style>
</head>
<body>
<h1>${escaped(title)}</h1>
${text.map((paragraph) => `<p>${escaped(paragraph)}</p>`).join('\n')}
${charts.map((chart, at) => `<div id="chart${at}"></div>\n${hint}\n${table(chart)}`).join('\n')}
${tables.map((extra) => `<h2>${escaped(extra.title)}</h2>\n${tableOf(extra.head, extra.rows)}`).join('\n')}
<script>${library.replaceAll('</script', '<\\/script')}</script>
<script>
const charts = ${embedded(charts.map(dataOf))};
${pageScript}</script>
</body>
</html>
`;
}

const hint =
  '<p class="hint">Point at the chart for values, drag to zoom, double-click to go back, click on a name to hide its line.</p>';

/** What the script in the page is given: columns by x, null where a line has no value. */
function dataOf(chart: Chart): object {
  const { title, xLabel, yLabel, lines, marks = [] } = chart;
  const xs = xValuesOf(chart);
  const columns = lines.map(({ points }) => {
    const byX = new Map(points.map(([x, y]) => [x, y]));
    return xs.map((x) => byX.get(x) ?? null);
  });
  // Lines that are drawn later are narrower: where two coincide, both are seen.
  const own = lines.filter(({ besides }) => besides === undefined);
  const series = lines.map((line) => {
    const { name: label, besides } = line;
    if (besides !== undefined)
      return { label, stroke: besidesColour, width: 1.25, dash: [4, 5], points: { show: false } };
    const at = own.indexOf(line);
    return {
      label,
      stroke: colours[at % colours.length],
      width: 2 + (own.length - 1 - at) / 2,
      spanGaps: true,
    };
  });
  return { title, xLabel, yLabel, marks, lines: series, data: [xs, ...columns] };
}

function table(chart: Chart): string {
  const { xLabel, yLabel, lines } = chart;
  const head = [`${xLabel}`, ...lines.map(({ name }) => `${name} (${yLabel})`)];
  const rows = xValuesOf(chart).map((x) => [
    sizeText(x),
    ...lines.map(({ points }) => points.find(([at]) => at === x)?.[1].toFixed(2) ?? ''),
  ]);
  return tableOf(head, rows);
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[], tag: string): string =>
    `<tr>${row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  return `<div class="scroll"><table>${cells(head, 'th')}${rows.map((row) => cells(row, 'td')).join('')}</table></div>`;
}

/** JSON that cannot end the script it stands in. */
const embedded = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => entities[sign]!);

function packageFile(name: string): string {
  return readFileSync(fileURLToPath(import.meta.resolve(`uplot/dist/${name}`)), 'utf8');
}

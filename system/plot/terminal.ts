/** A chart of characters: every line has a symbol of its own, as colours may not be there. */
import { plot } from 'simple-ascii-chart';
import { type Chart, drawable, shortText } from './chart.ts';

const size = { width: 76, height: 18 };
const symbols = ['o', '*', '#', '+', 'x', '@', '%', '&'];
const symbolOf = (index: number): string => symbols[index % symbols.length]!;

/** The chart, or nothing when it has no two points. */
export function terminalChart(chart: Chart): string {
  const { isLogX, isLogY, xText, title, xTitle, yTitle } = chart;
  const lines = chart.lines
    .map((line) => ({ name: line.name, points: drawable(chart, line) }))
    .filter(({ points }) => points.length > 0);
  if (lines.flatMap(({ points }) => points).length < 2) return '';
  const series = lines.map(({ points }) =>
    points.map(([x, y]): [number, number] => [isLogX ? Math.log2(x) : x, isLogY ? Math.log10(y) : y]),
  );
  const ticks = [...new Set(series.flatMap((points) => points.map(([x]) => x)))];
  return plot(series, {
    ...size,
    title: `${title} (${yTitle})`,
    xLabel: xTitle,
    customXAxisTicks: ticks,
    legend: { position: 'bottom', series: lines.map(({ name }, index) => `${symbolOf(index)} ${name}`) },
    formatter: (value, { axis }) =>
      axis === 'x' ? xText(isLogX ? Math.round(2 ** value) : value) : shortText(isLogY ? 10 ** value : value),
    lineFormatter: ({ plotX, plotY, x, y, index }) => {
      const line = series.findIndex((points) => points[index]?.[0] === x && points[index]?.[1] === y);
      return [{ x: plotX, y: plotY, symbol: symbolOf(Math.max(0, line)) }];
    },
  }).replaceAll('█ ', '');
}

/**
 * A chart in the terminal, by simple-ascii-chart. The library has no logarithmic axes, so it receives logarithms, and
 * its ticks are printed as powers. Each line has its own character, so lines are distinct without colours.
 */
import { plot } from 'simple-ascii-chart';
import { type Chart, type ChartLine, sizeText } from './chart.ts';

export interface TerminalChartOptions {
  /** Columns and rows between the axes. */
  readonly width: number;
  readonly height: number;
}

const signs = ['●', '○', '+', 'x', '*', '#', '▲', '△', '■', '□', '◆', '◇', '%', '@', '&'] as const;

type Point = [x: number, y: number];

/** The chart as lines of text. */
export function terminalChart(chart: Chart, { width, height }: TerminalChartOptions): string {
  const shown = chart.lines.filter(({ besides }) => besides === undefined);
  const lines = shown.map((line) => filledOut(line, width));
  const signOf = signByPoint(lines);
  const xs = lines.flatMap((points) => points.map(([x]) => x));
  const text = plot(lines, {
    width,
    height,
    xLabel: chart.xLabel,
    customXAxisTicks: ticksOf(Math.min(...xs), Math.max(...xs)),
    lineFormatter: ({ x, y, plotX, plotY }) => ({
      x: plotX,
      y: plotY,
      symbol: signOf.get(`${x} ${y}`) ?? signs[0],
    }),
    formatter: (value, { axis }) =>
      axis === 'x' ? sizeText(Math.round(2 ** value)) : `${Number((10 ** value).toPrecision(3))}`,
  });
  const legend = shown.map(({ name }, at) => `${signs[at % signs.length]!} ${name}`).join('    ');
  return `${chart.title} (${chart.yLabel})\n${text.trimEnd()}\n${legend}\n`;
}

/** Character of each point. The library reports only the place and not the line that it draws. */
function signByPoint(lines: readonly Point[][]): ReadonlyMap<string, string> {
  const byPoint = new Map<string, string>();
  for (const [at, line] of lines.entries())
    for (const [x, y] of line) byPoint.set(`${x} ${y}`, signs[at % signs.length]!);
  return byPoint;
}

/** Returns the points as logarithms, interpolated to one point for each column. */
function filledOut({ points }: ChartLine, columns: number): Point[] {
  const given = points.map(([x, y]): Point => [Math.log2(x), Math.log10(y)]);
  const first = given[0]?.[0] ?? 0;
  const step = ((given.at(-1)?.[0] ?? first) - first) / Math.max(1, columns);
  return given.flatMap((point, at) => {
    const next = given[at + 1];
    if (next === undefined || step === 0) return [point];
    const count = Math.max(1, Math.round((next[0] - point[0]) / step));
    return Array.from({ length: count }, (_, part): Point => {
      const share = part / count;
      return [point[0] + share * (next[0] - point[0]), point[1] + share * (next[1] - point[1])];
    });
  });
}

/** Every other power of two, so that the ticks do not touch. */
function ticksOf(low: number, high: number): number[] {
  const ticks: number[] = [];
  for (let power = Math.ceil(low); power <= high; power += 2) ticks.push(power);
  return ticks;
}

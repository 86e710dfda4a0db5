/** The charts of `hca plot`, and their captions. */
import { ConfigurationError } from '../../base/index.ts';
import {
  type AxisValue,
  axisValuesOf,
  figureKindOf,
  figureText,
  gridsOver,
  isMoreBetter,
  kneeOf,
  paretoFront,
  type Results,
  type SweepRow,
} from '../../experiments/sweep/index.ts';
import { countText } from '../../explain/text/format.ts';
import { axisTitleOf, figureTitleOf } from '../../explain/text/titles.ts';
import { titled } from '../../explain/text/words.ts';
import type { Chart, ChartLine, HeatMap, Scale } from '../chart/index.ts';
import { kneeAtEndText, placeText, placeWords } from '../sweep/sweep-summary.ts';
import type { Plot } from './plot-choice.ts';

/** Greatest number of lines that people can distinguish, and of maps that people compare. */
export const linesMax = 24;
const mapsMax = 24;
/** Ranges wider than this have logarithmic axes. */
const logarithmicRatio = 8;
const digits = 5;
/** Greatest number of lines that a sentence names. */
const namesMax = 6;

/** A figure with its unit, as an axis title. */
function labelOf(figure: string): string {
  const { unit } = figureKindOf(figure);
  const title = titled(figureTitleOf(figure));
  return unit === '' ? title : `${title} (${unit})`;
}

export interface PlotPage {
  readonly title: string;
  readonly text: readonly string[];
  readonly charts: readonly Chart[];
  readonly heatMaps: readonly HeatMap[];
  readonly tables: readonly {
    title: string;
    head: readonly string[];
    rows: readonly (readonly string[])[];
    /** Point number of each row; a click opens its report. */
    reports: readonly number[];
  }[];
}

/** A sentence about points of the sweep that have not run: a line without them may have another shape. */
export function leftOutText({ header: { pointCount }, rows }: Results): string[] {
  const countOf = (status: SweepRow['status']): number => rows.filter((row) => row.status === status).length;
  const done = countOf('done');
  const parts = [
    [countOf('failed'), 'failed'],
    [countOf('refused'), 'cannot be'],
    [pointCount - rows.length, 'have no row yet'],
  ] as const;
  const said = parts.flatMap(([count, what]) => (count === 0 ? [] : [`${countText(count)} ${what}`]));
  return said.length === 0
    ? []
    : [
        `Of ${countText(pointCount)} points ${countText(done)} are done. What is not drawn: ${said.join(', ')}.`,
      ];
}

type LinesPlot = Extract<Plot, { kind: 'lines' }>;
type MapPlot = Extract<Plot, { kind: 'heat map' }>;
type FrontPlot = Extract<Plot, { kind: 'front' }>;

/** @throws ConfigurationError if there are more than people can compare */
export function plotPage(plot: Plot): PlotPage {
  switch (plot.kind) {
    case 'lines':
      return linesPage(plot);
    case 'heat map':
      return mapPage(plot);
    case 'front':
      return frontPage(plot);
  }
}

interface Line extends ChartLine {
  readonly knee: number | undefined;
}

function linesPage(plot: LinesPlot): PlotPage {
  const { x, figures, rows } = plot;
  const words = axisValuesOf(rows, x);
  const isNumeric = words.every((value) => typeof value === 'number');
  const parts = figures.map((figure) => {
    const lines = linesOf(plot, figure, isNumeric ? undefined : words);
    const ys = lines.flatMap(({ points }) => points.map(([, y]) => y));
    const chart: Chart = {
      title: `${titled(figureTitleOf(figure))} over ${axisTitleOf(x)}`,
      xLabel: titled(axisTitleOf(x)),
      yLabel: figureKindOf(figure).unit,
      yTitle: labelOf(figure),
      digits,
      lines,
      marks: marksOf(lines),
      xScale: isNumeric ? scaleOf(words.map(Number)) : 'linear',
      yScale: scaleOf(ys),
      ...(isNumeric ? {} : { xWords: words.map(String) }),
    };
    const said = kneeTexts(figure, x, lines);
    const none =
      isNumeric && said.length === 0 && words.length >= 4
        ? [`${titled(figureTitleOf(figure))} has no knee over ${axisTitleOf(x)}.`]
        : [];
    return { chart, text: [...said, ...none] };
  });
  return {
    title: `${figures.join(', ')} over ${x}`,
    text: parts.flatMap(({ text }) => text),
    charts: parts.map(({ chart }) => chart),
    heatMaps: [],
    tables: [],
  };
}

/** A sentence for each knee. */
function kneeTexts(figure: string, x: string, lines: readonly Line[]): string[] {
  return kneesOf(lines).map(([knee, group]) => {
    const names = group.slice(0, namesMax).map(({ name }) => name);
    const more = group.length - names.length;
    const which = `${names.join('; ')}${more === 0 ? '' : `; and ${more} more`}`;
    const beyond = group.some(({ points }) => points.at(-1)![0] === knee) ? kneeAtEndText : '';
    const of = lines.length === 1 ? '' : `, of ${which}`;
    return `${titled(figureTitleOf(figure))} has its knee at ${axisTitleOf(x)} ${knee}${beyond}${of}.`;
  });
}

/** Lines grouped by their knees, in ascending order. */
const kneesOf = (lines: readonly Line[]): (readonly [number, readonly Line[]])[] => {
  const withKnee = lines.filter(({ knee }) => knee !== undefined);
  return [...Map.groupBy(withKnee, ({ knee }) => knee!)].toSorted(([left], [right]) => left - right);
};

/**
 * One line for each combination of the other axes; those with the same value of `by` are adjacent.
 * @param words places of words
 */
function linesOf(
  { axes, rows, x, by }: LinesPlot,
  figure: string,
  words: readonly (AxisValue | null)[] | undefined,
): Line[] {
  const others = axes.filter((path) => path !== x && axisValuesOf(rows, path).length > 1);
  const sorted = by === undefined ? others : [by, ...others.filter((path) => path !== by)];
  const groups = [...Map.groupBy(rows, (row) => placeWords(row, sorted)).entries()];
  if (groups.length > linesMax)
    throw new ConfigurationError(
      'lines',
      groups.length,
      `at most ${linesMax}: choose some with --where ${others[0]}=VALUE`,
    );
  const { divisor } = figureKindOf(figure);
  const first = (group: readonly SweepRow[]): number =>
    axisValuesOf(rows, sorted[0] ?? x).indexOf(group[0]!.axes[sorted[0] ?? x] ?? null);
  return groups
    .toSorted(([, left], [, right]) => first(left) - first(right))
    .flatMap(([place, group]) => {
      const { points, reports } = placed(
        group.filter((row) => typeof row.figures[figure] === 'number'),
        ({ axes: { [x]: value = null }, figures }) => [
          words === undefined ? Number(value) : words.indexOf(value),
          Number(figures[figure]) / divisor,
        ],
      );
      const knee = words === undefined ? kneeOf(points, figureKindOf(figure).isMoreBetter) : undefined;
      return points.length === 0
        ? []
        : [{ name: place === '' ? figureTitleOf(figure) : place, points, reports, knee }];
    });
}

/** Points of a line by rising x, each with its report number. */
function placed(
  rows: readonly SweepRow[],
  pointOf: (row: SweepRow) => readonly [x: number, y: number],
): Required<Pick<ChartLine, 'points' | 'reports'>> {
  const rising = rows
    .map((row) => ({ point: pointOf(row), index: row.index }))
    .toSorted((left, right) => left.point[0] - right.point[0]);
  return { points: rising.map(({ point }) => point), reports: rising.map(({ index }) => index) };
}

/** Knees shared by several lines are one mark. */
const marksOf = (lines: readonly Line[]): NonNullable<Chart['marks']> =>
  kneesOf(lines).map(([x, group]) => {
    const which = group.length === 1 ? group[0]!.name : `${group.length} lines`;
    const reports = group.flatMap(({ points, reports: numbers = [] }) =>
      numbers.filter((_number, at) => points[at]![0] === x),
    );
    return { x, text: group.length === lines.length ? `knee ${x}` : `knee ${x}: ${which}`, reports };
  });

/** A sweep can have more points than a call may have arguments. */
function scaleOf(values: readonly number[]): Scale {
  const low = values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const high = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  return low > 0 && high / low >= logarithmicRatio ? 'logarithmic' : 'linear';
}

function mapPage({ axes, rows, x, y, figure }: MapPlot): PlotPage {
  const { divisor } = figureKindOf(figure);
  const grids = gridsOver(rows, axes, [x, y], figure);
  if (grids.length > mapsMax)
    throw new ConfigurationError('heat maps', grids.length, `at most ${mapsMax}: choose some with --where`);
  const heatMaps = grids.map(({ fixed, xs, ys, cells, indexes }): HeatMap => {
    const place = Object.entries(fixed).map(([path, value]) => `${axisTitleOf(path)}: ${value ?? '–'}`);
    return {
      title:
        place.length === 0
          ? `${titled(figureTitleOf(figure))} over ${axisTitleOf(x)} and ${axisTitleOf(y)}`
          : titled(place.join(', ')),
      xLabel: titled(axisTitleOf(x)),
      xs: xs.map((value) => String(value ?? '-')),
      yLabel: titled(axisTitleOf(y)),
      ys: ys.map((value) => String(value ?? '-')),
      label: labelOf(figure),
      cells: cells.map((row) => row.map((value) => (value === undefined ? undefined : value / divisor))),
      reports: indexes,
    };
  });
  return {
    title: `${figure} over ${x} and ${y}`,
    text: extremesText(rows, axes, figure),
    charts: [],
    heatMaps,
    tables: [],
  };
}

function extremesText(rows: readonly SweepRow[], axes: readonly string[], figure: string): string[] {
  const rising = rows
    .filter((row) => typeof row.figures[figure] === 'number')
    .toSorted((left, right) => Number(left.figures[figure]) - Number(right.figures[figure]));
  const sayOf = (row: SweepRow): string =>
    `${figureText(figure, Number(row.figures[figure]))} at ${placeText(row, axes, ', ')}`;
  return [`From ${sayOf(rising[0]!)} to ${sayOf(rising.at(-1)!)}.`];
}

function frontPage({ axes, rows, x, y, by }: FrontPlot): PlotPage {
  const both = rows.filter((row) => typeof row.figures[x] === 'number' && typeof row.figures[y] === 'number');
  const front = paretoFront(both, x, y);
  const [byX, byY] = [figureKindOf(x), figureKindOf(y)];
  const pointOf = (row: SweepRow): readonly [number, number] => [
    Number(row.figures[x]) / byX.divisor,
    Number(row.figures[y]) / byY.divisor,
  ];
  const groups =
    by === undefined
      ? new Map([['all points', both]])
      : Map.groupBy(both, (row) => `${axisTitleOf(by)}: ${row.axes[by] ?? '–'}`);
  if (groups.size > linesMax)
    throw new ConfigurationError('--by', by, `an axis with at most ${linesMax} values`);
  const clouds = [...groups].map(
    ([name, group]): ChartLine => ({
      name,
      ...placed(group, pointOf),
    }),
  );
  const line: ChartLine = {
    name: 'Pareto front',
    besides: clouds[0]!.name,
    points: front.map(pointOf),
    reports: front.map(({ index }) => index),
  };
  const points = both.map(pointOf);
  const direction = (figure: string): string => `${isMoreBetter(figure) ? 'more' : 'less'} ${figure}`;
  return {
    title: `${y} against ${x}`,
    text: [
      `${front.length} of ${both.length} points are on the Pareto front: no other has ${direction(x)} and no worse ${y}, or ${direction(y)} and no worse ${x}.`,
    ],
    charts: [
      {
        title: `${titled(figureTitleOf(y))} against ${figureTitleOf(x)}`,
        xLabel: labelOf(x),
        yLabel: labelOf(y),
        isScattered: true,
        lines: [...clouds, line],
        xScale: scaleOf(points.map(([at]) => at)),
        yScale: scaleOf(points.map(([, at]) => at)),
      },
    ],
    heatMaps: [],
    tables: [
      {
        title: 'The Pareto front',
        ...pointsTable(front, axes, [x, y]),
      },
      {
        title: 'All points',
        ...pointsTable(both, axes, [x, y]),
      },
    ],
  };
}

const pointsTable = (
  rows: readonly SweepRow[],
  axes: readonly string[],
  figures: readonly string[],
): { head: readonly string[]; rows: readonly (readonly string[])[]; reports: readonly number[] } => ({
  head: [...axes.map(axisTitleOf), ...figures.map(figureTitleOf)],
  rows: rows.map((row) => [
    ...axes.map((path) => String(row.axes[path] ?? '-')),
    ...figures.map((figure) => figureText(figure, Number(row.figures[figure]))),
  ]),
  reports: rows.map(({ index }) => index),
});

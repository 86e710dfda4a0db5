/**
 * Chooses the chart that `hca plot` draws. Its kind follows from the types of x and y:
 *
 *     x an axis,   y figures               lines with their knees
 *     x an axis,   y an axis, z a figure   a heat map
 *     x a figure,  y a figure              all points, and their Pareto front
 */
import { ConfigurationError } from '../../base/index.ts';
import { axisValuesOf, figureNamesOf, type Results, type SweepRow } from '../../experiments/sweep/index.ts';
import { hintFor } from '../../machine/profile/index.ts';

export interface PlotOptions {
  readonly x: string;
  readonly y: readonly string[];
  readonly z?: string;
  readonly by?: string;
  readonly where: readonly string[];
}

export type Plot = { readonly axes: readonly string[]; readonly rows: readonly SweepRow[] } & (
  | {
      readonly kind: 'lines';
      readonly x: string;
      readonly figures: readonly string[];
      readonly by: string | undefined;
    }
  | { readonly kind: 'heat map'; readonly x: string; readonly y: string; readonly figure: string }
  | { readonly kind: 'front'; readonly x: string; readonly y: string; readonly by: string | undefined }
);

/** @throws ConfigurationError for names that the results lack, and for options that this kind of plot does not accept */
export function plotOf(results: Results, options: PlotOptions): Plot {
  const { axes } = results.header;
  const done = results.rows.filter(({ status }) => status === 'done');
  if (done.length === 0)
    throw new ConfigurationError('results', 'without a point that is done', 'figures to draw');
  const figures = figureNamesOf(done);
  const nameOf = (option: string, name: string, known: readonly string[]): string =>
    named(option, name, known);
  const rows = rowsWhere(done, axes, options.where);
  const x = nameOf('--x', options.x, [...axes, ...figures]);
  const ys = options.y.map((name) => nameOf('--y', name, [...axes, ...figures]));
  const by =
    options.by === undefined
      ? undefined
      : nameOf(
          '--by',
          options.by,
          axes.filter((path) => path !== x),
        );
  const isAxis = (name: string): boolean => axes.includes(name);
  const y = ys[0]!;
  if (ys.some(isAxis) || options.z !== undefined) {
    if (options.z === undefined)
      throw new ConfigurationError('--z', 'left out', `a figure to colour with, since --y ${y} is an axis`);
    if (!isAxis(x) || ys.length !== 1 || !isAxis(y) || x === y)
      throw new ConfigurationError('--z', options.z, 'left out unless --x and --y are two axes');
    if (by !== undefined) throw new ConfigurationError('--by', by, 'left out of a heat map: --where chooses');
    return {
      kind: 'heat map',
      axes,
      rows,
      x,
      y,
      figure: numeric('--z', nameOf('--z', options.z, figures), rows),
    };
  }
  for (const figure of ys) numeric('--y', figure, rows);
  if (isAxis(x)) return { kind: 'lines', axes, rows, x, figures: ys, by };
  if (ys.length !== 1 || x === y)
    throw new ConfigurationError('--y', ys.join(', '), 'one figure, and another than --x, which is a figure');
  return { kind: 'front', axes, rows, x: numeric('--x', x, rows), y, by };
}

/**
 * The whole name, or its last part if only one name ends in it.
 * @throws ConfigurationError that suggests the nearest name
 */
function named(option: string, name: string, known: readonly string[]): string {
  if (known.includes(name)) return name;
  const ending = known.filter((each) => each.endsWith(`.${name}`));
  if (ending.length === 1) return ending[0]!;
  if (ending.length > 1)
    throw new ConfigurationError(option, name, `one of ${ending.slice(0, 8).join(', ')}`);
  const short = known.filter((each) => !each.startsWith('caches.'));
  throw new ConfigurationError(option, name, `one of ${short.join(', ')}${hintFor(name, known)}`);
}

function numeric(option: string, figure: string, rows: readonly SweepRow[]): string {
  if (rows.some((row) => typeof row.figures[figure] === 'number')) return figure;
  throw new ConfigurationError(option, figure, 'a figure that is a number');
}

/** Rows with these values on these axes: `size=64`. */
function rowsWhere(
  rows: readonly SweepRow[],
  axes: readonly string[],
  where: readonly string[],
): readonly SweepRow[] {
  let left = rows;
  for (const text of where) {
    const at = text.indexOf('=');
    if (at < 1) throw new ConfigurationError('--where', text, 'axis=value');
    const axis = named('--where', text.slice(0, at).trim(), axes);
    const value = text.slice(at + 1).trim();
    const values = axisValuesOf(left, axis).map(String);
    if (!values.includes(value))
      throw new ConfigurationError('--where', text, `${axis} with one of ${values.slice(0, 20).join(', ')}`);
    left = left.filter((row) => String(row.axes[axis] ?? null) === value);
  }
  return left;
}

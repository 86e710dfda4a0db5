/** Contents of a chart: lines over one quantity. Both axes are logarithmic by default. */

export interface ChartLine {
  readonly name: string;
  /** Points by rising x; all values are above 0. */
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Name of the line that this one is compared with; pages draw it over that line, dashed, and the terminal omits it. */
  readonly besides?: string;
  /** Report number of each point; a click on the point opens the report if the page has it. */
  readonly reports?: readonly number[];
}

/** Scale of an axis: logarithmic, or linear, which may include values below 0. */
export type Scale = 'logarithmic' | 'linear';

/** A labelled place on the x axis. */
export interface ChartMark {
  readonly x: number;
  readonly text: string;
  /** Numbers of the reports that a click on the text opens. */
  readonly reports?: readonly number[];
}

export interface Chart {
  readonly title: string;
  readonly xLabel: string;
  /** Unit of the values. */
  readonly yLabel: string;
  /** Title beside the y axis of a page; default: the unit alone. */
  readonly yTitle?: string;
  readonly lines: readonly ChartLine[];
  /** Shown on pages. */
  readonly marks?: readonly ChartMark[];
  /** Draws points only and no lines between them, except for lines that others are compared with. Such a chart has no table. */
  readonly isScattered?: boolean;
  readonly xScale?: Scale;
  readonly yScale?: Scale;
  /** Words at 0, 1, 2 and so on of a linear x axis. */
  readonly xWords?: readonly string[];
  /** Significant digits of figures in the table below the chart; default five. */
  readonly digits?: number;
}

/** Formats a value of x for people. */
export const xTextOf = ({ xWords, xScale }: Pick<Chart, 'xWords' | 'xScale'>, x: number): string => {
  if (xWords !== undefined) return xWords[x] ?? '';
  return xScale === 'linear' ? String(x) : sizeText(x);
};

/** The x values of all lines, without duplicates, rising. */
export function xValuesOf({ lines }: { readonly lines: readonly Pick<ChartLine, 'points'>[] }): number[] {
  const values = new Set(lines.flatMap(({ points }) => points.map(([x]) => x)));
  return [...values].sort((left, right) => left - right);
}

/** Formats a size for people: 64, 4K, 1M; a size that is not a whole multiple stays as it is. */
export function sizeText(bytes: number): string {
  for (const [unit, value] of [
    ['M', 2 ** 20],
    ['K', 2 ** 10],
  ] as const) {
    if (bytes >= value && bytes % value === 0) return `${bytes / value}${unit}`;
  }
  return `${bytes}`;
}

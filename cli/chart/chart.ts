/** Contents of a chart: lines over one quantity, both axes logarithmic unless they say otherwise. */

export interface ChartLine {
  readonly name: string;
  /** By rising x; all values above 0. */
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Name of the line that this one is to be held against: drawn over it, dashed, on pages; not in the terminal. */
  readonly besides?: string;
  /** Of each point the number of its report, which a click on it opens where the page has it. */
  readonly reports?: readonly number[];
}

/** How an axis counts: by powers, or evenly, also below 0. */
export type Scale = 'logarithmic' | 'linear';

/** A labelled place on the x axis. */
export interface ChartMark {
  readonly x: number;
  readonly text: string;
  /** Numbers of the reports that a click on its text opens. */
  readonly reports?: readonly number[];
}

export interface Chart {
  readonly title: string;
  readonly xLabel: string;
  /** Unit of the values. */
  readonly yLabel: string;
  /** Beside the y axis of a page; left out, the unit alone. */
  readonly yTitle?: string;
  readonly lines: readonly ChartLine[];
  /** On pages. */
  readonly marks?: readonly ChartMark[];
  /** Points alone, and no lines between those of a name, but for lines that are held against others. It has no table. */
  readonly isScattered?: boolean;
  readonly xScale?: Scale;
  readonly yScale?: Scale;
  /** Words that stand at 0, 1, 2 and so on of a linear x axis. */
  readonly xWords?: readonly string[];
  /** Significant digits of figures in the table below the chart; left out, five. */
  readonly digits?: number;
}

/** A value of x as people read it. */
export const xTextOf = ({ xWords, xScale }: Pick<Chart, 'xWords' | 'xScale'>, x: number): string => {
  if (xWords !== undefined) return xWords[x] ?? '';
  return xScale === 'linear' ? String(x) : sizeText(x);
};

/** The x values of all lines, each once, rising. */
export function xValuesOf({ lines }: { readonly lines: readonly Pick<ChartLine, 'points'>[] }): number[] {
  const values = new Set(lines.flatMap(({ points }) => points.map(([x]) => x)));
  return [...values].sort((left, right) => left - right);
}

/** A size as people write it: 64, 4K, 1M; what is no whole multiple as it is. */
export function sizeText(bytes: number): string {
  for (const [unit, value] of [
    ['M', 2 ** 20],
    ['K', 2 ** 10],
  ] as const) {
    if (bytes >= value && bytes % value === 0) return `${bytes / value}${unit}`;
  }
  return `${bytes}`;
}

/** A chart: lines over a common axis. The terminal and the page draw the same. */
export interface ChartLine {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Chart {
  readonly title: string;
  readonly xTitle: string;
  readonly yTitle: string;
  /** Equal steps are equal factors. Points that are not above 0 are left out on such an axis. */
  readonly isLogX: boolean;
  readonly isLogY: boolean;
  /** What a value of the x axis reads as. */
  readonly xText: (x: number) => string;
  readonly lines: readonly ChartLine[];
}

/** Points that can be drawn. */
export const drawable = ({ isLogX, isLogY }: Chart, { points }: ChartLine): [number, number][] =>
  points.filter(([x, y]) => (!isLogX || x > 0) && (!isLogY || y > 0)).map(([x, y]) => [x, y]);

/** A value with three significant digits, without an exponent. */
export function shortText(value: number): string {
  if (value === 0) return '0';
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  const text = value.toFixed(Math.min(digits, 6));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

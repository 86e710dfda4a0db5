/** Properties that the name of a figure determines: its unit, and whether more is better. */

export interface FigureKind {
  /** Unit in the usual notation: `µs`, `MB/s`. */
  readonly unit: string;
  /** Divisor of a figure for that unit. */
  readonly divisor: number;
  /** Undefined if neither more nor less is better. */
  readonly isMoreBetter?: boolean;
}

/** Kinds by the end of the name; the first match applies. */
const kinds: readonly (readonly [end: RegExp, kind: FigureKind])[] = [
  [/bytesPerSecond$/i, { unit: 'MB/s', divisor: 1e6, isMoreBetter: true }],
  [/messagesPerSecond$/i, { unit: 'Mmsg/s', divisor: 1e6, isMoreBetter: true }],
  [/^load\.(offered|arrived)PerSecond$/, { unit: 'Mmsg/s', divisor: 1e6 }],
  [/^load\.interruptsPerSecond\.\d+$/, { unit: '/s', divisor: 1, isMoreBetter: false }],
  [/^load\.(busyCores\.\d+|droppedCount|backlog\w+)$/, { unit: '', divisor: 1, isMoreBetter: false }],
  [/PerSecond$/, { unit: '/s', divisor: 1, isMoreBetter: true }],
  [/Ps$/, { unit: 'µs', divisor: 1e6, isMoreBetter: false }],
  [
    /\.(misses|evictions|rnrNaks|pageRequests)$|^interrupts\.\d+$|\.cycles\.\w+$/,
    { unit: '', divisor: 1, isMoreBetter: false },
  ],
  [/\.hits$/, { unit: '', divisor: 1, isMoreBetter: true }],
];

const plain: FigureKind = { unit: '', divisor: 1 };

export function figureKindOf(name: string): FigureKind {
  return kinds.find(([end]) => end.test(name))?.[1] ?? plain;
}

/** A figure in its unit, with four significant digits. */
export function figureText(name: string, value: number): string {
  const { unit, divisor } = figureKindOf(name);
  const scaled = value / divisor;
  const digits = Number.isInteger(scaled) ? String(scaled) : String(Number(scaled.toPrecision(4)));
  return unit === '' ? digits : `${digits} ${unit}`;
}

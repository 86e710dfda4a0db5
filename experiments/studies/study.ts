/**
 * A study: a question about the architecture, the sweep that answers it, its charts, and three sentences made from its
 * figures.
 */
import { InvariantError } from '../../base/index.ts';
import { type AxisValue, figureText, type SweepRow } from '../sweep/index.ts';

/** Axes and figures of the chart, as in `hca plot`. */
interface StudyPlot {
  readonly x: string;
  readonly y: readonly string[];
  readonly z?: string;
  readonly by?: string;
  /** Selects points with these values: `size=64`. */
  readonly where?: readonly string[];
}

export interface Study {
  /** Its name on the command line: `hca ask inline`. */
  readonly name: string;
  readonly question: string;
  /** A specification of a sweep (docs/how-to/sweeps.md). */
  readonly spec: {
    readonly workload: string;
    readonly machine?: object;
    readonly vary: Readonly<Record<string, string>>;
    readonly points?: readonly Readonly<Record<string, AxisValue>>[];
  };
  /** Axes of a smaller grid, on which a test asks the same question. */
  readonly reduced: Readonly<Record<string, string>>;
  /** The explicit points that the test has; if left out: all. */
  readonly reducedPoints?: readonly Readonly<Record<string, AxisValue>>[];
  readonly plots: readonly StudyPlot[];
  /** Three sentences. */
  answer(figures: StudyFigures): readonly [string, string, string];
}

/** The figures of a study's finished points, by the values of their axes. */
export class StudyFigures {
  readonly rows: readonly SweepRow[];

  constructor(rows: readonly SweepRow[]) {
    this.rows = rows.filter(({ status }) => status === 'done');
  }

  /** Values of an axis, in their order of appearance. */
  valuesOf(axis: string): readonly (AxisValue | null)[] {
    return [...new Set(this.rows.map(({ axes }) => axes[axis] ?? null))];
  }

  /** Numbers of an axis, rising. */
  numbersOf(axis: string): readonly number[] {
    return this.valuesOf(axis)
      .map(Number)
      .toSorted((left, right) => left - right);
  }

  /**
   * A figure at the point with these values.
   * @throws InvariantError if the point does not exist or lacks the figure
   */
  at(figure: string, place: Readonly<Record<string, AxisValue>>): number {
    const row = this.rows.find(({ axes }) =>
      Object.entries(place).every(([axis, value]) => axes[axis] === value),
    );
    const value = row?.figures[figure];
    if (typeof value !== 'number')
      throw new InvariantError(`figure ${figure} at ${JSON.stringify(place)}`, value, 'a number');
    return value;
  }

  /** Measured messages of all QPs together: `iterations` are those of one QP. */
  messagesAt(place: Readonly<Record<string, AxisValue>>): number {
    return Math.round((this.at('messagesPerSecond', place) * this.at('durationPs', place)) / 1e12);
  }

  /** The figure in its unit. */
  text(figure: string, place: Readonly<Record<string, AxisValue>>): string {
    return figureText(figure, this.at(figure, place));
  }
}

/** A ratio for people: `2.31 times`. */
export const timesText = (ratio: number): string => `${Number(ratio.toPrecision(3))} times`;

/** A share for people. */
export const percentText = (share: number): string => `${Number((share * 100).toPrecision(3))} %`;

/** Picoseconds as nanoseconds. */
export const nsText = (ps: number): string => `${Math.round(ps / 1000)} ns`;

/** Bytes with a binary prefix. */
export const bytesText = (bytes: number): string => {
  if (bytes % 2 ** 30 === 0) return `${bytes / 2 ** 30} GiB`;
  if (bytes % 2 ** 20 === 0) return `${bytes / 2 ** 20} MiB`;
  return bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes} bytes`;
};

/** Name of the bottleneck at a point. */
export function bindsText(figures: StudyFigures, place: Readonly<Record<string, AxisValue>>): string {
  const row = figures.rows.find(({ axes }) =>
    Object.entries(place).every(([axis, value]) => axes[axis] === value),
  );
  return String(row?.figures['bottleneck.binds.name'] ?? 'nothing');
}

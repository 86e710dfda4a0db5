/** The result of a point of a sweep: plain data, equal on every engine and in every order of execution. */
import type { AxisValue } from './axis.ts';

/** A number, a word, or a boolean. */
export type Figure = number | string | boolean;

/**
 *     done      the figures are available
 *     failed    the simulation ended with an error, or its statistics do not balance
 *     refused   the configuration is impossible: nothing was simulated
 */
export type RowStatus = 'done' | 'failed' | 'refused';

/** Informative value of a row: if a point has two rows, the more informative one is used. */
export const worthOfStatus: Readonly<Record<RowStatus, number>> = { done: 2, refused: 1, failed: 0 };

/** Outcome of one run. */
export type Outcome =
  | { readonly status: 'done'; readonly figures: Readonly<Record<string, Figure>> }
  | { readonly status: 'failed' | 'refused'; readonly error: string };

export interface SweepRow {
  readonly hash: string;
  readonly index: number;
  readonly status: RowStatus;
  readonly error?: string;
  /** The value of every axis; null if the point leaves the axis unchanged. */
  readonly axes: Readonly<Record<string, AxisValue | null>>;
  readonly figures: Readonly<Record<string, Figure>>;
}

/** First line of a file of results: identifies the sweep. */
export interface SweepHeader {
  readonly schema: 'hca-sweep/1';
  /** Version of the emulator. */
  readonly version: string;
  /** Hash of all points in order: files with the same hash belong together. */
  readonly sweep: string;
  readonly pointCount: number;
  readonly axes: readonly string[];
  /** The specification as it was parsed. */
  readonly spec: unknown;
}

/** The row of a point whose run has ended. */
export function rowOf(
  { hash, index, axes }: Pick<SweepRow, 'hash' | 'index' | 'axes'>,
  outcome: Outcome,
): SweepRow {
  return outcome.status === 'done'
    ? { hash, index, status: 'done', axes, figures: outcome.figures }
    : { hash, index, status: outcome.status, error: outcome.error, axes, figures: {} };
}

/** Facts of a row's run. */
export function outcomeOf({ status, error = '', figures }: SweepRow): Outcome {
  return status === 'done' ? { status, figures } : { status, error };
}

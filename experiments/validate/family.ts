/**
 * A family: the rows of the measurements that one workload covers. It selects rows by their columns, reads sizes and
 * windows from them, and has no constant of a single row.
 */
import { groupOf, type Measurement } from './measurements.ts';
import type { Figures, Point } from './points.ts';
import type { SuspicionName } from './suspicions.ts';
import type { ToleranceName } from './verdict.ts';

/** Columns that must match, all of them. */
interface Selector {
  readonly group?: string;
  readonly source?: RegExp;
  readonly nic?: RegExp;
  readonly where?: RegExp;
  readonly link?: RegExp;
  readonly workload?: RegExp;
  readonly params?: RegExp;
  readonly metric?: RegExp;
  readonly unit?: RegExp;
}

export const notRunKinds = [
  'card',
  'machines',
  'size',
  'workload',
  'software',
  'unstated',
  'no measurement',
] as const;
/**
 * Why rows do not run: another card or device, more machines than a cable joins, more than a fabric has, no such workload
 * yet, software of the source that no program repeats, circumstances that it does not state, nothing measured.
 */
export type NotRunKind = (typeof notRunKinds)[number];

interface Common {
  readonly name: string;
  readonly of: Selector;
  /** The workload in words. */
  readonly workload: string;
}

export interface RunFamily extends Common {
  readonly points: (row: Measurement) => readonly Point[];
  /** Id of the row whose value is subtracted: the difference of both is measured, and simulated. */
  readonly base?: (row: Measurement) => string;
  /** Name of the figure of a single point, or a function of the figures of several, and of the row. */
  readonly figure: string | ((figures: readonly Figures[], row: Measurement) => number);
  readonly tolerance: ToleranceName | ((row: Measurement) => ToleranceName);
  /** The condition that is the x axis of the rows' curve, by its name. */
  readonly over?: string;
  /** Mechanisms that would explain a miss. */
  readonly suspects?: readonly SuspicionName[];
}

interface NotRunFamily extends Common {
  readonly notRun: { readonly kind: NotRunKind; readonly why: string };
}

export type Family = RunFamily | NotRunFamily;

export const isRun = (family: Family): family is RunFamily => !('notRun' in family);

export function belongs(row: Measurement, { of }: Family): boolean {
  if (of.group !== undefined && groupOf(row) !== of.group) return false;
  return (['source', 'nic', 'where', 'link', 'workload', 'params', 'metric', 'unit'] as const).every(
    (column) => of[column]?.test(row[column]) ?? true,
  );
}

/** The value of a row; undefined if figures are missing. */
export function simulatedOf({ figure }: RunFamily, figures: readonly Figures[], row: Measurement): number {
  return typeof figure === 'string' ? (figures[0]?.[figure] ?? Number.NaN) : figure(figures, row);
}

export const toleranceOf = ({ tolerance }: RunFamily, row: Measurement): ToleranceName =>
  typeof tolerance === 'string' ? tolerance : tolerance(row);

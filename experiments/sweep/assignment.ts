/**
 * A point as another machine receives it: plain data with everything that its outcome depends on.
 *
 *     point ─► assignment ─► JSON, queue or file ─► orderOf: version? recomputed hash equal? ─► order, run there ─► outcome
 *
 * The returned outcome is also checked before it becomes a row.
 */
import { ConfigurationError, shortJson } from '../../base/index.ts';
import { type MachineOptions, partitions } from '../../machine/index.ts';
import { profileValues } from '../../machine/profile/index.ts';
import { orderAndHashOf } from './expansion.ts';
import { packageVersion } from './package-version.ts';
import type { Outcome } from './row.ts';
import type { PointOrder, PointToRun } from './runner.ts';
import { checkedMachine, type SweepMachine } from './spec.ts';
import { checkedDraft } from './workload-field.ts';

/** Manner in which machines run, which changes no figure. */
export type RunManner = Pick<MachineOptions, 'partition' | 'shortcuts'>;

/** Greatest number of starts of a point: one whose worker or task is lost that often has failed. */
export const startsMax = 3;
export const lostOutcome: Outcome = { status: 'failed', error: `what ran it was lost ${startsMax} times` };

export interface Assignment {
  /** Version of the emulator. */
  readonly version: string;
  readonly hash: string;
  readonly machine: SweepMachine;
  /** The canonical text of the workload. */
  readonly workload: string;
  readonly manner: RunManner;
}

export function assignmentOf({ hash, order }: PointToRun, manner: RunManner): Assignment {
  const { machine, workload } = order;
  return { version: packageVersion(), hash, machine: withoutProfile(machine), workload, manner };
}

/** The same machine by its values alone: other machines lack the profile's file. */
function withoutProfile({ profile, ...machine }: SweepMachine): SweepMachine {
  if (profile === undefined) return machine;
  return { ...machine, set: { ...profileValues(profile), ...machine.set } };
}

/**
 * Converts an assignment to its order.
 * @param hash under which its outcome will be known
 * @throws ConfigurationError for an invalid assignment, and if this emulator has another version or computes another
 * hash
 */
export function orderOf(value: unknown, hash: string): PointOrder {
  const given = (typeof value === 'object' && value !== null ? value : {}) as Partial<Assignment>;
  const { version, machine, workload, manner } = given;
  if (version !== packageVersion())
    throw new ConfigurationError('version of the sweep', version, `${packageVersion()}, as this emulator is`);
  const checked = checkedMachine(machine);
  const { order, hash: own } = orderAndHashOf(checked, checkedDraft(workload));
  if (own !== hash)
    throw new ConfigurationError(
      'point',
      hash,
      `${own}, as this emulator knows it: the sweep's is another one`,
    );
  return { machine: { ...checked, ...checkedManner(manner) }, args: order.args };
}

function checkedManner(value: RunManner | undefined): RunManner {
  const { partition = 'single', shortcuts = true } = value ?? {};
  if (partitions.includes(partition) && typeof shortcuts === 'boolean') return { partition, shortcuts };
  throw new ConfigurationError('manner', shortJson(value), `a partition of ${partitions.join(', ')}`);
}

/** Outcome of a point that another machine ran; undefined if the text is no outcome. */
export function outcomeFrom(value: unknown): Outcome | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { status, figures, error } = value as Readonly<Record<string, unknown>>;
  if (status === 'done') return isFigures(figures) ? { status, figures } : undefined;
  if (status !== 'failed' && status !== 'refused') return undefined;
  return typeof error === 'string' ? { status, error } : undefined;
}

type Figures = Extract<Outcome, { readonly status: 'done' }>['figures'];

const isFigures = (value: unknown): value is Figures =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((figure) => ['number', 'string', 'boolean'].includes(typeof figure));

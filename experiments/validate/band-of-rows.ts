/** The error bands of the unseen rows, for the figures that commands print (../fidelity). */
import { configurationOf } from '../../machine/profile/index.ts';
import { bandKey, type ErrorBand, type FigureKind, networkOf } from '../fidelity/index.ts';
import { verbOf } from '../workloads/index.ts';
import type { Case, RowResult } from './validation.ts';

const kinds: readonly (readonly [unit: RegExp, kind: FigureKind])[] = [
  [/^us$/, 'latency'],
  [/^(?:Mops|Mpps|M\/s|requests\/us)$/, 'message rate'],
  [/^(?:Gb\/s|MiB\/s|GB\/s)$/, 'bandwidth'],
];

/** Keys of the bands that a row belongs to; none for rows that are not of one verb. */
function keysOf({ row, points: [point] }: Case): string[] {
  const kind = kinds.find(([unit]) => unit.test(row.unit))?.[1];
  if (kind === undefined || point === undefined) return [];
  const { machine, workload } = point;
  const verb =
    workload.kind === 'perf'
      ? verbOf(workload.test.test)
      : workload.kind === 'stream'
        ? workload.plan.verb
        : undefined;
  if (verb === undefined) return [];
  const network = networkOf(configurationOf(machine));
  return [bandKey(network, kind, verb), bandKey(network, kind)];
}

/** Bands by their keys, of the rows that no parameter was fitted to. */
export function bandsOf(cases: readonly Case[], results: readonly RowResult[]): Record<string, ErrorBand> {
  const errors = new Map<string, number[]>();
  for (const [at, one] of cases.entries()) {
    const { isGiven, error } = results[at]!;
    if (isGiven || error === undefined || Number.isNaN(error)) continue;
    for (const key of keysOf(one)) errors.set(key, [...(errors.get(key) ?? []), error]);
  }
  const keys = [...errors.keys()].toSorted();
  return Object.fromEntries(keys.map((key) => [key, bandOf(errors.get(key)!)]));
}

/** The errors that bound eight of ten. */
function bandOf(errors: readonly number[]): ErrorBand {
  const sorted = errors.toSorted((left, right) => left - right);
  const last = sorted.length - 1;
  const rounded = (error: number): number => Math.round(error * 1000) / 1000;
  return {
    rows: sorted.length,
    low: rounded(sorted[Math.floor(last * 0.1)]!),
    high: rounded(sorted[Math.ceil(last * 0.9)]!),
  };
}

/**
 * Predefined workloads that replace a test by name: `hca perf kv-get`, or `kv-get,qps=8` as text. Given fields override
 * theirs.
 */
import type { ReadyWorkload } from './test-kind.ts';
import { allKinds } from './test-kinds.ts';
import type { Workload } from './workload.ts';

const readyWorkloads: Readonly<Record<string, ReadyWorkload>> = Object.assign(
  {},
  ...allKinds.map(({ ready }) => ready),
);

export const readyWorkloadNames = Object.keys(readyWorkloads);

/** The fields of a predefined workload; undefined for any other word. */
export function readyWorkload(name: string): Workload | undefined {
  const ready = readyWorkloads[name];
  if (ready === undefined) return;
  const { meaning: _, ...workload } = ready;
  return workload;
}

/** Name and meaning of each, for help and pages. */
export const readyWorkloadWords = (): (readonly [name: string, meaning: string])[] =>
  Object.entries(readyWorkloads).map(([name, { meaning }]) => [name, meaning]);

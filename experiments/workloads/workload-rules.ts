/** Combinations of a workload's fields: the form of a rule, and the rules that kinds of tests share. */
import { isLatencyTest, perfDefaults } from './perf-plan.ts';
import type { Workload } from './workload.ts';
import type { WorkloadFieldName } from './workload-fields.ts';

/** Name of a field in the source of its value: the field itself, or the option of a command. */
export type FieldNaming = (field: WorkloadFieldName) => string;

/** The contradicting field, an accepted value, and its own value if that was not given literally. */
export type Refusal = readonly [field: WorkloadFieldName, range: string, value?: number | string];
export type Rule = (asked: Workload, named: FieldNaming) => Refusal | undefined;

/** The greatest MTU: that of a port is unknown here. */
export const mtuMax = 4096;
/** Bytes that a bandwidth test moves by default: enough for a steady state. */
const bandwidthBytes = 64 * 1024 ** 2;
/** The clock of a program is a number of picoseconds: exact for 2.5 hours. */
const arrivalSecondsMax = 3600;

/** QPs of all threads: one of each, unless the workload names more. */
export const qpsOf = ({ qps, threads = 1 }: Workload): number => qps ?? threads;

/** Messages of a QP, or of a client of a store: perftest's counts; for large messages enough to reach the steady state. */
export function iterationsOf({ test, iters }: Workload, sizeBytes: number): number {
  if (iters !== undefined) return iters;
  const { latencyIterations, bandwidthIterations } = perfDefaults;
  const preset = isLatencyTest(test) ? latencyIterations : bandwidthIterations;
  return Math.min(preset, Math.max(10, Math.ceil(bandwidthBytes / sizeBytes)));
}

/** @param service the test, and its service if it has several */
export const inlineWithin = (inline = 0, max: number, service: string): Refusal | undefined =>
  inline > max
    ? ['inline', `at most ${max} for ${service}: as much as a WQE of 1008 bytes has room for`]
    : undefined;

export const loadNeedsRate: Rule = ({ rate, arrivals, backlog }, named) => {
  if (rate !== undefined) return;
  const found = arrivals === undefined ? (backlog === undefined ? undefined : 'backlog') : 'arrivals';
  return found === undefined ? undefined : [found, `left out without ${named('rate')}`];
};

/** Whether all messages of an offered load arrive within the time that a run may last. */
export function rateWithin(asked: Workload, sizeBytes: number): Refusal | undefined {
  const messages = iterationsOf(asked, sizeBytes) * qpsOf(asked);
  const rateMin = Math.ceil(messages / arrivalSecondsMax);
  return asked.rate !== undefined && asked.rate < rateMin
    ? ['rate', `at least ${rateMin}, at which ${messages} messages arrive within ${arrivalSecondsMax} s`]
    : undefined;
}

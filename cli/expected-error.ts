/** Sentences on the error to expect of the figures that a command has printed. */
import { errorSentence, networkOf } from '../experiments/fidelity/index.ts';
import type { SweepPoint } from '../experiments/sweep/index.ts';
import type { PerfArgs } from '../experiments/workloads/index.ts';
import { configurationOf, type MachineConfig } from '../machine/profile/index.ts';

/** Path MTU of a test that requests none: bandwidths are of whole packets. */
const mtuDefaultBytes = 2048;
/** More sentences say nothing to a reader. */
const sentencesMax = 3;

const kindOf = ({ isLatency, sizeBytes, mtuBytes }: PerfArgs) => {
  if (isLatency) return 'latency';
  return sizeBytes >= (mtuBytes || mtuDefaultBytes) ? 'bandwidth' : 'message rate';
};

/** The error to expect of a test's figures: its latency, its message rate, or its bandwidth of whole packets. */
export function expectedError(args: PerfArgs, config: Pick<MachineConfig, 'hca'>): string {
  if (args.kv !== undefined)
    return 'Expected error: unknown; no measurement of a key-value store was kept back.';
  return errorSentence(networkOf(config), kindOf(args), args.verb);
}

/** The same for the points of a sweep: each sentence once, for the first kinds of points. */
export function expectedErrors(points: readonly SweepPoint[]): string[] {
  const kinds = new Map<string, string>();
  for (const { order } of points) {
    if (order === undefined) continue;
    const { args, machine } = order;
    const key = [kindOf(args), args.verb, args.kv === undefined, machine.profile].join(' ');
    if (!kinds.has(key)) kinds.set(key, expectedError(args, configurationOf(machine)));
  }
  return [...new Set(kinds.values())].slice(0, sentencesMax);
}

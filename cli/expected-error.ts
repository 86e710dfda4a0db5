/** Sentences on the error to expect of the figures that a command has printed. */
import { errorSentence, figureKindOf, networkOf } from '../experiments/fidelity/index.ts';
import { isFabric, type SweepPoint } from '../experiments/sweep/index.ts';
import { isPerftest, type PerfArgs } from '../experiments/workloads/index.ts';
import { configurationOf, type MachineConfig } from '../machine/profile/index.ts';

/** More sentences say nothing to a reader. */
const sentencesMax = 3;

/** Whether the test is perftest's plain one, which the measurements repeat. */
const isPlain = (args: PerfArgs): boolean =>
  isPerftest(args) &&
  args.load === undefined &&
  (args.connection ?? 'RC') === 'RC' &&
  args.isBidirectional !== true &&
  args.isEchoed !== true;

/** The error to expect of a test's figures: its latency, its message rate, or its bandwidth of large messages. */
export function expectedError(args: PerfArgs, config: Pick<MachineConfig, 'hca'>): string {
  if (!isPlain(args)) return 'Expected error: unknown; no measurement of such a test was kept back.';
  return errorSentence(networkOf(config), figureKindOf(args.isLatency, args.sizeBytes), args.verb);
}

/** The same for the points of a sweep: each sentence once, for the first kinds of points. */
export function expectedErrors(points: readonly SweepPoint[]): string[] {
  const kinds = new Map<string, string>();
  for (const { order } of points) {
    if (order === undefined) continue;
    const { args, machine } = order;
    if (isFabric(args)) {
      kinds.set('fabric', 'Expected error: unknown; no measurement of traffic over switches was kept back.');
      continue;
    }
    const key = [
      figureKindOf(args.isLatency, args.sizeBytes),
      args.verb,
      isPlain(args),
      machine.profile,
    ].join(' ');
    if (!kinds.has(key)) kinds.set(key, expectedError(args, configurationOf(machine)));
  }
  return [...new Set(kinds.values())].slice(0, sentencesMax);
}

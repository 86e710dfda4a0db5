/** "What if", simulated: the same messages on a machine of their own, one in flight and many in flight. */
import { bottleneckOf, linkBound, mttLinesOf } from '../../experiments/bottleneck/index.ts';
import { cableOf } from '../../experiments/model/index.ts';
import {
  type BandwidthResult,
  bandwidthClient,
  bandwidthServer,
  type LatencyResult,
  latencyClient,
  latencyServer,
  type PerfArgs,
  type PerfSide,
} from '../../experiments/workloads/index.ts';
import { BootedMachines, type ProgramOptions } from '../../machine/index.ts';
import type { LabMachine, LabMessage, SimulatedLatency, SimulatedRate } from '../protocol.ts';

/** Points of one configuration boot once: once for A and once for B. */
export const machines = new BootedMachines({ imageOf: 1, kindsMax: 2 });

const latencyIterations = 12;
const rateIterations = 300;

/** Messages one after another between the two hosts of a machine of their own. */
export async function latency(machine: LabMachine, message: LabMessage): Promise<SimulatedLatency> {
  const args = argsOf(message, { isLatency: true, iterations: latencyIterations, qpCount: 1 });
  await using lease = await machines.take(optionsOf(machine), () => programsOf(args));
  const { machine: simulated } = lease;
  await simulated.run();
  const [result] = await simulated.results<[LatencyResult]>();
  const { operations, checks, configHash } = await simulated.report();
  const { averagePs, firstPs, iterations } = result;
  const stages = Object.values(operations).flatMap(({ count, milestonesPs }) =>
    Object.entries(milestonesPs).map(([name, ps]) => ({ name, ps: ps / count })),
  );
  return {
    sizeBytes: message.sizeBytes,
    meanPs: (averagePs * iterations - firstPs) / (iterations - 1),
    firstPs,
    stages: stages.filter(({ ps }) => ps > 0),
    configHash,
    isBalanced: checks.balanced,
  };
}

/** Measures the message rate with full send queues, and finds the resource that limits it. */
export async function rate(
  machine: LabMachine,
  message: LabMessage,
  qpCount: number,
): Promise<SimulatedRate> {
  const args = argsOf(message, { isLatency: false, iterations: rateIterations, qpCount });
  await using lease = await machines.take(optionsOf(machine), () => programsOf(args));
  const { machine: simulated } = lease;
  await simulated.run();
  const sides = await simulated.results<readonly [PerfSide, PerfSide]>();
  const { durationPs, messagesPerSecond, averageBytesPerSecond } = sides[0].result as BandwidthResult;
  const { config } = simulated;
  const report = await simulated.report();
  const { binds, next } = bottleneckOf({
    config,
    args,
    figures: report,
    hosts: [0, 1],
    switchCount: 0,
    cablesPs: cableOf(config).latencyPs,
    mttLines: mttLinesOf(report),
    durationPs,
    messagesPerSecond,
    cores: sides.map(({ cycles }, node) => ({ node, cycles })),
  });
  const shareOf = ({ name, kind, share }: typeof binds): string =>
    `${name}, ${Math.min(100, Math.round(100 * share))} % ${kind === 'server' ? 'busy' : 'full'}`;
  return {
    messagesPerSecond,
    bytesPerSecond: averageBytesPerSecond,
    cableBytesPerSecond: linkBound(config, args),
    binds: shareOf(binds),
    next: next[0] === undefined ? '' : shareOf(next[0]),
    turn: binds.turn.map(({ what, towards }) => `${towards} ${what}`),
  };
}

function programsOf(args: PerfArgs): readonly ProgramOptions[] {
  const [client, server] = args.isLatency
    ? [latencyClient, latencyServer]
    : [bandwidthClient, bandwidthServer];
  return [
    { node: 0, name: 'client', run: client, args },
    { node: 1, name: 'server', run: server, args },
  ];
}

function argsOf(
  { verb, sizeBytes, mtuBytes, inlineBytes }: LabMessage,
  counts: Pick<PerfArgs, 'isLatency' | 'iterations' | 'qpCount'>,
): PerfArgs {
  return {
    verb,
    sizeBytes,
    mtuBytes,
    inlineBytes: verb === 'read' ? 0 : inlineBytes,
    txDepth: 128,
    rxDepth: 512,
    usesEvents: false,
    cqModeration: 100,
    ...counts,
  };
}

const optionsOf = ({ profile, set, seed }: LabMachine) => ({ profile, set, seed });

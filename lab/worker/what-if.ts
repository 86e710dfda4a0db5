/** "What if": the closed form of one message at once, and simulations of the same machine beside it. */
import { bottleneckOf, linkBound } from '../../system/bottleneck/index.ts';
import { BootedMachines } from '../../system/machine/booted-machines.ts';
import { configurationOf, profileListing } from '../../system/machine/profile/index.ts';
import type { JsonValue, ProgramOptions } from '../../system/machine/program.ts';
import { Path, readLatency, sendLatency, totalPs, writeLatency } from '../../system/model/index.ts';
import { bandwidthClient, bandwidthServer } from '../../system/workloads/perf-bandwidth.ts';
import { latencyClient, latencyServer } from '../../system/workloads/perf-latency.ts';
import type { BandwidthResult, LatencyResult, PerfArgs, PerfSide } from '../../system/workloads/perf-plan.ts';
import type {
  Estimate,
  LabMachine,
  LabMessage,
  LabParameter,
  LabTerm,
  SimulatedLatency,
  SimulatedRate,
} from '../protocol.ts';

/** Sizes of a curve, from a byte to 64 KiB. */
const curveSizes = [1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536] as const;

/** Points of one configuration boot once: the third begins from the image of the second. */
const machines = new BootedMachines();

const latencyIterations = 12;
const rateIterations = 300;

/** What the closed form says, at once. @throws ConfigurationError naming what is wrong with the machine */
export function estimate(machine: LabMachine, message: LabMessage): Estimate {
  const path = new Path(configurationOf(choiceOf(machine)), message.mtuBytes);
  const terms = termsOf(path, message);
  const curve = curveSizes.map((sizeBytes) => ({
    sizeBytes,
    ps: totalPs(termsOf(path, { ...message, sizeBytes })),
  }));
  return { totalPs: totalPs(terms), terms, curve };
}

function termsOf(path: Path, { verb, sizeBytes, inlineBytes }: LabMessage): readonly LabTerm[] {
  if (verb === 'read') return readLatency(path, sizeBytes);
  const post = {
    verb,
    lengthBytes: sizeBytes,
    isInline: sizeBytes <= inlineBytes,
    qpInlineBytes: inlineBytes,
  } as const;
  return verb === 'send' ? sendLatency(path, post) : writeLatency(path, post);
}

/** Messages one after the other between the two hosts of a machine of its own. */
export async function latency(machine: LabMachine, message: LabMessage): Promise<SimulatedLatency> {
  const args = argsOf(message, { isLatency: true, iterations: latencyIterations, qpCount: 1 });
  await using lease = await machines.take(optionsOf(machine), () => programsOf(args));
  const { machine: simulated } = lease;
  await simulated.run();
  const [result] = (await simulated.results()) as unknown as [LatencyResult];
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

/** As many messages as the send queues hold, and what keeps the rate from being higher. */
export async function rate(
  machine: LabMachine,
  message: LabMessage,
  qpCount: number,
): Promise<SimulatedRate> {
  const args = argsOf(message, { isLatency: false, iterations: rateIterations, qpCount });
  await using lease = await machines.take(optionsOf(machine), () => programsOf(args));
  const { machine: simulated } = lease;
  await simulated.run();
  const sides = (await simulated.results()) as unknown as readonly [PerfSide, PerfSide];
  const { durationPs, messagesPerSecond, averageBytesPerSecond } = sides[0].result as BandwidthResult;
  const { config } = simulated;
  const { binds, next } = bottleneckOf({
    config,
    args,
    figures: await simulated.report(),
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
  const plain = args as unknown as JsonValue;
  return [
    { node: 0, name: 'client', run: client, args: plain },
    { node: 1, name: 'server', run: server, args: plain },
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

const choiceOf = ({ profile, set }: LabMachine) => ({ profile, set });
const optionsOf = ({ profile, set, seed }: LabMachine) => ({ profile, set, seed });

/** What the page shows beside a slider. */
export function parameters(profile: string, paths: readonly string[]): LabParameter[] {
  const listing = profileListing();
  const values = listing.profiles.find(({ name }) => name === profile)?.values ?? {};
  return paths.map((path) => {
    const row = listing.parameters.find((each) => each.path === path);
    if (row === undefined) throw new Error(`no parameter ${path}`);
    const { unit, doc, source } = row;
    return { path, unit, doc, source, default: values[path] ?? row.default };
  });
}

export const profiles = (): { name: string; doc: string }[] =>
  profileListing().profiles.map(({ name, doc }) => ({ name, doc }));

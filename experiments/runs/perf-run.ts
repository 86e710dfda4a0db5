/** One row of `hca perf`: a whole simulation. Also the task of the pool's workers, which receive and return plain data. */
import { ConfigurationError } from '../../base/index.ts';
import type { Analysis } from '../../machine/analysis/index.ts';
import {
  ethernetAt,
  type FaultReport,
  freshMachines,
  type Machine,
  type MachineOptions,
  type MachineSource,
  type NodeReport,
  type ProgramOptions,
  type Report,
  type ReportFigures,
  wireAt,
} from '../../machine/index.ts';
import { type MachineConfig, parametersByPath } from '../../machine/profile/index.ts';
import {
  checkedTopology,
  fabricRoutesOf,
  hostsBySide,
  portsOnRoute,
  type Topology,
} from '../../machine/topology/index.ts';
import {
  type Bottleneck,
  bottleneckOf,
  linkBound,
  type Measured,
  meanPostedPsOf,
  mttLinesOf,
  type StageShare,
  stagesOf,
} from '../bottleneck/index.ts';
import { cableOf } from '../model/index.ts';
import {
  type BandwidthRates,
  type BandwidthResult,
  kindOf,
  type LatencyResult,
  type PerfArgs,
  type PerfResult,
  type PerfSide,
} from '../workloads/index.ts';
import { announcedFigures } from './announced-figures.ts';
import { keepingCapture, writeCapture } from './capture-output.ts';
import { type LoadOutcome, loadedTimes, loadOutcomeOf } from './perf-loaded.ts';
import { checkPort } from './perf-port.ts';
import { type Recovery, recoveryOf } from './perf-recovery.ts';
import { programUrl } from './program-url.ts';
import { runMachine } from './run.ts';
import { type TimelineOrder, type TimelineWritten, writeTimeline } from './timeline-files.ts';

export interface PerfOrder {
  readonly machine: MachineOptions;
  readonly args: PerfArgs;
  /** Its recordings, and their files. */
  readonly timeline?: TimelineOrder;
  /** Whether the row is for a page. */
  readonly isReported?: boolean;
}

interface Received {
  readonly count: number;
  readonly expected: number;
  /** Numbers of missing messages that found no receive, or found one whose page of an on-demand region was absent. */
  readonly lost?: { readonly withoutReceive: number; readonly withoutPage: number };
}

export interface PerfRow {
  readonly args: PerfArgs;
  readonly result: PerfResult;
  /** Work of each program's core in a bandwidth test during the measurement, in cycles by cause: client 0, server 0, client 1 … */
  readonly cores?: readonly { readonly node: number; readonly cycles: Readonly<Record<string, number>> }[];
  /** SEND messages received, and sent: an unreliable service loses those that cannot be received immediately. */
  readonly received?: Received;
  /** Recovery by the transport; left out if it did not recover anything. */
  readonly recovery?: Recovery;
  /** Results of an offered load. */
  readonly load?: LoadOutcome;
  /** The bottleneck of a bandwidth test, and the next one; left out for an offered load without overload. */
  readonly bottleneck?: Bottleneck;
  /** Time of a latency test's operations by stage, including a warm-up. */
  readonly stages?: readonly StageShare[];
  /** Sum of the stages for an average operation; present if the programs sleep until an event. */
  readonly lifePs?: number;
  readonly elapsedPs: number;
  readonly isBalanced: boolean;
  /** Greatest payload rate that the link could carry in such messages, in bytes per second; for a bandwidth test. */
  readonly linkBytesPerSecond?: number;
  /** Interrupts delivered to each host during the measurement, over all vectors. */
  readonly interrupts: readonly number[];
  /** The caches of each HCA during the measurement. */
  readonly caches: readonly NodeReport['hca']['caches'][];
  /** On-demand paging, by host; left out without any. */
  readonly onDemand?: readonly Required<NodeReport>['onDemand'][];
  /** Requested faults, and the number of occurrences of each; left out if there were none. */
  readonly faults?: readonly FaultReport[];
  /** Findings of the buffer ownership watch, by host; left out without a watch. */
  readonly races?: readonly Required<NodeReport>['races'][];
  /** Number of further findings, by host; left out if the lists are complete. */
  readonly lostRaces?: readonly number[];
  /** Findings of the analysers, if an analysis was requested. */
  readonly analyses?: readonly Analysis[];
  /** The written recordings, if a timeline was requested. */
  readonly timeline?: TimelineWritten;
}

/** A row for a page. */
export interface ReportedRow extends PerfRow {
  /** Present if requested: of the whole run, including a warm-up. */
  readonly report?: Report;
}

/**
 * @param onProgress called with the client's messages; not in a worker
 * @param machines source of the machine
 */
export default async function runPerf(
  { machine: options, args: asked, timeline, isReported = false }: PerfOrder,
  onProgress?: MachineOptions['onProgress'],
  machines: MachineSource = freshMachines,
): Promise<ReportedRow> {
  const chosen: MachineOptions = {
    ...options,
    ...(onProgress === undefined ? {} : { onProgress }),
    ...(timeline === undefined ? {} : { analysis: { ...options.analysis, timeline: timeline.options } }),
  };
  let args = asked;
  await using lease = await machines.take(chosen, (config) => {
    args = fittedToHost(asked, config.host);
    checkPort(args, config);
    const programs = programsOf(args);
    return options.topology === undefined ? programs : placed(programs, checkedTopology(options.topology));
  });
  const { machine } = lease;
  const measuredFigures = await keepingCapture(machine, options.analysis, async () => {
    const figures = await announcedFigures(machine, programsOf(args).length);
    await runMachine(machine);
    return figures;
  });
  const sides = await machine.results<(LatencyResult | PerfSide | null)[]>();
  const report = await machine.report();
  const { checks, faults } = report;
  const figures = measuredFigures ?? report;
  const onDemand = figures.nodes.flatMap((node) => node.onDemand ?? []);
  const races = figures.nodes.flatMap((node) => (node.races === undefined ? [] : [node.races]));
  const lostRaces = figures.nodes.map((node) => node.lostRaces ?? 0);
  const measured = withLosses(resultOf(args, sides), figures);
  const hosts = hostsBySide(machine.topology);
  const recovery = recoveryOf(figures);
  const { config } = machine;
  const cables = cablesOnRoute(machine, hosts);
  const switchCount = cables.length - 1;
  const load =
    args.load === undefined ? undefined : loadOutcomeOf(args, sides as PerfSide[], nodesOf(args), config);
  const row = {
    args,
    ...measured,
    ...(measured.cores === undefined
      ? {}
      : { cores: measured.cores.map((core) => ({ ...core, node: hosts[core.node]! })) }),
    ...(load === undefined ? {} : { load }),
    ...(args.isLatency
      ? { stages: stagesOf(report.operations, config, args, switchCount), ...meanTimeOf(args, report) }
      : {}),
    ...(args.isLatency || load?.isOverload === false
      ? {}
      : {
          bottleneck: bottleneckIn(
            {
              ...{ config, args, hosts, switchCount, figures: figuresBySide(figures, hosts) },
              topology: machine.topology,
              cablesPs: cables.reduce((sum, cable) => sum + cableOf(cable).latencyPs, 0),
              mttLines: mttLinesOf(figuresBySide(report, hosts)),
            },
            measured,
          ),
        }),
    elapsedPs: machine.nowPs,
    isBalanced: checks.balanced,
    ...(args.isLatency
      ? {}
      : { linkBytesPerSecond: Math.min(...cables.map((cable) => linkBound(cable, args))) }),
    interrupts: figures.nodes.map(({ interrupts }) =>
      interrupts.reduce((sum, { delivered }) => sum + delivered, 0),
    ),
    caches: figures.nodes.map(({ hca }) => hca.caches),
    ...(faults === undefined ? {} : { faults }),
    ...(onDemand.length === 0 ? {} : { onDemand }),
    ...(recovery === undefined ? {} : { recovery }),
    ...(races.length === 0 ? {} : { races }),
    ...(lostRaces.every((count) => count === 0) ? {} : { lostRaces }),
    ...(timeline === undefined ? {} : { timeline: await writeTimeline(machine, timeline) }),
    ...(isReported ? { report } : {}),
  };
  await writeCapture(machine, options.analysis);
  return options.analysis === undefined ? row : { ...row, analyses: await machine.analyses() };
}

function meanTimeOf({ usesEvents }: PerfArgs, { operations }: Report): Pick<PerfRow, 'lifePs'> {
  const lifePs = usesEvents ? meanPostedPsOf(operations) : undefined;
  return lifePs === undefined ? {} : { lifePs };
}

function bottleneckIn(
  given: Omit<Measured, 'durationPs' | 'messagesPerSecond' | 'cores'>,
  { result, cores = [] }: Pick<PerfRow, 'result' | 'cores'>,
): Bottleneck {
  const { durationPs, messagesPerSecond } = result as BandwidthRates;
  return bottleneckOf({ ...given, durationPs, messagesPerSecond, cores });
}

/**
 * The arguments as programs of this host can serve them: a region that exceeds the host's memory repeats a stretch of
 * it.
 * @param prefix of an option's name in messages
 * @throws ConfigurationError for more threads than a host has cores, or for messages that exceed its memory
 */
export function fittedToHost(args: PerfArgs, { core, memory }: MachineConfig['host'], prefix = ''): PerfArgs {
  const { threads = 1, region } = args;
  const kind = kindOf(args);
  for (const [name, count] of Object.entries(kind.programCounts(args))) {
    if (count <= core.count) continue;
    const range = `at most the cores of a host, ${core.count}: --set host.core.count=${count}`;
    throw new ConfigurationError(`${prefix}${name}`, count, range);
  }
  const bytes = kind.memoryBytes(args);
  const hostBytes = memory.sizeMib * mebibyte - memory.reservedKib * kibibyte;
  if (bytes <= hostBytes) return args;
  const stretchBytes = region === undefined ? 0 : stretchOf(hostBytes, threads);
  if (region !== undefined && stretchBytes >= Math.max(stretchBytesMin, args.sizeBytes))
    return { ...args, region: { ...region, stretchBytes } };
  const [name, value] = region === undefined ? ['size', args.sizeBytes] : ['region', region.bytes];
  const programs = threads === 1 ? 'a program sends' : `each of ${threads} programs sends`;
  const needed = `memory for what ${programs} and receives within the ${memory.sizeMib} MiB of a host`;
  throw new ConfigurationError(`${prefix}${name}`, value, `${needed}${remedyOf(bytes)}`);
}

const stretchBytesMin = 2 * 1024 ** 2;
const stretchBytesMax = 64 * 1024 ** 2;

/** The largest power of two that leaves half of the host's memory to queues and the driver, up to 64 MiB. */
const stretchOf = (hostBytes: number, threads: number): number =>
  Math.min(stretchBytesMax, 2 ** Math.floor(Math.log2(hostBytes / 2 / threads)));

/** Additional memory of the kernel, the driver and queues. */
const besideMib = 64;

function remedyOf(bytes: number): string {
  const mib = besideMib * (1 + Math.ceil(bytes / mebibyte / besideMib));
  const { max } = parametersByPath.get('host.memory.sizeMib') as { readonly max: number };
  return mib > max ? '' : `: --set host.memory.sizeMib=${mib}`;
}
const kibibyte = 1024;
const mebibyte = 1024 ** 2;

/** Creates for each thread a client at host 0 and a server at its peer. */
export async function loadPrograms(machine: Machine, args: PerfArgs): Promise<void> {
  for (const program of placed(programsOf(args), machine.topology)) await machine.load(program);
}

/** The programs of the sides at their hosts. */
function placed(programs: readonly ProgramOptions[], topology: Topology): ProgramOptions[] {
  const hosts = hostsBySide(topology);
  return programs.map((program) => ({ ...program, node: hosts[program.node]! }));
}

/** The configuration with each cable from the client to the server: one more than switches that a packet passes. */
function cablesOnRoute({ topology, config }: Machine, [client, server]: readonly number[]): MachineConfig[] {
  const routes = fabricRoutesOf(topology, config.machine.routing);
  const [from, to] = [client!, server!].map((node) => ({ node, port: 1 }));
  const ports = portsOnRoute(topology, routes, from!, to!) ?? [from!];
  return ports.map((port) => ({
    ...config,
    wire: wireAt({ config, topology }, port),
    ethernet: ethernetAt({ config, topology }, port),
  }));
}

/** Figures in the order of the sides, renumbered as hosts 0 and 1; switches, which come after all hosts, keep their numbers. */
function figuresBySide({ nodes, wire }: ReportFigures, hosts: readonly number[]): ReportFigures {
  const sideOf = (node: number): number => (hosts.includes(node) ? hosts.indexOf(node) : node);
  const cables = wire.map((cable) => ({ ...cable, from: sideOf(cable.from), to: sideOf(cable.to) }));
  return {
    nodes: hosts.map((node) => nodes[node]!),
    wire: cables.toSorted((left, right) => left.from - right.from),
  };
}

const programsOf = (args: PerfArgs): ProgramOptions[] =>
  kindOf(args)
    .programsOf(args)
    .map(({ module, exportName, ...program }) => ({
      ...program,
      run: { url: programUrl(module), exportName },
    }));

/** The side of each program. */
const nodesOf = (args: PerfArgs): number[] => programsOf(args).map(({ node }) => node);

/** Measurements of a test's client, or of all sides that send and receive, and the work of their cores. */
function resultOf(
  args: PerfArgs,
  sides: readonly (LatencyResult | PerfSide | null)[],
): Pick<PerfRow, 'result' | 'cores' | 'received'> {
  if (args.isLatency) return { result: sides[0] as LatencyResult };
  const all = sides as readonly PerfSide[];
  const counts = all.flatMap(({ received }) => received ?? []);
  const sum = (pick: (side: (typeof counts)[number]) => number): number =>
    counts.reduce((total, side) => total + pick(side), 0);
  const received = { count: sum(({ count }) => count), expected: sum(({ expected }) => expected) };
  const together = combined(all.flatMap((side) => side.result ?? []));
  const result = args.sizes === undefined && args.load === undefined ? together : withoutPeak(together);
  const nodes = nodesOf(args);
  return {
    result: {
      ...kindOf(args).resultOf(result, all),
      ...(args.load === undefined ? {} : loadedTimes(all)),
    },
    cores: all.map(({ cycles }, index) => ({ node: nodes[index]!, cycles })),
    ...(counts.length === 0 ? {} : { received }),
  };
}

/** Why messages are missing, as far as the receiving devices know. */
function withLosses<R extends Pick<PerfRow, 'received'>>(measured: R, { nodes }: ReportFigures): R {
  const { received } = measured;
  if (received === undefined || received.count >= received.expected) return measured;
  const sum = (pick: (node: NodeReport) => number | undefined): number =>
    nodes.reduce((total, node) => total + (pick(node) ?? 0), 0);
  const lost = {
    withoutReceive: sum(({ hca }) => hca.transport['unreliableNoReceive']),
    withoutPage: sum(({ onDemand: pages }) => pages?.device.droppedPackets),
  };
  return { ...measured, received: { ...received, lost } };
}

const withoutPeak = ({ peakBytesPerSecond: _, ...rates }: BandwidthRates): BandwidthRates => rates;

/**
 * Combines the results of several senders that began together: the bytes of all until the last one finished; together
 * they have no peak.
 */
function combined(results: readonly BandwidthResult[]): BandwidthRates {
  const [first] = results;
  if (results.length === 1) return first!;
  const durationPs = Math.max(...results.map((each) => each.durationPs));
  const sum = (rate: (each: BandwidthResult) => number): number =>
    results.reduce((total, each) => total + (rate(each) * each.durationPs) / durationPs, 0);
  return {
    iterations: first!.iterations,
    durationPs,
    averageBytesPerSecond: sum(({ averageBytesPerSecond }) => averageBytesPerSecond),
    messagesPerSecond: sum(({ messagesPerSecond }) => messagesPerSecond),
  };
}

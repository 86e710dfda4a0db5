/** One run of `hca fabric`: traffic of a pattern over the machine's topology, and the figures of its flows and switches. */
import { ConfigurationError } from '../../base/index.ts';
import {
  configuredOf,
  Machine,
  type MachineOptions,
  notificationsOf,
  type Report,
  wireAt,
} from '../../machine/index.ts';
import { farPortsOf, type Topology } from '../../machine/topology/index.ts';
import { RunError } from '../../sim/index.ts';
import { linkBound } from '../bottleneck/index.ts';
import {
  type FabricArgs,
  type FabricSide,
  type Flow,
  type FlowResult,
  flowsOf,
  perfArgsOf,
  type ReductionSide,
} from '../workloads/index.ts';
import { keepingCapture, writeCapture } from './capture-output.ts';
import { programUrl } from './program-url.ts';
import { runMachine } from './run.ts';
import { type TimelineOrder, type TimelineWritten, writeTimeline } from './timeline-files.ts';

export interface FabricOrder {
  /** Its capture, if any, is written to the capture's file. */
  readonly machine: MachineOptions;
  readonly args: FabricArgs;
  /** Its recordings, and their files. */
  readonly timeline?: TimelineOrder;
}

/** Times of messages from post to completion: see {@link FabricRow.completesEarly}. */
export interface MessageTimes {
  readonly medianPs: number;
  readonly p99Ps: number;
  readonly maxPs: number;
}

/** One flow of the row, with the times of its messages. */
export interface FlowRow extends Flow, MessageTimes {
  /** Payload over the time from the common start until the receiver has everything. */
  readonly bytesPerSecond: number;
  readonly durationPs: number;
}

/** One output of a switch. */
export interface OutputRow {
  readonly switch: number;
  readonly port: number;
  /** Where its cable leads: a host or another switch, by node. */
  readonly to: number;
  readonly packets: number;
  /** Share of the time of the traffic, from the common start to the last end, for which it sent, and for which a packet waited for credits or the end of a pause. */
  readonly busyShare: number;
  readonly farWaitShare: number;
  /** Most bytes that waited at this port as an input. */
  readonly bufferedBytesMax: number;
  /** Packets that came by this port and were lost, with copies that its queue had no room for or did not send; and packets that it marked. */
  readonly drops: number;
  readonly marks: number;
  /** Drops among them that a pause without end caused: see switch.ethernet.pauseWatchdogMs. */
  readonly pauseDrops: number;
}

export interface FabricRow {
  readonly args: FabricArgs;
  /** Empty for an all-reduce, whose hosts act together. */
  readonly flows: readonly FlowRow[];
  readonly outputs: readonly OutputRow[];
  /** The host's port that waited longest for credits or the end of a pause: its share of the time of the traffic. */
  readonly hostWaitShare: number;
  /** Congestion notifications that cards sent for marked packets, in CNPs and in responses; 0 without congestion control. */
  readonly cnps: number;
  /** Times of the messages of all flows, or of the operations of an all-reduce. */
  readonly messageTimes: MessageTimes;
  /** Whether messages complete when TCP has them, before the receiver does: WRITEs of iWARP. The times of flows include their arrival. */
  readonly completesEarly: boolean;
  /** Payload of all flows over the time until the last has ended; of an all-reduce: its vector over the mean time. */
  readonly bytesPerSecond: number;
  /** Payload that the slowest cable of a host could carry in such messages, in bytes per second. */
  readonly cableBytesPerSecond: number;
  /** Jain's index of the flows' rates: 1 if all are equal, 1/n if one has all. */
  readonly fairness: number;
  /** From the common start until the last flow has ended; of an all-reduce: all its operations, without barriers. */
  readonly durationPs: number;
  readonly elapsedPs: number;
  readonly isBalanced: boolean;
  /** Whether every receiver found the bytes that were sent. */
  readonly isEqual: boolean;
  /** The written recordings, if a timeline was requested. */
  readonly timeline?: TimelineWritten;
  readonly report: Report;
}

/**
 * @returns the row
 * @throws ConfigurationError for a pattern that needs more hosts than the topology has, or hosts that are not joined
 */
export default async function runFabric({
  machine: options,
  args,
  timeline,
}: FabricOrder): Promise<FabricRow> {
  const { config, topology } = configuredOf(options);
  checkLevels(args, config.hca.capability.linkLayer);
  checkJoined(topology, flowsOf(args));
  await using machine = await Machine.create({
    ...options,
    ...(timeline === undefined ? {} : { analysis: { ...options.analysis, timeline: timeline.options } }),
  });
  await loadTraffic(machine, args);
  await keepingCapture(machine, options.analysis, () => runTraffic(machine));
  const measured =
    args.pattern === 'all-reduce'
      ? reductionOf(args, await machine.results<ReductionSide[]>())
      : trafficOf(args, await machine.results<FabricSide[]>());
  const report = await machine.report();
  const { spanPs, ...figures } = measured;
  await writeCapture(machine, options.analysis);
  return {
    args,
    ...figures,
    outputs: outputsOf(report, spanPs),
    hostWaitShare: Math.max(...report.wire.map((wire) => hostWaitPsOf(args, wire))) / spanPs,
    cableBytesPerSecond: slowestCable(machine, args),
    completesEarly: completesEarly(machine, args),
    cnps: report.nodes.reduce((sum, { hca }) => sum + notificationCountOf(hca), 0),
    elapsedPs: machine.nowPs,
    isBalanced: report.checks.balanced,
    ...(timeline === undefined ? {} : { timeline: await writeTimeline(machine, timeline) }),
    report,
  };
}

/** Loads the programs of all hosts that take part. */
export async function loadTraffic(machine: Machine, args: FabricArgs): Promise<void> {
  const run = programOf(args);
  for (let node = 0; node < args.hostCount; node++)
    await machine.load({ node, run, name: `host${node}`, args: { ...args } });
}

/** A sum of an all-reduce ends with receives, which complete when the data are there. */
const completesEarly = ({ config }: Machine, { verb, pattern }: FabricArgs): boolean =>
  verb === 'write' && pattern !== 'all-reduce' && config.hca.capability.transport === 'iwarp';

/** Payload rate of the slowest cable in the first port of a host, for these messages. */
function slowestCable(
  { config, topology }: Pick<Machine, 'config' | 'topology'>,
  { verb, sizeBytes, hostCount }: FabricArgs,
): number {
  const asked = perfArgsOf({ test: verb === 'write' ? 'write-bw' : 'read-bw', size: sizeBytes });
  const rates = Array.from({ length: hostCount }, (_, node) => {
    const wire = wireAt({ config, topology }, { node, port: 1 });
    return linkBound({ ...config, wire }, asked);
  });
  return Math.min(...rates);
}

const programOf = ({ pattern }: FabricArgs): { readonly url: string; readonly exportName: string } =>
  pattern === 'all-reduce'
    ? { url: programUrl('fabric-reduction').href, exportName: 'reducingHost' }
    : { url: programUrl('fabric-traffic').href, exportName: 'fabricHost' };

/** Figures that the programs measure. */
interface Measured
  extends Pick<
    FabricRow,
    'flows' | 'messageTimes' | 'bytesPerSecond' | 'fairness' | 'durationPs' | 'isEqual'
  > {
  /** From the common start to the end of the last operation. */
  readonly spanPs: number;
}

function trafficOf(args: FabricArgs, sides: readonly FabricSide[]): Measured {
  const flows = inOrder(
    args,
    sides.flatMap((side) => side.flows),
  );
  const durationPs = Math.max(...flows.map((flow) => flow.durationPs));
  const rates = flows.map((flow) => flowRowOf(flow, args));
  return {
    flows: rates,
    messageTimes: timesOf(flows.flatMap(({ messagePs }) => messagePs)),
    bytesPerSecond: perSecond(args.sizeBytes * args.messages * flows.length, durationPs),
    fairness: fairnessOf(rates.map(({ bytesPerSecond }) => bytesPerSecond)),
    durationPs,
    spanPs: durationPs,
    isEqual: sides.every(({ wrong }) => wrong.length === 0),
  };
}

/** An operation lasts from the moment at which the last host begins it until the last one has the sums. */
function reductionOf({ sizeBytes, messages }: FabricArgs, sides: readonly ReductionSide[]): Measured {
  const times = Array.from({ length: messages }, (_, round) => {
    const began = sides.map((side) => side.times[round]![0]);
    const ended = sides.map((side) => side.times[round]![1]);
    return Math.max(...ended) - Math.max(...began);
  });
  const durationPs = times.reduce((sum, ps) => sum + ps, 0);
  return {
    flows: [],
    messageTimes: timesOf(times),
    bytesPerSecond: perSecond(sizeBytes * messages, durationPs),
    fairness: 1,
    durationPs,
    spanPs: Math.max(...sides.map(({ startPs, times: own }) => own.at(-1)![1] - startPs)),
    isEqual: sides.every(({ isRight }) => isRight),
  };
}

/** @throws ConfigurationError for service levels where there are none */
function checkLevels({ serviceLevel, victimLevel }: FabricArgs, linkLayer: string): void {
  for (const [name, level] of Object.entries({ sl: serviceLevel, victimSl: victimLevel }))
    if (level !== undefined && linkLayer === 'ethernet')
      throw new ConfigurationError(name, level, 'left out where ports are of Ethernet: they have priorities');
}

/** @throws ConfigurationError for a flow between hosts whose first ports neither a cable nor switches join */
function checkJoined(topology: Topology, flows: readonly Flow[]): void {
  for (const { from, to } of flows) {
    const reached = farPortsOf(topology, { node: from, port: 1 });
    if (reached.some(({ node, port }) => node === to && port === 1)) continue;
    throw new ConfigurationError(
      `flow from host ${from}`,
      `to host ${to}`,
      'hosts whose first ports are joined by a cable or by switches',
    );
  }
}

/**
 * Runs to the end.
 * @throws RunError that also says so if switches dropped packets which had waited too long, had no route, or still wait, if hosts dropped
 *   packets of others, and which faults fired
 */
async function runTraffic(machine: Machine): Promise<void> {
  try {
    await runMachine(machine);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const report = await machine.report();
    const reasons = [reasonIn(report), foreignIn(report), ...firedIn(report)].filter(
      (reason) => reason !== undefined,
    );
    if (reasons.length === 0) throw error;
    throw new RunError([error.message, ...reasons].join('. '), { cause: error });
  }
}

function foreignIn({ nodes }: Report): string | undefined {
  const count = nodes.reduce((sum, { hca }) => sum + (hca.violations['packetForeignLid'] ?? 0), 0);
  return count === 0 ? undefined : `Hosts dropped ${count} packets to LIDs of other hosts (packetForeignLid)`;
}

const firedIn = ({ faults = [] }: Report): string[] =>
  faults
    .filter(({ fired }) => fired > 0)
    .map(({ fault, fired }) => `The fault ${fault} fired ${fired === 1 ? 'once' : `${fired} times`}`);

const circle = 'links that wait for each other in a circle do that';
const upDown = `${circle}, and machine.routing=up-down has none`;
const tree = `${circle}, and switch.ethernet.multipath=tree has none`;

/** The reason for which switches did not forward packets. */
function reasonIn({ switches = [] }: Report): string | undefined {
  const ports = switches.flatMap((each) => each.ports);
  const sumOf = (pick: (port: (typeof ports)[number]) => number | undefined): number =>
    ports.reduce((sum, port) => sum + (pick(port) ?? 0), 0);
  const old = sumOf(({ notForwarded }) => notForwarded['hoqLife']);
  const held = sumOf(({ output }) => output?.watchdogDrops);
  const lost = sumOf(({ notForwarded }) => (notForwarded['noRoute'] ?? 0) + (notForwarded['ownPort'] ?? 0));
  const waiting = sumOf(({ waitingPackets }) => waitingPackets);
  if (old > 0)
    return `The switches dropped ${old} packets that had waited for credits longer than HOQLife: ${upDown}`;
  if (held > 0)
    return `The switches dropped ${held} packets whose pause did not end (switch.ethernet.pauseWatchdogMs): ${tree}`;
  if (waiting > 0)
    return `${waiting} packets still wait in the switches: ${switches.some(({ buffer }) => buffer) ? tree : upDown}`;
  return lost > 0 ? `The switches dropped ${lost} packets without a route` : undefined;
}

/** Says how a row is wrong, or nothing. */
export function fabricFailure({ isEqual, isBalanced }: FabricRow): string | undefined {
  if (!isEqual) return 'bytes received differ from those sent';
  return isBalanced ? undefined : 'the ledgers of the run do not balance';
}

const inOrder = (args: FabricArgs, results: readonly FlowResult[]): FlowResult[] =>
  flowsOf(args).map((flow) => results.find(({ from, to }) => from === flow.from && to === flow.to)!);

const perSecond = (bytes: number, durationPs: number): number => (bytes * 1e12) / durationPs;

function flowRowOf(
  { from, to, durationPs, messagePs }: FlowResult,
  { sizeBytes, messages }: FabricArgs,
): FlowRow {
  return {
    from,
    to,
    bytesPerSecond: perSecond(sizeBytes * messages, durationPs),
    durationPs,
    ...timesOf(messagePs),
  };
}

function timesOf(messagePs: readonly number[]): MessageTimes {
  const times = messagePs.toSorted((left, right) => left - right);
  return { medianPs: quantileOf(times, 0.5), p99Ps: quantileOf(times, 0.99), maxPs: times.at(-1)! };
}

/** The smallest time that at least this share of the times does not exceed. @param times ascending */
export const quantileOf = (times: readonly number[], share: number): number =>
  times[Math.max(0, Math.ceil(share * times.length) - 1)]!;

/** Jain, Chiu, Hawe: A quantitative measure of fairness (1984): the square of the sum over n times the sum of the squares. */
export function fairnessOf(rates: readonly number[]): number {
  const sum = rates.reduce((total, rate) => total + rate, 0);
  const squares = rates.reduce((total, rate) => total + rate * rate, 0);
  return squares === 0 ? 1 : (sum * sum) / (rates.length * squares);
}

/** Drops that senders must make good: all of InfiniBand; a flooded frame may end at a switch, and is none. */
const lossesOf = (notForwarded: Readonly<Record<string, number>>, floods: boolean): number =>
  Object.entries(notForwarded).reduce(
    (sum, [reason, count]) => (floods && reason !== 'noRoom' ? sum : sum + count),
    0,
  );

/** Time for which a host's port could not send for lack of credits or in a pause. */
const hostWaitPsOf = (
  { hostCount }: FabricArgs,
  { from, creditWaitPs, pauseWaitPs = 0 }: Report['wire'][number],
): number => (from < hostCount ? creditWaitPs + pauseWaitPs : 0);

/** Notifications that a card sent for marked packets; 0 without congestion control. */
function notificationCountOf({ congestion }: Report['nodes'][number]['hca']): number {
  if (congestion === undefined) return 0;
  const { cnps, becns } = notificationsOf(congestion);
  return cnps + becns;
}

/** Outputs of all switches, in order. */
function outputsOf({ switches = [], wire }: Report, spanPs: number): OutputRow[] {
  return switches.flatMap(({ node, ports, buffer }) =>
    ports.map(({ port, bufferedBytesMax, notForwarded, output, markedPackets = 0 }) => {
      const row = wire.find(({ from, fromPort = 1 }) => from === node && fromPort === port)!;
      return {
        switch: node,
        port,
        to: row.to,
        packets: row.packets,
        busyShare: row.busyPs / spanPs,
        farWaitShare: (row.creditWaitPs + (row.pauseWaitPs ?? 0)) / spanPs,
        bufferedBytesMax,
        drops:
          lossesOf(notForwarded, buffer !== undefined) +
          (output?.queueDrops ?? 0) +
          (output?.watchdogDrops ?? 0),
        pauseDrops: output?.watchdogDrops ?? 0,
        marks: output?.markedFrames ?? markedPackets,
      };
    }),
  );
}

/** Figures of a run of `hca fabric`: of its flows, from the measurements of the programs, and of the outputs of the switches, from the report. */
import { type Report, wireAt } from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import type { Topology } from '../../machine/topology/index.ts';
import { linkBound } from '../bottleneck/index.ts';
import {
  type FabricArgs,
  type FabricSide,
  type Flow,
  type FlowResult,
  flowsOf,
  perfArgsOf,
  type ReductionSide,
  type RoundsSide,
  workersOf,
} from '../workloads/index.ts';

/** Times of messages from post to completion: see `FabricRow.completesEarly`. */
interface MessageTimes {
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
  /** Share of the time from the common start of the traffic to its last end for which the port sent. */
  readonly busyShare: number;
  /** Share of the same time for which a packet waited for credits or for the end of a pause. */
  readonly farWaitShare: number;
  /** Most bytes that waited at this port as an input. */
  readonly bufferedBytesMax: number;
  /** Packets that came by this port and were lost, and copies that its queue had no room for or did not send. */
  readonly drops: number;
  /** Packets that it marked. */
  readonly marks: number;
  /** Drops among them that a pause without end caused: see switch.ethernet.pauseWatchdogMs. */
  readonly pauseDrops: number;
}

/** A node by its kind and number: idle hosts are hosts, too. */
export const nodeNameOf = ({ switches = [] }: Pick<Report, 'switches'>, node: number): string =>
  switches.some((each) => each.node === node) ? `switch ${node}` : `host ${node}`;

/** Figures that the programs measure. */
export interface Measured {
  /** Empty for an all-reduce and for parameter servers, whose hosts act together. */
  readonly flows: readonly FlowRow[];
  /** Times of the messages of all flows, of the operations of an all-reduce, or of rounds. */
  readonly messageTimes: MessageTimes;
  /** Payload of all flows over the time until the last has ended; of an all-reduce: its vector over the mean time; of parameter servers: the vectors of all workers over the mean time of a round. */
  readonly bytesPerSecond: number;
  /** Jain's index of the flows' rates: 1 if all are equal, 1/n if one has all. */
  readonly fairness: number;
  /** From the common start until the last flow has ended; of an all-reduce or rounds: all of them, without barriers. */
  readonly durationPs: number;
  /** Whether every receiver found the bytes that were sent. */
  readonly isEqual: boolean;
  /** From the common start to the end of the last operation; of rounds with parameter servers: as `durationPs`. */
  readonly spanPs: number;
  /** Present for SENDs: the QPs and receive queues of the host that has most. */
  readonly queues?: { readonly qpCount: number; readonly receiveQueueCount: number };
  /** Present for parameter servers: medians of the two phases of a round. */
  readonly phases?: { readonly pushPs: number; readonly pullPs: number };
}

/** The sending port of a cable that was busy longest. */
export interface BusiestPort {
  readonly from: number;
  readonly fromPort: number;
  readonly to: number;
  /** Share of the time of the traffic for which it sent. */
  readonly busyShare: number;
}

export function trafficOf(args: FabricArgs, sides: readonly FabricSide[]): Measured {
  const flows = inOrder(
    args,
    sides.flatMap((side) => side.flows.map((flow) => arrivedOf(flow, sides))),
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
    ...(args.verb === 'send' ? { queues: queuesOf(sides) } : {}),
  };
}

const queuesOf = (sides: readonly FabricSide[]): NonNullable<Measured['queues']> => ({
  qpCount: Math.max(...sides.map(({ qpCount = 0 }) => qpCount)),
  receiveQueueCount: Math.max(...sides.map(({ receiveQueueCount = 0 }) => receiveQueueCount)),
});

/** A flow of SENDs lasts until its receiver has its last message. */
function arrivedOf(flow: FlowResult, sides: readonly FabricSide[]): FlowResult {
  const arrival = sides
    .flatMap(({ arrivals = [] }) => arrivals)
    .find(({ from, to }) => from === flow.from && to === flow.to);
  return arrival === undefined ? flow : { ...flow, durationPs: arrival.durationPs };
}

/** An operation lasts from the moment at which the last host begins it until the last one has the sums. */
export function reductionOf({ sizeBytes, messages }: FabricArgs, sides: readonly ReductionSide[]): Measured {
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

/** A phase lasts from its common start until the last worker has ended it. */
export function roundsOf(args: FabricArgs, sides: readonly RoundsSide[]): Measured {
  const phase = (which: 0 | 1): number[] =>
    Array.from({ length: args.messages }, (_, round) =>
      Math.max(...sides.map(({ rounds }) => rounds[round]![which])),
    );
  const [pushes, pulls] = [phase(0), phase(1)];
  const times = pushes.map((pushPs, round) => pushPs + pulls[round]!);
  const durationPs = times.reduce((sum, ps) => sum + ps, 0);
  return {
    flows: [],
    messageTimes: timesOf(times),
    bytesPerSecond: perSecond(args.sizeBytes * args.messages * workersOf(args).length, durationPs),
    fairness: 1,
    durationPs,
    spanPs: durationPs,
    isEqual: sides.every(({ wrong }) => wrong.length === 0),
    phases: { pushPs: timesOf(pushes).medianPs, pullPs: timesOf(pulls).medianPs },
  };
}

/** The port that sent longest, of hosts and switches; the first of several. */
export function busiestOf({ wire }: Pick<Report, 'wire'>, spanPs: number): BusiestPort {
  const {
    from,
    fromPort = 1,
    to,
    busyPs,
  } = wire.reduce((most, row) => (row.busyPs > most.busyPs ? row : most));
  return { from, fromPort, to, busyShare: busyPs / spanPs };
}

/** Payload rate of the slowest cable in the first port of a host, for these messages. */
export function slowestCable(
  { config, topology }: { readonly config: MachineConfig; readonly topology: Topology },
  { verb, sizeBytes, hostCount, connection = 'RC' }: FabricArgs,
): number {
  const test = perfArgsOf({ test: `${verb}-bw`, size: sizeBytes });
  const asked = connection === 'RC' ? test : { ...test, connection };
  const rates = Array.from({ length: hostCount }, (_, node) => {
    const wire = wireAt({ config, topology }, { node, port: 1 });
    return linkBound({ ...config, wire }, asked);
  });
  return Math.min(...rates);
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

/** Reasons for which an Ethernet switch loses a frame; for other reasons a flooded frame may end at a switch. */
const losses: ReadonlySet<string> = new Set(['noRoom', 'wrongFcs']);

/** Drops that senders must make good: all of InfiniBand; a flooded frame may end at a switch, and is none. */
const lossesOf = (notForwarded: Readonly<Record<string, number>>, floods: boolean): number =>
  Object.entries(notForwarded).reduce(
    (sum, [reason, count]) => (floods && !losses.has(reason) ? sum : sum + count),
    0,
  );

/** Outputs of all switches, in order. */
export function outputsOf({ switches = [], wire }: Report, spanPs: number): OutputRow[] {
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

/** One run of `hca fabric`: traffic of a pattern over the machine's topology, and the figures of its flows and switches. */
import { ConfigurationError } from '../../base/index.ts';
import { configuredOf, Machine, type MachineOptions, type Report } from '../../machine/index.ts';
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
} from '../workloads/index.ts';
import { programUrl } from './program-url.ts';
import { runMachine } from './run.ts';

export interface FabricOrder {
  readonly machine: MachineOptions;
  readonly args: FabricArgs;
}

/** Times of messages from post to completion. */
export interface MessageTimes {
  readonly medianPs: number;
  readonly p99Ps: number;
  readonly maxPs: number;
}

/** One flow of the row, with the times of its messages. */
export interface FlowRow extends Flow, MessageTimes {
  /** Payload over the time from the common start to its last completion. */
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
  /** Share of the time of the traffic for which it sent, and for which a packet waited for credits or the end of a pause. */
  readonly busyShare: number;
  readonly farWaitShare: number;
  /** Most bytes that waited at this port as an input. */
  readonly bufferedBytesMax: number;
  /** Packets that came by this port and were lost, with copies that its queue had no room for; and packets that it marked. */
  readonly drops: number;
  readonly marks: number;
}

export interface FabricRow {
  readonly args: FabricArgs;
  readonly flows: readonly FlowRow[];
  readonly outputs: readonly OutputRow[];
  /** Times of the messages of all flows. */
  readonly messageTimes: MessageTimes;
  /** Payload of all flows over the time until the last has ended. */
  readonly bytesPerSecond: number;
  /** Payload that one cable could carry in such messages, in bytes per second. */
  readonly cableBytesPerSecond: number;
  /** Jain's index of the flows' rates: 1 if all are equal, 1/n if one has all. */
  readonly fairness: number;
  /** From the common start until the last flow has ended. */
  readonly durationPs: number;
  readonly elapsedPs: number;
  readonly isBalanced: boolean;
  /** Whether every receiver found the bytes that were sent. */
  readonly isEqual: boolean;
  readonly report: Report;
}

/**
 * @returns the row
 * @throws ConfigurationError for a pattern that needs more hosts than the topology has, or hosts that are not joined
 */
export default async function runFabric({ machine: options, args }: FabricOrder): Promise<FabricRow> {
  checkJoined(configuredOf(options).topology, flowsOf(args));
  await using machine = await Machine.create(options);
  const run = { url: programUrl('fabric-traffic').href, exportName: 'fabricHost' };
  for (let node = 0; node < args.hostCount; node++)
    await machine.load({ node, run, name: `host${node}`, args: { ...args } });
  await runTraffic(machine);
  const sides = await machine.results<FabricSide[]>();
  const report = await machine.report();
  const flows = inOrder(
    args,
    sides.flatMap((side) => side.flows),
  );
  const durationPs = Math.max(...flows.map((flow) => flow.durationPs));
  const rates = flows.map((flow) => flowRowOf(flow, args));
  const asked = perfArgsOf({ test: args.verb === 'write' ? 'write-bw' : 'read-bw', size: args.sizeBytes });
  return {
    args,
    flows: rates,
    outputs: outputsOf(report, durationPs),
    messageTimes: timesOf(flows.flatMap(({ messagePs }) => messagePs)),
    bytesPerSecond: perSecond(args.sizeBytes * args.messages * flows.length, durationPs),
    cableBytesPerSecond: linkBound(machine.config, asked),
    fairness: fairnessOf(rates.map(({ bytesPerSecond }) => bytesPerSecond)),
    durationPs,
    elapsedPs: machine.nowPs,
    isBalanced: report.checks.balanced,
    isEqual: sides.every(({ wrong }) => wrong.length === 0),
    report,
  };
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
 * @throws RunError that also says so if switches dropped packets which had waited too long for credits, or had no route
 */
async function runTraffic(machine: Machine): Promise<void> {
  try {
    await runMachine(machine);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const report = await machine.report();
    const [old, lost] = [droppedFor(report, 'hoqLife'), droppedFor(report, 'noRoute')];
    if (old + lost === 0) throw error;
    const reason =
      old > 0
        ? `The switches dropped ${old} packets that had waited for credits longer than HOQLife: routes whose links wait for each other in a circle do that, and machine.routing=up-down has none`
        : `The switches dropped ${lost} packets without a route`;
    throw new RunError(`${error.message}. ${reason}`, { cause: error });
  }
}

/** Packets that switches dropped for a reason. */
const droppedFor = ({ switches = [] }: Report, reason: string): number =>
  switches
    .flatMap(({ ports }) => ports)
    .reduce((sum, { notForwarded }) => sum + (notForwarded[reason] ?? 0), 0);

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

/** Drops that senders must make good; a flooded copy that ends at the last switch of the tree is none. */
const lossReasons = ['noRoom', 'hoqLife'];

/** Outputs of all switches, in order. */
function outputsOf({ switches = [], wire }: Report, durationPs: number): OutputRow[] {
  return switches.flatMap(({ node, ports }) =>
    ports.map(({ port, bufferedBytesMax, notForwarded, output }) => {
      const row = wire.find(({ from, fromPort = 1 }) => from === node && fromPort === port)!;
      return {
        switch: node,
        port,
        to: row.to,
        packets: row.packets,
        busyShare: row.busyPs / durationPs,
        farWaitShare: (row.creditWaitPs + (row.pauseWaitPs ?? 0)) / durationPs,
        bufferedBytesMax,
        drops: lossReasons.reduce(
          (sum, reason) => sum + (notForwarded[reason] ?? 0),
          output?.queueDrops ?? 0,
        ),
        marks: output?.markedFrames ?? 0,
      };
    }),
  );
}

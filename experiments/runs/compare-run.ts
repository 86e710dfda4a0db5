/** One row of a comparison: a whole simulation. Also the task of the pool's workers, which receive and return plain data. */

import {
  type FaultReport,
  type HostSpent,
  Machine,
  type MachineOptions,
  type Report,
  type ReportFigures,
  type WireReport,
} from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { hostsBySide } from '../../machine/topology/index.ts';
import { ethernetByteTime, infinibandFigures } from '../../wire/index.ts';
import {
  type CompareArgs,
  type CompareNetwork,
  type ComparePath,
  machineOfRow,
  messageCountOf,
  type SideResult,
  type SideTransfer,
} from '../workloads/index.ts';
import { announcedFigures } from './announced-figures.ts';
import { programUrl } from './program-url.ts';
import { runMachine } from './run.ts';
import { type TimelineOrder, type TimelineWritten, writeTimeline } from './timeline-files.ts';

export interface CompareOrder {
  /** Base parameters, to which the path's own are added. */
  readonly machine: MachineOptions;
  readonly args: CompareArgs;
  /** Its recordings, and their files. */
  readonly timeline?: TimelineOrder;
}

export interface CompareRow {
  readonly path: ComparePath;
  /** The network that carried an RDMA path; left out if it was the machine's own. */
  readonly network?: CompareNetwork;
  readonly sizeBytes: number;
  readonly messages: number;
  readonly totalBytes: number;
  /** Latency of a single message: until the receiver has it, or the initiator its completion. */
  readonly latencyPs: number;
  /** Duration of all messages in sequence. */
  readonly durationPs: number;
  readonly bytesPerSecond: number;
  /** Costs of all messages at host 0 (has the bytes) and at the host cabled to it (receives them). */
  readonly hosts: readonly [HostSpent, HostSpent];
  /** Whether each host's program took part. */
  readonly isActive: readonly [boolean, boolean];
  readonly sha256: readonly [string, string];
  readonly isEqual: boolean;
  readonly isBalanced: boolean;
  /** Requested faults, and the number of occurrences of each; left out if there were none. */
  readonly faults?: readonly FaultReport[];
  /** Left out unless networks are compared. */
  readonly cable?: CableRow;
  readonly report?: Report;
  /** The written recordings, if a timeline was requested. */
  readonly timeline?: TimelineWritten;
}

/** The cable during the stream: from its start, until delayed acknowledgements have left too. */
export interface CableRow {
  /** Data rate of the cable, each way. */
  readonly bytesPerSecond: number;
  /** Sent by host 0 and by the host cabled to it. */
  readonly sent: readonly [CableSent, CableSent];
}

export interface CableSent {
  /** Packets or frames, with retransmitted ones. */
  readonly packets: number;
  /** Packets with credits of InfiniBand, PAUSE frames of Ethernet; not included in `packets`. */
  readonly flowControlPackets: number;
  /** Bytes of all of them, with what frames them: on Ethernet preamble, check sequence and gap. */
  readonly linkBytes: number;
}

/** The programs: the first at host 0, the second at its peer. */
const sides = ['Sender', 'Receiver'] as const;

export default async function runCompare({
  machine: options,
  args,
  timeline,
}: CompareOrder): Promise<CompareRow> {
  const set = { ...options.set, ...machineOfRow(args) };
  await using machine = await Machine.create({
    ...options,
    set,
    ...(timeline === undefined ? {} : { analysis: { ...options.analysis, timeline: timeline.options } }),
  });
  const hosts = hostsBySide(machine.topology);
  for (const [side, role] of sides.entries()) {
    const run = { url: programUrl('compare-sides'), exportName: `compare${role}` };
    await machine.load({ node: hosts[side]!, name: role.toLowerCase(), run, args });
  }
  const figures = args.countsCable === true ? await announcedFigures(machine, sides.length) : undefined;
  await runMachine(machine);
  const [sender, receiver] = await machine.results<[SideResult, SideResult]>();
  const { checks, faults } = await machine.report();
  const durationPs = durationOf(sender.stream, receiver.stream);
  const latencies = sender.latencies.map((transfer, round) =>
    durationOf(transfer, receiver.latencies[round]!),
  );
  return {
    path: args.path,
    ...(args.network === undefined ? {} : { network: args.network }),
    sizeBytes: args.sizeBytes,
    messages: messageCountOf(args),
    totalBytes: args.totalBytes,
    // The last one, which has no first-time costs.
    latencyPs: latencies.at(-1) ?? durationPs,
    durationPs,
    bytesPerSecond: durationPs === 0 ? 0 : (args.totalBytes / durationPs) * 1e12,
    hosts: [sender.stream.spent, receiver.stream.spent],
    isActive: [sender.stream.isActive, receiver.stream.isActive],
    sha256: [sender.digest, receiver.digest],
    isEqual: sender.digest === receiver.digest,
    isBalanced: checks.balanced,
    ...(figures === undefined ? {} : { cable: cableRowOf(machine.config, figures, hosts) }),
    ...(faults === undefined ? {} : { faults }),
    ...(timeline === undefined ? {} : { timeline: await writeTimeline(machine, timeline) }),
  };
}

/** Until the receiver has everything; a passive receiver has it when the sender has its completions. */
function durationOf(sender: SideTransfer, receiver: SideTransfer): number {
  return (receiver.isActive ? receiver : sender).endPs - sender.startPs;
}

/** Sums over all cables between the two hosts, or from each to its switch: no other host sends. */
function cableRowOf(config: MachineConfig, { wire }: ReportFigures, hosts: readonly number[]): CableRow {
  const sentBy = (from: number, to: number): CableSent => {
    const rows = wire.filter(
      (row) => row.from === hosts[from] && (row.to === hosts[to] || !hosts.includes(row.to)),
    );
    const sum = (pick: (row: WireReport) => number): number =>
      rows.reduce((total, row) => total + pick(row), 0);
    return {
      packets: sum(({ packets }) => packets),
      flowControlPackets: sum(({ flowControlPackets }) => flowControlPackets),
      linkBytes: sum(({ linkBytes }) => linkBytes),
    };
  };
  const isInfiniband = config.machine.adapter === 'hca' && config.hca.capability.linkLayer === 'infiniband';
  const { numeratorPs, denominator } = isInfiniband
    ? infinibandFigures(config.wire).byteTime
    : ethernetByteTime(config.ethernet);
  return { bytesPerSecond: (1e12 * denominator) / numeratorPs, sent: [sentBy(0, 1), sentBy(1, 0)] };
}

/** One row of a comparison: a whole simulation. Also the task of the pool's workers, which receive and return plain data. */

import {
  type FaultReport,
  type HostSpent,
  Machine,
  type MachineOptions,
  type Report,
} from '../../machine/index.ts';
import { hostsBySide } from '../../machine/topology/index.ts';
import {
  type CompareArgs,
  type ComparePath,
  machineOf,
  messageCountOf,
  type SideResult,
  type SideTransfer,
} from '../workloads/index.ts';
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
  readonly report?: Report;
  /** The written recordings, if a timeline was requested. */
  readonly timeline?: TimelineWritten;
}

export default async function runCompare({
  machine: options,
  args,
  timeline,
}: CompareOrder): Promise<CompareRow> {
  const set = { ...options.set, ...machineOf(args.path) };
  await using machine = await Machine.create({
    ...options,
    set,
    ...(timeline === undefined ? {} : { analysis: { ...options.analysis, timeline: timeline.options } }),
  });
  const hosts = hostsBySide(machine.topology);
  for (const [side, role] of ['Sender', 'Receiver'].entries()) {
    const run = { url: programUrl('compare-sides'), exportName: `compare${role}` };
    await machine.load({ node: hosts[side]!, name: role.toLowerCase(), run, args });
  }
  await runMachine(machine);
  const [sender, receiver] = await machine.results<[SideResult, SideResult]>();
  const { checks, faults } = await machine.report();
  const durationPs = durationOf(sender.stream, receiver.stream);
  const latencies = sender.latencies.map((transfer, round) =>
    durationOf(transfer, receiver.latencies[round]!),
  );
  return {
    path: args.path,
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
    ...(faults === undefined ? {} : { faults }),
    ...(timeline === undefined ? {} : { timeline: await writeTimeline(machine, timeline) }),
  };
}

/** Until the receiver has everything; a passive receiver has it when the sender has its completions. */
function durationOf(sender: SideTransfer, receiver: SideTransfer): number {
  return (receiver.isActive ? receiver : sender).endPs - sender.startPs;
}

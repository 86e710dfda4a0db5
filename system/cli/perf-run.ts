/** One row of `hca perf`: a whole simulation. Also the task of the pool's workers, which get and return plain data. */
import type { Analysis } from '../machine/analysis/index.ts';
import { Machine, type MachineOptions } from '../machine/machine.ts';
import type { JsonValue } from '../machine/program.ts';
import type { FaultReport, NodeReport } from '../machine/report/schema.ts';
import type { BandwidthResult, LatencyResult, PerfArgs } from '../workloads/perf-plan.ts';
import { linkBound } from './perf-bound.ts';
import { programUrl } from './program-url.ts';
import { runMachine } from './run.ts';

export interface PerfOrder {
  readonly machine: MachineOptions;
  readonly args: PerfArgs;
}

type PerfResult = LatencyResult | BandwidthResult;

export interface PerfRow {
  readonly args: PerfArgs;
  readonly result: PerfResult;
  readonly elapsedPs: number;
  readonly isBalanced: boolean;
  /** Payload that the link could carry in such messages at most, in bytes per second; of a bandwidth test. */
  readonly linkBytesPerSecond?: number;
  /** The caches of each HCA. */
  readonly caches: readonly NodeReport['hca']['caches'][];
  /** On-demand paging, by host; left out when there was none. */
  readonly onDemand?: readonly Required<NodeReport>['onDemand'][];
  /** Faults that were asked for, and how often each has happened; left out when there were none. */
  readonly faults?: readonly FaultReport[];
  /** What the watch of the contract of use found, by host; left out when nothing is watched. */
  readonly races?: readonly Required<NodeReport>['races'][];
  /** What the analysers found, when one was asked for. */
  readonly analyses?: readonly Analysis[];
}

/** @param onProgress called with the client's messages; not in a worker */
export default async function runPerf(
  { machine: options, args }: PerfOrder,
  onProgress?: MachineOptions['onProgress'],
): Promise<PerfRow> {
  await using machine = await Machine.create(onProgress === undefined ? options : { ...options, onProgress });
  const module = args.isLatency ? 'perf-latency' : 'perf-bandwidth';
  const kind = args.isLatency ? 'latency' : 'bandwidth';
  for (const [node, role] of ['Client', 'Server'].entries()) {
    const run = { url: programUrl(module), exportName: `${kind}${role}` };
    await machine.load({ node, name: role.toLowerCase(), run, args: args as unknown as JsonValue });
  }
  await runMachine(machine);
  const [result] = (await machine.results()) as unknown as [PerfResult];
  const { checks, nodes, faults } = await machine.report();
  const onDemand = nodes.flatMap((node) => node.onDemand ?? []);
  const races = nodes.flatMap((node) => (node.races === undefined ? [] : [node.races]));
  const row = {
    args,
    result,
    elapsedPs: machine.nowPs,
    isBalanced: checks.balanced,
    ...(args.isLatency ? {} : { linkBytesPerSecond: linkBound(machine.config, args) }),
    caches: nodes.map(({ hca }) => hca.caches),
    ...(faults === undefined ? {} : { faults }),
    ...(onDemand.length === 0 ? {} : { onDemand }),
    ...(races.length === 0 ? {} : { races }),
  };
  return options.analysis === undefined ? row : { ...row, analyses: await machine.analyses() };
}

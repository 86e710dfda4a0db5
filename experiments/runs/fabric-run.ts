/** One run of `hca fabric`: traffic of a pattern over the machine's topology, and the figures of its flows and switches. */
import { ConfigurationError } from '../../base/index.ts';
import {
  configuredOf,
  Machine,
  type MachineOptions,
  notificationsOf,
  type Report,
} from '../../machine/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { farPortsOf, type Topology } from '../../machine/topology/index.ts';
import { RunError, WorkerLostError } from '../../sim/index.ts';
import {
  type FabricArgs,
  type FabricSide,
  type Flow,
  flowsOf,
  type ReductionSide,
  type RoundsSide,
} from '../workloads/index.ts';
import { keepingCapture, writeCapture } from './capture-output.ts';
import { FabricRunError } from './fabric-failure.ts';
import {
  type BusiestPort,
  busiestOf,
  type Measured,
  type OutputRow,
  outputsOf,
  reductionOf,
  roundsOf,
  slowestCable,
  trafficOf,
} from './fabric-figures.ts';
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

export interface FabricRow extends Omit<Measured, 'spanPs'> {
  readonly args: FabricArgs;
  readonly outputs: readonly OutputRow[];
  /** Present for parameter servers, whose busiest port may be a host's. */
  readonly busiest?: BusiestPort;
  /** The host's port that waited longest for credits or the end of a pause: its share of the time of the traffic. */
  readonly hostWaitShare: number;
  /** Congestion notifications that cards sent for marked packets, in CNPs and in responses; 0 without congestion control. */
  readonly cnps: number;
  /** Whether messages complete when TCP has them, before the receiver does: WRITEs of iWARP. The times of flows include their arrival. */
  readonly completesEarly: boolean;
  /** Payload that the slowest cable of a host could carry in such messages, in bytes per second. */
  readonly cableBytesPerSecond: number;
  readonly elapsedPs: number;
  readonly isBalanced: boolean;
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
  checkRoute(args, config.hca.capability);
  checkJoined(topology, flowsOf(args));
  await using machine = await Machine.create({
    ...options,
    ...(timeline === undefined ? {} : { analysis: { ...options.analysis, timeline: timeline.options } }),
  });
  await loadTraffic(machine, args);
  await keepingCapture(machine, options.analysis, () => runTraffic(machine, args));
  const measured = await measuredOf(machine, args);
  const report = await machine.report();
  const { spanPs, ...figures } = measured;
  await writeCapture(machine, options.analysis);
  return {
    args,
    ...figures,
    outputs: outputsOf(report, spanPs),
    ...(args.pattern === 'parameter-server' ? { busiest: busiestOf(report, spanPs) } : {}),
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

async function measuredOf(machine: Machine, args: FabricArgs): Promise<Measured> {
  switch (args.pattern) {
    case 'all-reduce':
      return reductionOf(args, await machine.results<ReductionSide[]>());
    case 'parameter-server':
      return roundsOf(args, await machine.results<RoundsSide[]>());
    default:
      return trafficOf(args, await machine.results<FabricSide[]>());
  }
}

/** Loads the programs of all hosts that take part. */
export async function loadTraffic(machine: Machine, args: FabricArgs): Promise<void> {
  const run = programOf(args);
  for (let node = 0; node < args.hostCount; node++)
    await machine.load({ node, run, name: `host${node}`, args: { ...args } });
}

/** A sum of an all-reduce ends with receives, and a round with READs, which complete when the data are there. */
const completesEarly = ({ config }: Machine, { verb, pattern }: FabricArgs): boolean =>
  verb !== 'read' &&
  pattern !== 'all-reduce' &&
  pattern !== 'parameter-server' &&
  config.hca.capability.transport === 'iwarp';

function programOf({ pattern, verb }: FabricArgs): { readonly url: string; readonly exportName: string } {
  switch (pattern) {
    case 'all-reduce':
      return { url: programUrl('fabric-reduction').href, exportName: 'reducingHost' };
    case 'parameter-server':
      return { url: programUrl('fabric-rounds').href, exportName: 'roundsHost' };
    default:
      return verb === 'send'
        ? { url: programUrl('fabric-sends').href, exportName: 'sendingHost' }
        : { url: programUrl('fabric-traffic').href, exportName: 'fabricHost' };
  }
}

/** @throws ConfigurationError for service levels or a traffic class that packets of the machine lack */
function checkRoute(
  { serviceLevel, victimLevel, trafficClass, connection, usesSrq }: FabricArgs,
  { linkLayer, transport }: MachineConfig['hca']['capability'],
): void {
  for (const [name, level] of Object.entries({ sl: serviceLevel, victimSl: victimLevel }))
    if (level !== undefined && linkLayer === 'ethernet')
      throw new ConfigurationError(name, level, 'left out where ports are of Ethernet: they have priorities');
  if (connection !== undefined && connection !== 'RC' && transport === 'iwarp')
    throw new ConfigurationError(
      'connection',
      connection,
      'RC or left out with iWARP, which has no XRC or UD',
    );
  if (usesSrq !== undefined && transport === 'iwarp')
    throw new ConfigurationError(
      'useSrq',
      usesSrq,
      'left out with iWARP, where each connection has its own receives',
    );
  if (trafficClass !== undefined && transport === 'iwarp')
    throw new ConfigurationError(
      'trafficClass',
      trafficClass,
      'left out with iWARP: its connections have traffic class 0',
    );
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
 * @throws FabricRunError with what the machine reports of the failure
 */
async function runTraffic(machine: Machine, args: FabricArgs): Promise<void> {
  try {
    await runMachine(machine);
  } catch (error) {
    if (!(error instanceof RunError) || error instanceof WorkerLostError) throw error;
    throw new FabricRunError(args, error, await machine.report());
  }
}

/** Says how a row is wrong, or nothing. */
export function fabricFailure({ isEqual, isBalanced }: FabricRow): string | undefined {
  if (!isEqual) return 'bytes received differ from those sent';
  return isBalanced ? undefined : 'the ledgers of the run do not balance';
}

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

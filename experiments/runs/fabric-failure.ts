/** A run of traffic over a fabric that failed: the failure, the hosts, the faults that fired, and the report up to then. */
import { ProgramFailedError } from '../../host/index.ts';
import type { Report } from '../../machine/index.ts';
import { DeadlockError, ProcessFailedError, RunError } from '../../sim/index.ts';
import type { FabricArgs } from '../workloads/index.ts';
import { closedLanes } from './closed-lanes.ts';
import { firedIn } from './run.ts';

export interface FailedFabric {
  readonly args: FabricArgs;
  /** One sentence or more: the error, and what switches and hosts dropped or still hold. */
  readonly failure: string;
  /** The host whose program failed, or the hosts that wait for events that cannot occur; empty if the error names none. */
  readonly hosts: readonly number[];
  /** Up to the failure; `faults` says how often each fault fired. */
  readonly report: Report;
}

/** Ends a run of traffic. */
export class FabricRunError extends RunError {
  override readonly name = 'FabricRunError';
  readonly failed: FailedFabric;

  /** @param cause the error that ended the run */
  constructor(args: FabricArgs, cause: RunError, report: Report) {
    const stuck = closedLanes(args, report.config) ?? reasonIn(report);
    const named = firedIn(report).filter((sentence) => !cause.message.includes(sentence));
    const reasons = [stuck, foreignIn(report), ...named];
    const failure = [cause.message, ...reasons.filter((reason) => reason !== undefined)].join('. ');
    super(failure, { cause });
    this.failed = { args, failure, hosts: hostsOfError(cause), report };
  }
}

/** Hosts that an error or its cause names. */
function hostsOfError(error: unknown): readonly number[] {
  if (!(error instanceof RunError)) return [];
  const names = [
    ...(error instanceof ProgramFailedError ? [error.programName] : []),
    ...(error instanceof ProcessFailedError ? [error.processName] : []),
    ...(error instanceof DeadlockError ? error.waiting.map(({ name }) => name) : []),
  ];
  const hosts = names.flatMap((name) => /^host(\d+)/.exec(name)?.[1] ?? []).map(Number);
  return hosts.length === 0 ? hostsOfError(error.cause) : [...new Set(hosts)];
}

function foreignIn({ nodes }: Report): string | undefined {
  const count = nodes.reduce((sum, { hca }) => sum + (hca.violations['packetForeignLid'] ?? 0), 0);
  return count === 0 ? undefined : `Hosts dropped ${count} packets to LIDs of other hosts (packetForeignLid)`;
}

const circle = 'links that wait for each other in a circle do that';
const upDown = `${circle}, and machine.routing=up-down has none`;
const tree = `${circle}, and switch.ethernet.multipath=tree has none`;

/** The reason for which switches did not forward packets. */
function reasonIn({ switches = [] }: Report): string | undefined {
  const ports = switches.flatMap((each) => each.ports);
  const sumOf = (pick: (port: (typeof ports)[number]) => number | undefined): number =>
    ports.reduce((sum, port) => sum + (pick(port) ?? 0), 0);
  const old = sumOf(({ notForwarded }) => notForwarded['hoqLife']);
  const stalled = sumOf(({ notForwarded }) => notForwarded['vlStalled']);
  const overdue = sumOf(({ notForwarded }) => notForwarded['switchLifetime']);
  const held = sumOf(({ output }) => output?.watchdogDrops);
  const lost = sumOf(({ notForwarded }) => (notForwarded['noRoute'] ?? 0) + (notForwarded['ownPort'] ?? 0));
  const foreign = sumOf(
    ({ notForwarded }) => (notForwarded['inboundPkey'] ?? 0) + (notForwarded['outboundPkey'] ?? 0),
  );
  const waiting = sumOf(({ waitingPackets }) => waitingPackets);
  if (foreign > 0)
    return `The switches dropped ${foreign} packets of partitions that their ports do not accept (partitions of the topology's hosts)`;
  if (old > 0)
    return `The switches dropped ${old} packets that had waited for credits longer than HOQLife${stalled > 0 ? `, and ${stalled} in lanes that these drops had stalled (VLStallCount)` : ''}: ${upDown}`;
  if (overdue > 0)
    return `The switches dropped ${overdue} packets that had been in a switch longer than LifeTimeValue: ${upDown}`;
  if (held > 0)
    return `The switches dropped ${held} packets whose pause did not end (switch.ethernet.pauseWatchdogMs): ${tree}`;
  if (waiting > 0)
    return `${waiting} packets still wait in the switches: ${switches.some(({ buffer }) => buffer) ? tree : upDown}`;
  return lost > 0 ? `The switches dropped ${lost} packets without a route` : undefined;
}

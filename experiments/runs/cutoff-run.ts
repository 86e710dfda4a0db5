/**
 * One line of `hca cutoff` over some sizes: a whole simulation. Also the task of the pool's workers, which receive and
 * return plain data.
 */

import { BootedMachines, configuredOf, type MachineOptions } from '../../machine/index.ts';
import { hostsBySide } from '../../machine/topology/index.ts';
import type { MessagingConfig } from '../../userlib/messaging/index.ts';
import type { WaitingBy, Way } from '../model/index.ts';
import type { MessagePingpongPlan, MessagePingpongRow } from '../workloads/index.ts';
import { programUrl } from './program-url.ts';
import { runMachine } from './run.ts';

export interface CutoffOrder {
  readonly machine: MachineOptions;
  readonly messaging: MessagingConfig;
  readonly waiting: WaitingBy;
  readonly way: Way;
  readonly sizes: readonly number[];
}

export interface CutoffLine {
  readonly latencyPs: readonly number[];
  readonly wrong: number;
  readonly isBalanced: boolean;
}

const warmUpRounds = 10;

/** Machines of this thread: lines of one command differ only in their programs. */
const machines = new BootedMachines({ imageOf: 1 });

/** The channel configuration with which every message of these sizes takes this way. */
export function messagingOf(messaging: MessagingConfig, way: Way, mostBytes: number): MessagingConfig {
  if (way === 'eager') {
    const eagerBytes = Math.max(64, mostBytes);
    return { ...messaging, eagerBytes, cutoffBytes: eagerBytes };
  }
  const cachedRegions = way === 'cached' ? Math.max(2, messaging.cachedRegions) : 0;
  return { ...messaging, cutoffBytes: 1, cachedRegions };
}

export default async function runCutoff(order: CutoffOrder): Promise<CutoffLine> {
  const { waiting, way, sizes, messaging } = order;
  const config = messagingOf(messaging, way, Math.max(...sizes));
  // Effects that recur with the receive slots count in full: the number of messages is a multiple of the slots.
  const rounds = config.bufferCount + 1 + 2 * config.rendezvousCount;
  const plan: MessagePingpongPlan = { config, waiting, sizes, rounds, warmUpRounds };
  const run = { url: programUrl('message-pingpong'), exportName: 'messagePingpong' };
  const args = plan;
  const hosts = hostsBySide(configuredOf(order.machine).topology).slice(0, 2);
  await using lease = await machines.take(order.machine, () =>
    hosts.map((node) => ({ node, name: `pingpong${node}`, run, args })),
  );
  const { machine } = lease;
  await runMachine(machine);
  const tables = await machine.results<[MessagePingpongRow[], MessagePingpongRow[]]>();
  const { checks } = await machine.report();
  return {
    latencyPs: tables[0].map(({ latencyPs }) => latencyPs),
    wrong: tables.flat().reduce((sum, { wrong }) => sum + wrong, 0),
    isBalanced: checks.balanced,
  };
}

/** Report of `hca guest`, "hca-guest-report/1": the programs that ran, results of the commands, and the devices' own report. */

import { tableOf } from '../../explain/text/table.ts';
import type { Cause } from '../../explain/why/index.ts';
import { type DevicesReport, renderServeReport, type ServeReport } from '../serve/index.ts';
import type { CommandResult } from './agent-line.ts';
import { type BudgetRow, budgetFaultsOf, budgetTable, type RunCost } from './budget.ts';
import type { SessionResult, SessionVersions } from './guest-session.ts';
import type { VectorComparison } from './interrupts.ts';

const guestReportSchema = 'hca-guest-report/1';

/** A command and its guest. */
export interface GuestCommandResult extends CommandResult {
  readonly guest: number;
}

export interface GuestReport {
  readonly schema: typeof guestReportSchema;
  readonly versions: SessionVersions;
  readonly commands: readonly GuestCommandResult[];
  /** Cost of each command at the HCAs; left out if no budget was requested. */
  readonly costs?: readonly RunCost[];
  /** Each figure of the budget next to its count; left out without --budget. */
  readonly budget?: readonly BudgetRow[];
  /** Causes of failed or unfinished requests; left out without --why. */
  readonly causes?: readonly Cause[];
  /** Vectors of the drivers loaded at the end, by device and by guest; a difference is an error. */
  readonly interrupts: readonly VectorComparison[];
  /** See hca-serve-report/1. */
  readonly serve: ServeReport;
}

export function guestReportOf(
  { versions, interrupts, report }: SessionResult,
  commands: readonly GuestCommandResult[],
  more: Pick<GuestReport, 'costs' | 'budget' | 'causes'> = {},
): GuestReport {
  return { schema: guestReportSchema, versions, commands, ...more, interrupts, serve: report };
}

/** Errors, a line each; empty if none occurred. */
export function guestFaultsOf({ commands, budget = [], interrupts, serve }: GuestReport): string[] {
  return [
    ...commands.flatMap(({ guest, ...ended }) => commandFaultsOf(`guest${guest}`, ended)),
    ...budgetFaultsOf(budget),
    ...differencesOf(interrupts),
    ...deviceFaultsOf(serve),
    ...peerFaultsOf(serve),
  ];
}

/** A command that failed, in a line. */
export function commandFaultsOf(
  where: string,
  { command, exitStatus, hasTimedOut }: Pick<CommandResult, 'command' | 'exitStatus' | 'hasTimedOut'>,
): string[] {
  if (exitStatus === 0) return [];
  return [`${where}: ${hasTimedOut ? 'took too long' : `exit ${exitStatus}`}: ${command}`];
}

/** Errors of the devices themselves, a line each. */
export const deviceFaultsOf = ({ checks, defects }: DevicesReport): string[] => [
  ...(checks.balanced ? [] : ['the ledgers do not balance']),
  ...defects.map(({ message }) => `a defect of the emulator: ${message}`),
];

/** Error of a simulated host's program, in a line; undefined without a program or if it ended well. */
export function peerFaultsOf({ peer }: Pick<ServeReport, 'peer'>): string[] {
  if (peer === undefined) return [];
  const { program, outcome, error, waitsIn = 'it runs' } = peer.program;
  if (outcome === 'ended') return [];
  return [
    `program ${program} of the peer ${outcome === 'failed' ? `failed: ${error}` : `did not end: ${waitsIn}`}`,
  ];
}

/** Vectors on which device and guest disagree, a line each. */
export function differencesOf(interrupts: readonly VectorComparison[]): string[] {
  return interrupts
    .filter(({ isServed }) => !isServed)
    .map(
      ({ adapter, name, deviceCount, guestCount }) =>
        `HCA ${adapter}, ${name}: ${deviceCount} interrupts by the device, ${guestCount} by the guest`,
    );
}

/** Formats the report for a terminal. */
export function renderGuestReport({ versions, budget = [], interrupts, serve }: GuestReport): string {
  const { kernel, qemu, rdmaCore, perftest } = versions;
  return [
    renderServeReport(serve),
    ...(interrupts.length === 0 ? [] : [interruptTable(interrupts)]),
    ...(budget.length === 0 ? [] : [budgetTable(budget)]),
    `Linux ${kernel}, rdma-core ${rdmaCore}, perftest ${perftest}, on QEMU ${qemu}`,
  ].join('\n');
}

export const interruptTable = (interrupts: readonly VectorComparison[]): string =>
  tableOf(
    "Interrupts since the driver was loaded: the device's count beside /proc/interrupts",
    ['vector', 'name in the guest', 'device', 'guest', ''],
    interrupts.map(({ adapter, vector, name, deviceCount, guestCount, isEqual, isServed }) => [
      `hca ${adapter} vector ${vector}`,
      name,
      deviceCount,
      guestCount,
      isEqual ? '' : isServed ? `${deviceCount - guestCount} merged` : 'DIFFERENT',
    ]),
  );

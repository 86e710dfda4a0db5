/**
 * The report of `hca linux`, version "hca-linux-report/1": commands, where each host's time went, and the devices' own report.
 * Everything in it is simulated: the same command line gives the same report, byte for byte.
 */
import type { Cause } from '../../../explain/why/index.ts';
import type { PcConfig, PcTimeAccount } from '../../pc/index.ts';
import type { DevicesReport } from '../../serve/index.ts';
import { type BudgetRow, budgetFaultsOf, type RunCost } from '../budget.ts';
import { commandFaultsOf, deviceFaultsOf, differencesOf, peerFaultsOf } from '../guest-report.ts';
import type { VectorComparison } from '../interrupts.ts';
import type { BootedLinux, LinuxVersions } from './booted-linux.ts';
import type { KernelCosts } from './kernel-costs.ts';
import type { LinuxHost, LinuxResult } from './linux-host.ts';

const linuxReportSchema = 'hca-linux-report/1';

/** Which figures mean what. */
const meaning = {
  measured:
    'Everything under devices is what a card of this configuration does and how long it takes, as in the simulated machine. ' +
    'Counts of instructions, interrupts, loads and stores are those of the unmodified Linux that ran.',
  estimated:
    'Times of the hosts: each instruction takes cyclesPerInstruction cycles of coreMhz, and stores, interrupts and waking up ' +
    'take what pc says; a load takes as long as its completion needs.',
  notModelled:
    "A host's caches, TLBs, pipelines, speculation and further processors. So the hosts' times serve to compare two versions of " +
    'a driver, and to find races and the cost of an interrupt in instructions; they are not the times of a real host.',
} as const;

/** A command and its host. */
export interface LinuxCommandReport extends LinuxResult {
  readonly host: number;
}

/** A host since power-on. */
export interface LinuxHostReport {
  readonly name: string;
  /** The sum of its {@link time}. */
  readonly elapsedPs: number;
  readonly time: PcTimeAccount;
  readonly instructions: number;
  /** Times that its processor ran between two looks at the devices, since its snapshot; those that a store to the device ended. */
  readonly quanta: number;
  readonly cutQuanta: number;
  /** Interrupts of the HCA that reached the processor: messages (MSI-X), and assertions of the pin. */
  readonly interrupts: { readonly messages: number; readonly pins: number };
  /** Loads and stores in the HCA's BARs, those of the MSI-X table among them. */
  readonly mmio: { readonly loads: number; readonly stores: number };
}

export interface LinuxReport {
  readonly schema: typeof linuxReportSchema;
  readonly meaning: typeof meaning;
  readonly versions: LinuxVersions;
  readonly seed: number;
  /** Parameters of the PCs. */
  readonly pc: PcConfig;
  readonly commands: readonly LinuxCommandReport[];
  /** Cost of each command at the HCAs. */
  readonly costs?: readonly RunCost[];
  /** Each figure of the budget next to its count; left out without --budget. */
  readonly budget?: readonly BudgetRow[];
  /** Causes of failed or unfinished requests; left out without --why. */
  readonly causes?: readonly Cause[];
  readonly hosts: readonly LinuxHostReport[];
  /** Costs of each host's kernel after the drivers were loaded; left out without --cpu-profile. */
  readonly kernels?: readonly KernelCosts[];
  /** Vectors of the drivers loaded at the end, by device and by guest; a difference is an error. */
  readonly interrupts: readonly VectorComparison[];
  readonly devices: DevicesReport;
}

/**
 * The report as of now.
 * @param interrupts of {@link BootedLinux.compareInterrupts}; none if a guest no longer answers
 */
export function linuxReportOf(
  machine: BootedLinux,
  commands: readonly LinuxCommandReport[],
  interrupts: readonly VectorComparison[],
  more: Pick<LinuxReport, 'costs' | 'budget' | 'causes' | 'kernels'> = {},
): LinuxReport {
  return {
    schema: linuxReportSchema,
    meaning,
    versions: machine.versions,
    seed: machine.config.machine.seed,
    pc: machine.pcConfig,
    commands,
    ...more,
    hosts: machine.hosts.map(hostReportOf),
    interrupts,
    devices: machine.devices(),
  };
}

const hostReportOf = ({ name, pc }: LinuxHost): LinuxHostReport => ({
  name,
  elapsedPs: pc.clock.nowPs,
  time: pc.clock.account,
  instructions: pc.clock.instructionCount,
  quanta: pc.quantumCount,
  cutQuanta: pc.cutQuantumCount,
  interrupts: { ...pc.interrupts },
  mmio: { loads: pc.function.loadCount, stores: pc.function.storeCount },
});

/** Errors, a line each; empty if none occurred. */
export function linuxFaultsOf({ commands, budget = [], interrupts, devices }: LinuxReport): string[] {
  return [
    ...commands.flatMap(({ host, ...ended }) => commandFaultsOf(`host${host}`, ended)),
    ...budgetFaultsOf(budget),
    ...differencesOf(interrupts),
    ...peerFaultsOf(devices),
    ...deviceFaultsOf(devices),
  ];
}

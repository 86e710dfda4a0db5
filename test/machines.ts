/** Machines of the system tests: small, so that a test takes a moment, and always closed. */
import { Machine, type MachineOptions } from '../machine/machine.ts';
import type { Partition } from '../machine/partition/placement.ts';
import type { JsonLike, ProgramOptions } from '../machine/program.ts';
import type { Report } from '../machine/report/schema.ts';
import { rowsOf } from './extent.ts';

/**
 * One thread, and the finest partition, which takes several times the processor time: for features that cross the cuts in a
 * special way. `partitions.spec.ts`, and stories, which are repeated in random partitions, check that everything else is equal
 * in both.
 */
export const bothPartitions: readonly Partition[] = ['single', 'per-device'];
/** Partitions for features that cross the cuts in the usual way: both if everything is run. */
export const eachPartition: readonly Partition[] = rowsOf(['single'], ['per-device']);

/** A program of `test/programs/`, by the name of its file. */
export function programOf(
  file: string,
  exportName: string,
  node: number,
  more: Partial<ProgramOptions> = {},
): ProgramOptions {
  const run = { url: new URL(`./programs/${file}.ts`, import.meta.url), exportName };
  return { node, run, name: `${exportName}${node}`, ...more };
}

/** The same program on both hosts. */
export const programsOf = (file: string, exportName: string, args: JsonLike = null): ProgramOptions[] =>
  [0, 1].map((node) => programOf(file, exportName, node, { args }));

export interface Outcome {
  readonly machine: Machine;
  readonly results: readonly unknown[];
  readonly report: Report;
}

export const smallMemory = { 'host.memory.sizeMib': 64 };

export async function smallMachine(options: MachineOptions = {}): Promise<Machine> {
  return Machine.create({ ...options, set: { ...smallMemory, ...options.set } });
}

/** Runs programs to their end on a separate machine, then closes it. */
export async function runPrograms(
  programs: readonly ProgramOptions[],
  options: MachineOptions = {},
): Promise<Outcome> {
  await using machine = await smallMachine(options);
  for (const program of programs) await machine.load(program);
  await machine.run();
  return { machine, results: await machine.results(), report: await machine.report() };
}

/** The report as the bytes that are compared. */
export const bytesOf = (report: Report): string => JSON.stringify(report, null, 1);

/** The bystander processes: load them last. */
export const bystanders = (): ProgramOptions[] => [
  programOf('bystander', 'client', 0),
  programOf('bystander', 'server', 1),
];

/**
 * Processor time of one load on several machines, in turns in one process, in reversed order each round: neighbours
 * affect all machines alike. A figure is the time of a run divided by that of the first machine in the same round.
 */
import { tableOf } from '../explain/text/table.ts';
import { Machine, type MachineOptions } from '../machine/index.ts';
import { medianOf } from './figure.ts';
import { type Load, perfArgsOf } from './write-load.ts';

/** Machines by name; figures are relative to the first. */
export type Machines = Readonly<Record<string, MachineOptions>>;

const moduleUrl = new URL(`./write-load${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
/** V8 compiles for each machine during the first rounds. */
const warmUpRounds = 4;

/** Processor time of a run without set-up, in microseconds. */
async function cpuUsOf(load: Load, options: MachineOptions): Promise<number> {
  await using machine = await Machine.create({ partition: 'single', ...options });
  const args = perfArgsOf(load);
  await machine.load({ node: 0, run: { url: moduleUrl, exportName: 'client' }, args });
  await machine.load({ node: 1, run: { url: moduleUrl, exportName: 'server' }, args });
  const begun = process.cpuUsage();
  await machine.run();
  const { user, system } = process.cpuUsage(begun);
  return user + system;
}

/** Returns, for each machine, one ratio per round. */
async function ratiosOf(
  load: Load,
  machines: Machines,
  rounds: number,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const names = Object.keys(machines);
  const ratios = new Map(names.map((name) => [name, [] as number[]]));
  for (let round = -warmUpRounds; round < rounds; round++) {
    const order = round % 2 === 0 ? names : names.toReversed();
    const used = new Map<string, number>();
    for (const name of order) used.set(name, await cpuUsOf(load, machines[name]!));
    if (round < 0) continue;
    for (const name of names) ratios.get(name)!.push(used.get(name)! / used.get(names[0]!)!);
  }
  return ratios;
}

/** Prints the ratios of each load and machine. */
export async function printRatios(
  title: string,
  loads: Readonly<Record<string, Load>>,
  machines: Machines,
  rounds: number,
): Promise<void> {
  const rows: string[][] = [];
  for (const [load, what] of Object.entries(loads))
    for (const [name, ratios] of [...(await ratiosOf(what, machines, rounds))].slice(1)) {
      const each = ratios.map((ratio) => ratio.toFixed(2)).join(' ');
      rows.push([load, name, medianOf(ratios).toFixed(2), each]);
    }
  process.stdout.write(tableOf(title, ['load', 'machine', 'middle', 'each round'], rows));
}

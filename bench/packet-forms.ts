/**
 * `node build/run.ts bench/packet-forms [rounds]`: the cost of encoding packets as bytes. Each load runs with fields on
 * the cable (the fast form), with bytes, and with fields that a capture observes at both ends. The forms alternate in
 * one process, in reversed order each round. A figure is the processor time of a run divided by that of the fast form
 * in the same round: neighbours affect both.
 */
import '../runtime/node.ts';
import { tableOf } from '../explain/text/table.ts';
import { Machine, type MachineOptions } from '../machine/index.ts';
import { medianOf } from './figure.ts';
import { type Load, perfArgsOf } from './write-load.ts';

const moduleUrl = new URL(`./write-load${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

const one = { qpCount: 1, outstanding: 16 };
const loads: Readonly<Record<string, Load>> = {
  'write-64': { ...one, verb: 'write', sizeBytes: 64, messagesPerQp: 60_000 },
  'read-64': { ...one, verb: 'read', sizeBytes: 64, messagesPerQp: 40_000 },
  'write-4096': { ...one, verb: 'write', sizeBytes: 4096, messagesPerQp: 15_000 },
};

/** A trace keeps this many bytes; packets after them are encoded and only counted. */
const captureBytes = 2 ** 20;
const forms: Readonly<Record<string, MachineOptions>> = {
  fields: {},
  'fields, observed': {
    analysis: { capture: { ends: [{ node: 0 }, { node: 1 }], sizeBytes: captureBytes } },
  },
  bytes: { set: { 'wire.packetForm': 'bytes' } },
};
const names = Object.keys(forms);

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

/** Returns, for each form, one ratio per round. */
async function ratiosOf(load: Load, rounds: number): Promise<ReadonlyMap<string, readonly number[]>> {
  const ratios = new Map(names.map((name) => [name, [] as number[]]));
  // V8 compiles for each form during the first rounds.
  for (let round = -4; round < rounds; round++) {
    const order = round % 2 === 0 ? names : names.toReversed();
    const used = new Map<string, number>();
    for (const name of order) used.set(name, await cpuUsOf(load, forms[name]!));
    if (round < 0) continue;
    for (const name of names) ratios.get(name)!.push(used.get(name)! / used.get('fields')!);
  }
  return ratios;
}

const rounds = Number(process.argv[2] ?? 8);
const rows: string[][] = [];
for (const [load, what] of Object.entries(loads))
  for (const [name, ratios] of await ratiosOf(what, rounds)) {
    if (name === 'fields') continue;
    const each = ratios.map((ratio) => ratio.toFixed(2)).join(' ');
    rows.push([load, name, medianOf(ratios).toFixed(2), each]);
  }
process.stdout.write(
  tableOf('Processor time by that of fields', ['load', 'form', 'middle', 'each round'], rows),
);

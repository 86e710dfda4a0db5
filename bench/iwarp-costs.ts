/**
 * `node build/run.ts bench/iwarp-costs [rounds]`: processor time of WRITEs over iWARP and over RoCE v2 whose packets are
 * bytes too, in turns. The goal is at most 1.5 times that of RoCE v2.
 */
import '../runtime/node.ts';
import { printRatios } from './in-turns.ts';
import { networks } from './networks.ts';
import type { Load } from './write-load.ts';

const one = { qpCount: 1, outstanding: 16, verb: 'write' } as const;
const loads: Readonly<Record<string, Load>> = {
  'write-64': { ...one, sizeBytes: 64, messagesPerQp: 60_000 },
  'write-4096': { ...one, sizeBytes: 4096, messagesPerQp: 15_000 },
};
const machines = { 'roce-v2': { set: networks['roce-v2'] }, iwarp: { set: networks.iwarp } };

await printRatios('Processor time by that of RoCE v2', loads, machines, Number(process.argv[2] ?? 8));

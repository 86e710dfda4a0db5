/**
 * `node build/run.ts bench/packet-forms [rounds]`: the cost of encoding packets as bytes. Each load runs with fields on
 * the cable (the fast form), with fields that a capture observes at both ends, and with bytes, in turns.
 */
import '../runtime/node.ts';
import { type Machines, printRatios } from './in-turns.ts';
import type { Load } from './write-load.ts';

const one = { qpCount: 1, outstanding: 16 };
const loads: Readonly<Record<string, Load>> = {
  'write-64': { ...one, verb: 'write', sizeBytes: 64, messagesPerQp: 60_000 },
  'read-64': { ...one, verb: 'read', sizeBytes: 64, messagesPerQp: 40_000 },
  'write-4096': { ...one, verb: 'write', sizeBytes: 4096, messagesPerQp: 15_000 },
};

/** A trace keeps this many bytes; packets after them are encoded and only counted. */
const captureBytes = 2 ** 20;
const forms: Machines = {
  fields: {},
  'fields, observed': {
    analysis: { capture: { ends: [{ node: 0 }, { node: 1 }], sizeBytes: captureBytes } },
  },
  bytes: { set: { 'wire.packetForm': 'bytes' } },
};

await printRatios('Processor time by that of fields', loads, forms, Number(process.argv[2] ?? 8));

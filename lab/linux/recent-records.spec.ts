import { expect, it } from 'vitest';
import { programUrl } from '../../experiments/runs/program-url.ts';
import { Machine } from '../../machine/index.ts';
import { RecentRecords } from './recent-records.ts';

it('names the headers of packets that were on the cable shortly before', async () => {
  const records = new RecentRecords(() => {});
  const set = { 'host.memory.sizeMib': 64 };
  await using machine = await Machine.create({ set, analysis: records.analysis });
  const args = {
    ...{ verb: 'send', isLatency: true, sizeBytes: 300, iterations: 5, qpCount: 1, txDepth: 16, rxDepth: 16 },
    ...{ inlineBytes: 0, usesEvents: false, cqModeration: 1, mtuBytes: 0 },
  };
  for (const [node, role] of ['Client', 'Server'].entries()) {
    const program = { url: programUrl('perf-latency'), exportName: `latency${role}` };
    await machine.load({ node, name: role, run: program, args });
  }
  await machine.run();
  const { elapsedPs } = await machine.report();
  const moment = records.pictureOf(await machine.timeline(), (await machine.capture())!, elapsedPs);
  const packets = moment.decoded.filter(({ summary }) => summary === 'headers of the packet');
  // A SEND and its acknowledgement, five times in either direction (IBTA vol 1, 9.7.5.1.2): opcodes 4 and 17, with LRH
  // and BTH.
  const opcodes = packets.map(({ sections }) => {
    expect(sections.slice(0, 2).map(({ title }) => title)).toEqual(['LRH', 'BTH']);
    return /^opcode=(.*)$/.exec(sections[1]!.fields.find((field) => field.startsWith('opcode'))!)![1];
  });
  expect(opcodes.filter((opcode) => opcode === '4')).toHaveLength(10);
  expect(opcodes.filter((opcode) => opcode === '0x11')).toHaveLength(10);
  // Each packet of the picture, whose records are the latest, leads to its headers.
  const drawn = moment.records.filter(({ kind }) => kind === 'packet');
  expect(drawn.length).toBeGreaterThan(10);
  for (const { decoded } of drawn)
    expect(decoded.map((at) => moment.decoded[at]!.summary)).toEqual(['headers of the packet']);
});

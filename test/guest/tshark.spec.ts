/**
 * What a machine's cable carries, read by tshark: every packet of a run with every opcode of the reliable connection, also those that
 * are lost, damaged and sent again, has the very fields that were meant, and none is malformed. tshark does not check CRCs: that is done by code that
 * shares nothing with the device (test/wire/own-crc.ts).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCapture, readFrame } from '../../analyser/capture/index.ts';
import { opcodeRow, opcodeTable, type WirePacket } from '../../wire/index.ts';
import { programOf, programsOf, smallMachine } from '../machines.ts';
import { ownIcrcOfLink, ownVcrc } from '../wire/own-crc.ts';
import { fieldsOf, tsharkTree } from './tshark.ts';
import { type ComparedFields, otherFieldsOf, transportFields } from './tshark-fields.ts';

const ERF_BYTES = 16;

/** What tshark reads of a packet and what was sent. */
const compared: ComparedFields = {
  'infiniband.lrh.vl': ({ lrh }) => lrh!.virtualLane,
  'infiniband.lrh.sl': ({ lrh }) => lrh!.serviceLevel,
  'infiniband.lrh.dlid': ({ lrh }) => lrh!.destinationLid,
  'infiniband.lrh.slid': ({ lrh }) => lrh!.sourceLid,
  'infiniband.lrh.pktlen': ({ lrh }) => lrh!.packetLength,
  ...transportFields,
};

const faults = [
  { packet: 'lost', nth: '20-22' },
  { packet: 'corrupted', nth: '60-61' },
  { packet: 'duplicated', nth: 90 },
];

describe('the packets of a machine, read by tshark', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hca-pcap-'));
  const file = join(folder, 'out.pcapng');
  const names = Object.keys(compared);
  let packets: { readonly bytes: Uint8Array; readonly packet: WirePacket; readonly comment: string }[];
  let rows: string[][];

  beforeAll(async () => {
    await using machine = await smallMachine({
      faults,
      analysis: { capture: { ends: [{ node: 0 }, { node: 1, direction: 'inbound' }], sizeBytes: 2 ** 28 } },
    });
    for (const program of [
      programOf('operations', 'provoker', 0),
      programOf('operations', 'partner', 1),
      ...programsOf('mixture', 'polling', { qps: 2, rounds: 2 }),
      ...programsOf('mixture', 'sleeping', { qps: 2, rounds: 2 }),
    ])
      await machine.load(program);
    await machine.run();
    const bytes = await machine.capture();
    writeFileSync(file, bytes);
    const { interfaces, frames } = readCapture(bytes);
    packets = frames.map(({ bytes: frame, interface: number, comment }) => {
      const packet = readFrame(interfaces[number]!.linkType, frame);
      if (packet.kind !== 'packet') throw new Error(JSON.stringify(packet));
      return { bytes: frame.slice(ERF_BYTES), packet, comment };
    });
    rows = await fieldsOf(await tsharkTree(), file, [...names, '_ws.malformed', 'frame.comment']);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are of every opcode of RC that tshark knows but those with invalidation, and some were lost, damaged and sent again', () => {
    const sent = new Set(packets.map(({ packet }) => opcodeRow(packet.bth.opcode)!.name));
    // The numbers of masked atomics are this model's own (docs/deviations.md).
    const meant = opcodeTable.filter(
      ({ service, headers, name }) =>
        service === 'RC' && !headers.includes('IETH') && !name.includes('MASKED'),
    );
    expect(meant.filter(({ name }) => !sent.has(name)).map(({ name }) => name)).toEqual([]);
    const comments = packets.map(({ comment }) => comment);
    for (const word of ['lost', 'damaged', 'copy'])
      expect(comments.some((comment) => comment.includes(word))).toBe(true);
  });

  it('have the very fields that were sent, and none is malformed', () => {
    expect(rows).toHaveLength(packets.length);
    rows.forEach((row, index) => {
      const { packet, comment } = packets[index]!;
      if (comment.includes('damaged')) return;
      expect(row[names.length]).toBe('');
      expect(row[names.length + 1]).toBe(comment);
      expect([index, otherFieldsOf(compared, packet, row)]).toEqual([index, []]);
    });
  });

  it('IBTA 7.8: end with the CRCs that other code computes, but for the two that were damaged', () => {
    const wrong = packets.filter(
      ({ bytes, packet }) => packet.vcrc !== ownVcrc(bytes) || packet.icrc !== ownIcrcOfLink(bytes),
    );
    expect(wrong.map(({ comment }) => comment)).toEqual(Array(2).fill('damaged on its way by a fault'));
  });
});

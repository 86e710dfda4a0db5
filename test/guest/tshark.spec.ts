/**
 * Packets on a machine's cable, read by tshark: every packet of runs with every opcode of reliable and unreliable connections
 * and of datagrams, including lost, damaged and retransmitted ones, has exactly the intended fields, and none is malformed.
 * tshark does not check CRCs: the independent reader does (analyser/independent), which shares no code with the device.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCapture, readFrame } from '../../analyser/capture/index.ts';
import { errorsOf, readLinkPacket } from '../../analyser/independent/index.ts';
import { opcodeRow, opcodeTable, type WirePacket } from '../../wire/index.ts';
import { programOf, programsOf, smallMachine } from '../machines.ts';
import type { LinuxScenario } from '../programs/linux-scenario.ts';
import { stepOf } from '../wire/linux-scenarios.ts';
import { fieldsOf, tsharkTree } from './tshark.ts';
import { type ComparedFields, otherFieldsOf, transportFields } from './tshark-fields.ts';

const ERF_BYTES = 16;

/** tshark's values of a packet, and the sent values. */
const compared: ComparedFields = {
  'infiniband.lrh.vl': ({ lrh }) => lrh!.virtualLane,
  'infiniband.lrh.sl': ({ lrh }) => lrh!.serviceLevel,
  'infiniband.lrh.dlid': ({ lrh }) => lrh!.destinationLid,
  'infiniband.lrh.slid': ({ lrh }) => lrh!.sourceLid,
  'infiniband.lrh.pktlen': ({ lrh }) => lrh!.packetLength,
  ...transportFields,
};

const globalRoute: ComparedFields = {
  'infiniband.grh.tclass': ({ grh }) => grh!.trafficClass,
  'infiniband.grh.flowlabel': ({ grh }) => grh!.flowLabel,
  'infiniband.grh.paylen': ({ grh }) => grh!.payloadLength,
  'infiniband.grh.nxthdr': ({ grh }) => grh!.nextHeader,
  'infiniband.grh.hoplmt': ({ grh }) => grh!.hopLimit,
};

const faults = [
  { packet: 'lost', nth: '20-22' },
  { packet: 'corrupted', nth: '60-61' },
  { packet: 'duplicated', nth: 90 },
];

/** Every form of every operation of the unreliable services: one packet and several. All of them with a GRH. */
const unreliable = {
  uc: 'send:10 send:10:i send:3000 send:3000:i write:10 write:10:i write:3000 write:3000:i',
  ud: 'send:10 send:10:i <send:77',
} as const;

describe.each(['uc', 'ud'] as const)('the packets of service %s, read by tshark', (transport) => {
  it('have every opcode and exactly the sent fields, and none is malformed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hca-pcap-'));
    const file = join(folder, 'out.pcapng');
    await using machine = await smallMachine({
      analysis: { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 24 } },
    });
    const scenario: LinuxScenario = {
      ...{ transport, sgidIndex: 0, mtu: 3, psns: [0xff_fffd, 256], readsMax: 4, limitMs: 5 },
      ...{ hopLimit: 64, trafficClass: 0x68, flowLabel: 0xabcde, serverGives: true },
      ...{ timeoutCode: 5, retryCount: 7, rnrRetryCount: 7, rnrTimerCode: 1 },
      steps: unreliable[transport].split(' ').map(stepOf),
    };
    const args = scenario;
    for (const program of programsOf('linux-scenario', 'linux', args)) await machine.load(program);
    await machine.run();
    const bytes = await machine.capture();
    writeFileSync(file, bytes!);
    const { interfaces, frames } = readCapture(bytes!);
    const sent = frames.map(({ bytes: frame, interface: number }) => {
      const packet = readFrame(interfaces[number]!.linkType, frame);
      if (packet.kind !== 'packet') throw new Error(JSON.stringify(packet));
      return packet;
    });
    const service = transport.toUpperCase();
    const meant = opcodeTable.filter((row) => row.service === service).map(({ name }) => name);
    const names = new Set(sent.map(({ bth }) => opcodeRow(bth.opcode)!.name));
    expect([...names].toSorted()).toEqual(meant.toSorted());
    const fields = { ...compared, ...globalRoute };
    const read = await fieldsOf(await tsharkTree(), file, [...Object.keys(fields), '_ws.malformed']);
    rmSync(folder, { recursive: true });
    expect(read).toHaveLength(sent.length);
    read.forEach((row, index) => {
      expect(row.at(-1)).toBe('');
      expect([index, otherFieldsOf(fields, sent[index]!, row)]).toEqual([index, []]);
    });
  });
});

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

  it('have every RC opcode that tshark knows except those with invalidation, and some were lost, damaged and retransmitted', () => {
    const sent = new Set(packets.map(({ packet }) => opcodeRow(packet.bth.opcode)!.name));
    // The numbers of masked atomics are emulator-specific (docs/reference/deviations.md).
    const meant = opcodeTable.filter(
      ({ service, headers, name }) =>
        service === 'RC' && !headers.includes('IETH') && !name.includes('MASKED'),
    );
    expect(meant.filter(({ name }) => !sent.has(name)).map(({ name }) => name)).toEqual([]);
    const comments = packets.map(({ comment }) => comment);
    for (const word of ['lost', 'damaged', 'copy'])
      expect(comments.some((comment) => comment.includes(word))).toBe(true);
  });

  it('have exactly the sent fields, and none is malformed', () => {
    expect(rows).toHaveLength(packets.length);
    rows.forEach((row, index) => {
      const { packet, comment } = packets[index]!;
      if (comment.includes('damaged')) return;
      expect(row[names.length]).toBe('');
      expect(row[names.length + 1]).toBe(comment);
      expect([index, otherFieldsOf(compared, packet, row)]).toEqual([index, []]);
    });
  });

  it('IBTA 7.8: have right CRCs and headers for the independent reader, except for the two damaged ones', () => {
    const wrong = packets.filter(({ bytes }) => {
      const read = readLinkPacket(bytes);
      return typeof read === 'string' || errorsOf(read).length > 0;
    });
    expect(wrong.map(({ comment }) => comment)).toEqual(Array(2).fill('damaged on its way by a fault'));
  });
});

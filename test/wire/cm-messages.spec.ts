/** Messages of communication management sent by stock Linux: parsed, and rebuilt (reference/wire/README.md). */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { cmMessages, ipCmHeader, mad } from '../../abi/index.ts';
import { readCapture } from '../../analyser/capture/index.ts';
import { decodeEthernet, opcodeRow, type WirePacket } from '../../wire/index.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const names = readdirSync(folder).filter((name) => /^cm-.*\.pcap(ng)?$/.test(name));
const CM_CLASS = 0x07;
const HEADER_BYTES = 24;

const packetsOf = (name: string): WirePacket[] =>
  readCapture(readFileSync(new URL(name, folder))).frames.flatMap(({ bytes }) => {
    const read = decodeEthernet(bytes);
    return read.kind === 'packet' ? [read] : [];
  });

interface Message {
  readonly name: string;
  readonly attributeId: keyof typeof cmMessages;
  readonly bytes: Uint8Array;
}

const messagesOf = (name: string): Message[] =>
  packetsOf(name)
    .filter(({ bth, payload }) => bth.destinationQp === 1 && payload[1] === CM_CLASS)
    .map(({ payload }) => ({
      name,
      attributeId: ((payload[16]! << 8) | payload[17]!) as keyof typeof cmMessages,
      bytes: payload,
    }));

const isCm =
  (attributeId: number) =>
  ({ bth, payload }: WirePacket): boolean =>
    bth.destinationQp === 1 && payload[1] === CM_CLASS && payload[17] === attributeId;
const sourceOf = ({ ethernet }: WirePacket): string => String(ethernet!.source);
const isRequestOfRc = ({ bth }: WirePacket): boolean => {
  const row = opcodeRow(bth.opcode)!;
  return row.service === 'RC' && row.isRequest;
};

const messages = names.flatMap(messagesOf);

describe('the messages of communication management in the captures', () => {
  it('are as many of each kind as their page counts', () => {
    const page = readFileSync(new URL('README.md', folder), 'utf8');
    for (const name of names) {
      const row = page.split('\n').find((line) => line.startsWith(`| ${name} `))!;
      const counted = [...row.matchAll(/CM (\w+) (\d+)/g)].map(([, kind, count]) => [kind, Number(count)]);
      const found = Object.entries(
        Object.groupBy(messagesOf(name), ({ attributeId }) => cmMessages[attributeId].name),
      ).map(([kind, of]) => [kind, of!.length]);
      expect([name, found.toSorted()]).toEqual([name, counted.toSorted()]);
    }
    expect(messages.length).toBeGreaterThan(20);
  });

  it('IBTA 12.6: are rebuilt byte for byte from their fields, no reserved bit of which is set', () => {
    for (const { attributeId, bytes } of messages) {
      const message = cmMessages[attributeId];
      const data = bytes.subarray(HEADER_BYTES);
      expect(message.encode(message.decode(data) as never)).toEqual(data.slice());
      expect(mad.encode(mad.decode(bytes))).toEqual(bytes.slice());
    }
  });

  it('IBTA 12.6.5, 12.6.8: name the QP, and the first PSN that the peer sends there', () => {
    let checked = 0;
    for (const name of names) {
      const req = packetsOf(name).find(isCm(0x10));
      const rep = packetsOf(name).find(isCm(0x13));
      if (req === undefined || rep === undefined) continue;
      for (const [own, other] of [
        [req, rep],
        [rep, req],
      ] as const) {
        const message = cmMessages[own === req ? 0x10 : 0x13].decode(own.payload.subarray(HEADER_BYTES));
        const first = packetsOf(name).find(
          (packet) => isRequestOfRc(packet) && sourceOf(packet) === sourceOf(other),
        );
        if (first === undefined) continue;
        expect([name, first.bth.destinationQp, first.bth.psn]).toEqual([
          name,
          message.localQpn,
          message.startingPsn,
        ]);
        checked++;
      }
    }
    expect(checked).toBeGreaterThan(5);
  });

  it('annex A11: of rdma_cm begin with the IP addresses, which are those of the frames', () => {
    for (const name of names.filter((each) => each.includes('ipv4'))) {
      const [req] = messagesOf(name).filter(({ attributeId }) => attributeId === 0x10);
      if (req === undefined) continue;
      const { privateData } = cmMessages[0x10].decode(req.bytes.subarray(HEADER_BYTES));
      const { ipVersion, sourceAddress, destinationAddress } = ipCmHeader.decode(privateData.subarray(0, 36));
      const addresses = [sourceAddress, destinationAddress].map((address) => address.subarray(12).join('.'));
      expect([ipVersion, ...addresses]).toEqual([4, '10.0.0.1', '10.0.0.2']);
    }
  });
});

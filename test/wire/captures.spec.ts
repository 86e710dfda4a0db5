/**
 * The captures of stock Linux, those of InfiniBand hardware and the specification's sample packet (reference/wire/README.md):
 * all of them are parsed, with exactly the fields and CRCs that the independent reader finds (analyser/independent), and each
 * packet is rebuilt.
 */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LinkType, readCapture, readFrame } from '../../analyser/capture/index.ts';
import {
  errorsOf,
  type HeaderFields,
  type IndependentPacket,
  readCaptured,
} from '../../analyser/independent/index.ts';
import {
  decodeEthernet,
  decodeInfiniband,
  encodePacket,
  type PacketParts,
  type WirePacket,
} from '../../wire/index.ts';
import { VIRTUAL_LANE_SHIFT, WORD_PACKET_FLAGS } from '../../wire/packet.ts';
import { PACKET_RIGHT, RecordBytes } from '../../wire/record-bytes.ts';
import { packetOf } from './independent.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const names = readdirSync(folder).filter((name) => /\.pcap(ng)?$/.test(name));

const captureOf = (name: string) => readCapture(readFileSync(new URL(name, folder)));

interface Read {
  /** Bytes from LRH or MACs on. */
  readonly bytes: Uint8Array;
  readonly isFrame: boolean;
  readonly read: ReturnType<typeof readFrame>;
  readonly independent: ReturnType<typeof readCaptured>;
}

const ERF_BYTES = 16;

function readAll(name: string): Read[] {
  const { interfaces, frames } = captureOf(name);
  return frames.map((frame) => {
    const { linkType } = interfaces[frame.interface]!;
    return {
      bytes: linkType === LinkType.ERF ? frame.bytes.slice(ERF_BYTES) : frame.bytes,
      isFrame: linkType === LinkType.ETHERNET,
      read: readFrame(linkType, frame.bytes),
      independent: readCaptured(linkType, frame.bytes),
    };
  });
}

const all = names.flatMap(readAll);
const packets = all.flatMap(({ bytes, isFrame, read, independent }) =>
  read.kind === 'packet' ? [{ bytes, isFrame, read, independent: packetOf(independent) }] : [],
);

/** Headers before the BTH, by their names in parsed packets. */
const routeNames = {
  ETHERNET: 'ethernet',
  VLAN: 'vlan',
  LRH: 'lrh',
  GRH: 'grh',
  IPV4: 'ipv4',
  IPV6: 'ipv6',
  UDP: 'udp',
  BTH: 'bth',
} as const;
const nameOf = ({ name }: HeaderFields): string => (routeNames as Record<string, string>)[name] ?? name;

/** Fields that software would have to set; the encoder computes lengths, pad counts, the checksum of IPv4 and CRCs itself. */
const madeFields = ['packetLength', 'payloadLength', 'totalLength', 'length', 'padCount'];

/** Reserved bits are zero by the rules of the independent reader. */
const isReserved = (name: string): boolean => /^reserved\d$/.test(name);

/** Fields by header, with the names of the device's own layouts. */
function fieldsOf({ headers }: IndependentPacket, without: readonly string[] = []) {
  const byHeader: Record<string, Record<string, unknown>> = {};
  for (const header of headers) {
    const fields: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(header.numbers))
      if (!isReserved(name) && !without.includes(name)) fields[name] = value;
    for (const [name, digits] of Object.entries(header.digits))
      fields[name] =
        digits.length === 16 ? BigInt(`0x${digits}`) : Uint8Array.from(Buffer.from(digits, 'hex'));
    byHeader[nameOf(header)] = fields;
  }
  return byHeader;
}

/** The packet's parts, by the independent reader alone. */
function partsOf(packet: IndependentPacket, bytes: Uint8Array): PacketParts {
  const { ethernet, vlan, lrh, grh, ipv4, ipv6, udp, bth, ...headers } = fieldsOf(packet, madeFields);
  const payload = bytes.slice(packet.payload, packet.payloadEnd);
  return { ethernet, vlan, lrh, grh, ipv4, ipv6, udp, bth, headers, payload } as PacketParts;
}

describe('the captures', () => {
  it('are all parsed: 73 files of 1432 frames, as many as their page counts', () => {
    const page = readFileSync(new URL('README.md', folder), 'utf8');
    const counted = [...page.matchAll(/^\| (\S+\.pcap(?:ng)?) \| (\d+) \|/gm)];
    expect(names).toHaveLength(73);
    for (const [, name, frames] of counted)
      expect([name, captureOf(name!).frames.length]).toEqual([name, Number(frames)]);
    expect(counted).toHaveLength(71);
    expect(all).toHaveLength(1432);
    expect(all.filter(({ read }) => read.kind === 'malformed')).toEqual([]);
  });

  it('contain nothing else but ARP, neighbour discovery, and the TCP of iWARP', () => {
    const protocolOf = ({ read }: Read): string => {
      if (read.kind !== 'other') return read.kind;
      const { ethernet, ipv4, ipv6 } = read;
      return ipv4 === undefined
        ? `0x${ethernet!.type.toString(16)} ${ipv6?.nextHeader ?? ''}`.trim()
        : `IPv4 ${ipv4.protocol}`;
    };
    const kinds = Object.groupBy(all, protocolOf);
    expect(Object.keys(kinds).toSorted()).toEqual(['0x806', '0x86dd 58', 'IPv4 6', 'packet']);
    for (const name of names.filter((each) => each.startsWith('siw-')))
      expect(readAll(name).every((each) => protocolOf(each) !== 'packet')).toBe(true);
    expect(kinds['packet']).toHaveLength(1095);
  });

  it('have 44 packets of InfiniBand among them, six with a GRH, and 1051 of RoCE v2', () => {
    const forms = Object.groupBy(packets, ({ independent: { form } }) => form);
    const counts = Object.entries(forms).map(([form, of]) => [form, of.length]);
    expect(Object.fromEntries(counts)).toEqual({ local: 38, global: 6, roce2Ipv4: 839, roce2Ipv6: 212 });
    for (const { read, independent } of all)
      expect(typeof independent).toBe(read.kind === 'packet' ? 'object' : 'undefined');
  });

  it('IBTA 7.8: contain no error for the independent reader, and end with the CRCs that it computes', () => {
    for (const { read, independent } of packets) {
      expect(errorsOf(independent)).toEqual([]);
      expect([read.isIcrcRight, read.isVcrcRight]).toEqual([true, true]);
      expect([read.icrc, read.vcrc]).toEqual([independent.icrc.due, independent.vcrc?.due]);
    }
  });

  it('IBTA 7.7, 8.3, 9.2 to 9.4: have exactly the fields in all headers that the independent reader finds', () => {
    for (const { bytes, read, independent } of packets) {
      const route = Object.values(routeNames).flatMap((name) =>
        read[name] === undefined ? [] : [[name, read[name]]],
      );
      expect({ ...Object.fromEntries(route), ...read.headers }).toEqual(fieldsOf(independent));
      const { payload } = read;
      expect(payload).toEqual(bytes.slice(independent.payload, independent.payloadEnd));
    }
  });

  it('are rebuilt byte for byte from the fields that the independent reader finds, without lengths, pads and CRCs', () => {
    for (const { bytes, independent } of packets)
      expect(Buffer.compare(encodePacket(partsOf(independent, bytes)), bytes)).toBe(0);
  });

  it('of InfiniBand become records of a port, and byte for byte the packets again', () => {
    const links = packets.filter(({ isFrame }) => !isFrame);
    expect(links).toHaveLength(44);
    for (const { bytes } of links) {
      const buffer = new ArrayBuffer(8192);
      const area = {
        bytes: new Uint8Array(buffer),
        words: new Int32Array(buffer),
        floats: new Float64Array(buffer),
      };
      const codec = new RecordBytes(area);
      area.words[(64 >> 2) + WORD_PACKET_FLAGS] = (bytes[0]! >> 4) << VIRTUAL_LANE_SHIFT;
      expect(codec.unpack(bytes, 0, bytes.length, 64)).toBe(PACKET_RIGHT);
      const into = new Uint8Array(bytes.length);
      expect(codec.pack(64, into, 0)).toBe(bytes.length);
      expect(Buffer.compare(into, bytes)).toBe(0);
    }
  });

  it('IBTA 7.8: are found damaged when any bit of a packet is flipped that no switch may change', () => {
    const flipped = fc
      .constantFrom(...packets)
      .chain((packet) =>
        fc.record({ packet: fc.constant(packet), bit: fc.nat(packet.bytes.length * 8 - 1) }),
      );
    let foundByCrc = 0;
    fc.assert(
      fc.property(flipped, ({ packet: { bytes, isFrame, read }, bit }) => {
        const damaged = bytes.slice();
        damaged[bit >> 3]! ^= 1 << (bit & 7);
        const found = isFrame ? decodeEthernet(damaged) : decodeInfiniband(damaged);
        if (found.kind !== 'packet') return;
        if (found.isIcrcRight && found.isVcrcRight) expect(isUncovered(read, bit)).toBe(true);
        else foundByCrc++;
      }),
      { numRuns: 5000 },
    );
    expect(foundByCrc).toBeGreaterThan(3000);
  });
});

/** Parts of a RoCE v2 frame excluded from the ICRC. */
function isUncovered({ ipv4 }: WirePacket, bit: number): boolean {
  const byte = bit >> 3;
  const ip = 14;
  const udp = ip + (ipv4 === undefined ? 40 : 20);
  const masked =
    ipv4 === undefined
      ? [0, 1, 2, 3, 7].map((place) => ip + place)
      : [1, 8, 10, 11].map((place) => ip + place);
  return byte < ip || [...masked, udp + 6, udp + 7, udp + 8 + 4].includes(byte);
}

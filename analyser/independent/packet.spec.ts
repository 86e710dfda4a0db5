/** The independent reader: published CRCs, packets of hardware, and for each rule a packet that breaks it. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LinkType, readCapture } from '../capture/index.ts';
import { crc16Of, crc32Of } from './crc.ts';
import { errorsOf, headerOf, type IndependentPacket, isRight, readCaptured } from './packet.ts';
import { macOfGroup } from './rules.ts';

const folder = new URL('../../reference/wire/', import.meta.url);

interface Captured {
  readonly linkType: number;
  readonly bytes: Uint8Array;
  readonly packet: IndependentPacket;
}

function packetsOf(name: string): Captured[] {
  const { interfaces, frames } = readCapture(readFileSync(new URL(name, folder)));
  return frames.flatMap(({ interface: at, bytes }) => {
    const { linkType } = interfaces[at]!;
    const packet = readCaptured(linkType, bytes);
    return packet === undefined || typeof packet === 'string' ? [] : [{ linkType, bytes, packet }];
  });
}

const hardware = packetsOf('ib-hardware-sample.pcap');
const all = readdirSync(folder)
  .filter((name) => /\.pcap(ng)?$/.test(name))
  .flatMap(packetsOf);

/** Contradictions, without CRCs, after a change to the first packet that `which` accepts. */
function foundAfter(
  which: (packet: IndependentPacket) => boolean,
  change: (bytes: Uint8Array, packet: IndependentPacket) => void,
): string {
  const { linkType, bytes, packet } = all.find((one) => which(one.packet))!;
  const changed = bytes.slice();
  const start = linkType === LinkType.ERF ? 16 : 0;
  change(changed.subarray(start), packet);
  const read = readCaptured(linkType, changed);
  return typeof read === 'object' ? read.wrong.join('; ') : (read ?? 'another protocol');
}

/** Sets bits of one byte of a header, counted from the start of the header. */
const withBits =
  (name: Parameters<typeof headerOf>[1], at: number, bits: number) =>
  (bytes: Uint8Array, packet: IndependentPacket): void => {
    bytes[headerOf(packet, name)!.at + at]! ^= bits;
  };
const isGlobal = ({ form }: IndependentPacket): boolean => form === 'global';
const isLocal = ({ form }: IndependentPacket): boolean => form === 'local';
const isIpv4 = ({ form }: IndependentPacket): boolean => form === 'roce2Ipv4';
const isIpv6 = ({ form }: IndependentPacket): boolean => form === 'roce2Ipv6';
const named =
  (name: string) =>
  ({ operation }: IndependentPacket): boolean =>
    operation?.name === name;

describe('the CRCs', () => {
  it('equal the published check value for "123456789": CBF43926', () => {
    expect(crc32Of(Buffer.from('123456789')).toString(16)).toBe('cbf43926');
  });

  it('IBTA 7.8.2: end the specification’s sample packet', () => {
    const { bytes } = packetsOf('ib-ibta-sample-packet.pcap')[0]!;
    expect(crc16Of(bytes.subarray(0, -2)).toString(16)).toBe('fa45');
  });

  it('IBTA 7.8: are right in all 43 packets of InfiniBand hardware, six of them with a GRH', () => {
    expect(hardware.map(({ packet }) => errorsOf(packet))).toEqual(Array(43).fill([]));
    expect(hardware.filter(({ packet }) => isGlobal(packet))).toHaveLength(6);
  });

  it('are wrong after any flip except of a bit that may change on the way', () => {
    const { linkType, bytes } = hardware.find(({ packet }) => isGlobal(packet))!;
    /** Index by which CRCs are wrong: none, the VCRC, the ICRC, both. */
    const fixed = [0, 0, 0, 0];
    for (let bit = 16 * 8; bit < bytes.length * 8; bit++) {
      const changed = bytes.slice();
      changed[bit >> 3]! ^= 0x80 >> (bit & 7);
      const read = readCaptured(linkType, changed);
      if (typeof read !== 'object') continue;
      fixed[(isRight(read.icrc) ? 0 : 2) + (isRight(read.vcrc!) ? 0 : 1)]!++;
    }
    expect(fixed[0]).toBe(0);
    // Bits that leave the ICRC right and the VCRC wrong: the LRH except LNH, 36 bits of the GRH, 8 of the BTH, and the
    // VCRC itself.
    expect(fixed[1]).toBe(62 + 36 + 8 + 16);
  });
});

describe('a packet whose headers contradict each other', () => {
  const atPort =
    (count: number) =>
    (bytes: Uint8Array, packet: IndependentPacket): void => {
      new DataView(bytes.buffer, bytes.byteOffset).setUint16(headerOf(packet, 'UDP')!.at + 4, count);
    };
  it.each<
    [
      string,
      (packet: IndependentPacket) => boolean,
      (bytes: Uint8Array, packet: IndependentPacket) => void,
      RegExp,
    ]
  >([
    ['7.7.2: LVer', isLocal, withBits('LRH', 0, 0x01), /LVer 1/],
    ['7.7.3: reserved bits of the LRH', isLocal, withBits('LRH', 1, 0x04), /LRH: reserved/],
    ['7.7.8: PktLen', isGlobal, withBits('LRH', 5, 0x01), /PktLen/],
    ['7.7.5: LNH of a raw packet', isLocal, withBits('LRH', 1, 0x02), /LNH 0/],
    ['7.7.10: SLID of a group', isGlobal, withBits('LRH', 6, 0xc0), /which is a group's/],
    [
      '10.5.2: DLID of a group without its GID',
      isLocal,
      (bytes) => bytes.set([0xc0, 0x01], 2),
      /DLID 49153, DGID none/,
    ],
    ['10.5.2: GID of a group by another LID', isGlobal, (bytes) => bytes.set([0, 7], 2), /DLID 7, DGID ff/],
    ['10.5.2: a group, and one QP', isGlobal, withBits('BTH', 7, 1), /to a group, but to QP 16777214/],
    ['8.3: a SGID of a group', isGlobal, (bytes) => bytes.set([0xff], 8 + 8), /source is the GID of a group/],
    [
      '13.5.1: QP0 by another lane than VL15',
      (packet) => isLocal(packet) && headerOf(packet, 'BTH')!.numbers['destinationQp'] === 0,
      withBits('LRH', 0, 0xf0),
      /QP 0 by VL 0/,
    ],
    ['8.3: IPVer', isGlobal, withBits('GRH', 0, 0x20), /IPVer 4/],
    ['8.3: NxtHdr', isGlobal, withBits('GRH', 6, 0x01), /NxtHdr 26/],
    ['8.3: PayLen', isGlobal, withBits('GRH', 5, 0x04), /PayLen \d+, \d+ bytes follow/],
    ['9.2: TVer', isLocal, withBits('BTH', 1, 0x01), /TVer 1/],
    ['9.2: reserved bits beside FECN and BECN', isIpv4, withBits('BTH', 4, 0x01), /BTH: reserved/],
    ['9.2: reserved bits beside AckReq', isIpv4, withBits('BTH', 8, 0x01), /BTH: reserved/],
    ['9.2: an opcode of no service', isIpv4, (bytes, { base }) => bytes.set([0x3f], base), /no opcode is 63/],
    [
      '9.2: pad and payload that are no dwords',
      named('RC_SEND_ONLY'),
      (bytes, packet) => bytes.set([0, 0x3a], headerOf(packet, 'IPV4')!.at + 2),
      /with a pad of/,
    ],
    [
      '9.2: a pad that is not zero',
      (packet) => headerOf(packet, 'BTH')!.numbers['padCount'] === 3,
      (bytes, { payloadEnd }) => bytes.set([1], payloadEnd),
      /pad is not zero/,
    ],
    [
      '9.4: a FIRST of another length than an MTU',
      named('RC_RDMA_WRITE_FIRST'),
      (bytes, { base }) => bytes.set([0x0d], base),
      /no path MTU/,
    ],
    [
      '9.4: a LAST of nothing',
      named('RC_ACKNOWLEDGE'),
      (bytes, { base }) => bytes.set([0x0f], base),
      /without payload/,
    ],
    [
      '9.4: an ACKNOWLEDGE with a payload',
      named('RC_RDMA_READ_RESPONSE_ONLY'),
      (bytes, { base }) => bytes.set([0x11], base),
      /RC_ACKNOWLEDGE with \d+ bytes/,
    ],
    [
      '9.3.3: a WRITE of another length than it says',
      named('RC_RDMA_WRITE_ONLY'),
      withBits('RETH', 15, 1),
      /RETH: \d+ bytes, the packet has/,
    ],
    [
      '9.3.3: a WRITE of several packets that says one',
      named('RC_RDMA_WRITE_FIRST'),
      (bytes, packet) => bytes.set([0, 0, 0, 1], headerOf(packet, 'RETH')!.at + 12),
      /the first packet has/,
    ],
    [
      '9.3.3: more than 2 GiB',
      named('RC_RDMA_READ_REQUEST'),
      (bytes, packet) => bytes.set([0x80, 0, 0, 1], headerOf(packet, 'RETH')!.at + 12),
      /RETH: 2147483649 bytes/,
    ],
    ['9.7.5.2: a reserved syndrome', named('RC_ACKNOWLEDGE'), withBits('AETH', 0, 0x40), /AETH: syndrome/],
    [
      '9.7.5.2: a NAK code that none has',
      named('RC_ACKNOWLEDGE'),
      (bytes, packet) => bytes.set([0x65], headerOf(packet, 'AETH')!.at),
      /AETH: syndrome 101/,
    ],
    [
      '9.7.5.1: a READ response that refuses',
      named('RC_RDMA_READ_RESPONSE_ONLY'),
      withBits('AETH', 0, 0x60),
      /AETH: syndrome/,
    ],
    ['9.3.2: reserved bits of a DETH', named('UD_SEND_ONLY'), withBits('DETH', 4, 1), /DETH: reserved/],
    ['RFC 791: options', isIpv4, withBits('IPV4', 0, 1), /IPv4: options/],
    ['RFC 791: a fragment', isIpv4, withBits('IPV4', 7, 1), /IPv4: a fragment/],
    ['RFC 791: the checksum', isIpv4, withBits('IPV4', 8, 1), /header checksum/],
    ['RFC 768: the length', isIpv4, atPort(20), /UDP: length 20/],
    ['RFC 8200: the version', isIpv6, withBits('IPV6', 0, 0x10), /IPv6: version 7/],
    ['RFC 768: a checksum that is there', isIpv4, withBits('UDP', 7, 1), /UDP: wrong checksum/],
    ['RFC 8200, 8.1: a checksum that is there', isIpv6, withBits('UDP', 7, 1), /UDP: wrong checksum/],
    ['RFC 1112: a group’s MAC without its address', isIpv4, withBits('ETHERNET', 0, 1), /MAC .* for GID/],
    [
      'RFC 1112: the address of a group without its MAC',
      isIpv4,
      (bytes, packet) => bytes.set([224, 1, 2, 3], headerOf(packet, 'IPV4')!.at + 16),
      /MAC .* for GID 0+ffffe0010203/,
    ],
    [
      'RFC 2464: the address of a group without its MAC',
      isIpv6,
      (bytes, packet) => bytes.set([0xff], headerOf(packet, 'IPV6')!.at + 24),
      /MAC .* for GID ff/,
    ],
    ['802.3: a source that is a group', isIpv4, withBits('ETHERNET', 6, 1), /source is the MAC of a group/],
    ['A17: a frame that is cut', isIpv4, withBits('IPV4', 2, 0x40), /though the headers say/],
  ])('%s', (_clause, which, change, words) => {
    expect(foundAfter(which, () => {})).toBe('');
    expect(foundAfter(which, change)).toMatch(words);
  });
});

describe('the MAC of a group', () => {
  it('RFC 1112, 6.4: has the low 23 bits of an IPv4 address', () => {
    expect(macOfGroup('00000000000000000000ffffe0010203')).toBe('01005e010203');
    expect(macOfGroup('00000000000000000000ffffeffffffe')).toBe('01005e7ffffe');
  });
  it('RFC 2464, 7: has the low 32 bits of an IPv6 address', () => {
    expect(macOfGroup('ff0e0000000000000000ffffe0010203')).toBe('3333e0010203');
  });
  it('is undefined for a host’s address', () => {
    expect(macOfGroup('00000000000000000000ffff0a000001')).toBeUndefined();
    expect(macOfGroup('fe800000000000000000000000000001')).toBeUndefined();
  });
});

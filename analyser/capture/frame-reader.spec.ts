/**
 * Packets of stock Linux inside link types and tunnels of other captures. The preceding bytes are written out from
 * their standards; the expected packet is the one captured on Ethernet.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readCapture, readFrame } from './index.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const framesOf = (name: string): Uint8Array[] =>
  readCapture(readFileSync(new URL(name, folder))).frames.map(({ bytes }) => bytes);

/** A WRITE of 1024 bytes over IPv4, and a READ request over IPv6. */
const [, , overIpv4] = framesOf('rc-write-ipv4.pcap');
const overIpv6 = framesOf('rc-read-ipv6.pcap').find((bytes) => bytes.length > 70 && bytes[62] === 12)!;
const sample = framesOf('ib-ibta-sample-packet.pcap')[0]!;
const MACS = 12;
const ETHERNET = 14;
const ip4 = overIpv4!.subarray(ETHERNET);
const ip6 = overIpv6.subarray(ETHERNET);

const bytesOf = (...parts: readonly (string | Uint8Array)[]): Uint8Array =>
  Uint8Array.from(
    parts.flatMap((part) =>
      typeof part === 'string' ? [...Buffer.from(part.replaceAll(' ', ''), 'hex')] : [...part],
    ),
  );

/** The packet in a frame. */
function packetIn(linkType: number, bytes: Uint8Array, wireBytes = bytes.length) {
  const read = readFrame(linkType, bytes, wireBytes);
  if (read.kind !== 'packet') throw new Error(JSON.stringify(read));
  return read;
}

const plain4 = packetIn(1, overIpv4!);
const plain6 = packetIn(1, overIpv6);
const macs = overIpv4!.subarray(0, MACS);
const outer4 = (protocol: string, payload: Uint8Array): Uint8Array => {
  const total = (20 + payload.length).toString(16).padStart(4, '0');
  return bytesOf(`4500 ${total} 0000 0000 40 ${protocol} 0000 c0a80001 c0a80002`, payload);
};
const vxlan = (frame: Uint8Array): Uint8Array => {
  const length = (16 + frame.length).toString(16).padStart(4, '0');
  return bytesOf(macs, '0800', outer4('11', bytesOf(`c000 12b5 ${length} 0000 08000000 00002a00`, frame)));
};
/** RFC 8926, 3.4: version and length of options, flags, protocol type, VNI and a reserved byte, options. */
const geneve = (header: string, carried: Uint8Array): Uint8Array => {
  const headerBytes = Buffer.from(header.replaceAll(' ', ''), 'hex').length;
  const length = (8 + headerBytes + carried.length).toString(16).padStart(4, '0');
  return bytesOf(macs, '0800', outer4('11', bytesOf(`c000 17c1 ${length} 0000 ${header}`, carried)));
};
/** RFC 2784, 2.1: a packet of IP whose protocol is 47. */
const gre = (header: string, carried: Uint8Array): Uint8Array =>
  bytesOf(macs, '0800', outer4('2f', bytesOf(header, carried)));
/** The same over IPv6, RFC 7676. */
const gre6 = (header: string, carried: Uint8Array): Uint8Array => {
  const payload = bytesOf(header, carried);
  const length = payload.length.toString(16).padStart(4, '0');
  return bytesOf(macs, `86dd 60000000 ${length} 2f 40`, ip6.subarray(8, 40), payload);
};
const erf = (
  type: string,
  recordBytes: number,
  wireBytes: number,
  ...rest: readonly (string | Uint8Array)[]
) => {
  const short = (value: number): string => value.toString(16).padStart(4, '0');
  return bytesOf(`0000000000000000 ${type} 04 ${short(recordBytes)} 0000 ${short(wireBytes)}`, ...rest);
};

describe('a frame reader', () => {
  it.each<[string, number, Uint8Array]>([
    ['LINKTYPE_LINUX_SLL', 113, bytesOf('0000 0001 0006 525400000001 0000 0800', ip4)],
    ['LINKTYPE_LINUX_SLL with a tag', 113, bytesOf('0004 0001 0006 525400000001 0000 8100 0064 0800', ip4)],
    ['LINKTYPE_LINUX_SLL2', 276, bytesOf('0800 0000 00000002 0001 00 06 5254000000010000', ip4)],
    ['LINKTYPE_RAW', 101, ip4],
    ['DLT_RAW of BSD', 12, ip4],
    ['DLT_RAW of OpenBSD', 14, ip4],
    ['LINKTYPE_IPV4', 228, ip4],
    ['LINKTYPE_NULL, little endian', 0, bytesOf('02000000', ip4)],
    ['LINKTYPE_NULL, big endian', 0, bytesOf('00000002', ip4)],
    ['LINKTYPE_LOOP', 108, bytesOf('00000002', ip4)],
    ['802.1Q', 1, bytesOf(macs, '8100 2064 0800', ip4)],
    ['802.1ad, with 802.1Q', 1, bytesOf(macs, '88a8 0064 8100 00c8 0800', ip4)],
    ['tags of 0x9100', 1, bytesOf(macs, '9100 0064 8100 00c8 0800', ip4)],
    ['a frame check sequence', 1, bytesOf(overIpv4!, 'deadbeef')],
    ['RFC 7348 VXLAN', 1, vxlan(overIpv4!)],
    [
      'VXLAN in LINKTYPE_LINUX_SLL2',
      276,
      bytesOf('0800 0000 00000002 0001 00 06 5254000000010000', vxlan(overIpv4!).subarray(ETHERNET)),
    ],
    ['VXLAN with a tag within', 1, vxlan(bytesOf(macs, '8100 0064 0800', ip4))],
    ['RFC 8926 GENEVE of Ethernet', 1, geneve('00 00 6558 00002a 00', overIpv4!)],
    ['GENEVE of IPv4', 1, geneve('00 00 0800 00002a 00', ip4)],
    // Two options: class 0x0103 and type 1 with one word; class 0xffff, critical type 0x80, without.
    ['GENEVE with options', 1, geneve('03 40 6558 00002a 00  0103 01 01 11223344  ffff 80 00', overIpv4!)],
    ['RFC 2784 GRE of IPv4', 1, gre('0000 0800', ip4)],
    ['GRE of IPv4 with a checksum', 1, gre('8000 0800 1234 0000', ip4)],
    ['RFC 2890 GRE with a key', 1, gre('2000 0800 0000002a', ip4)],
    [
      'RFC 2890 GRE with checksum, key and sequence number',
      1,
      gre('b000 0800 12340000 0000002a 00000007', ip4),
    ],
    ['RFC 7637 NVGRE', 1, gre('2000 6558 00002a01', overIpv4!)],
    ['NVGRE with a tag within', 1, gre('2000 6558 00002a01', bytesOf(macs, '8100 0064 0800', ip4))],
    ['RFC 7676 GRE over IPv6', 1, gre6('0000 0800', ip4)],
    ['GENEVE in VXLAN', 1, vxlan(geneve('00 00 6558 00002a 00', overIpv4!))],
    ['ERF of Ethernet', 197, erf('02', 18 + overIpv4!.length, overIpv4!.length, '0000', overIpv4!)],
    ['ERF of IPv4', 197, erf('16', 16 + ip4.length, ip4.length, ip4)],
  ])('reads a packet of RoCE v2 over IPv4 in %s', (_name, linkType, bytes) => {
    const { bth, headers, payload, icrc, isIcrcRight, unchecked } = packetIn(linkType, bytes);
    expect({ bth, headers, payload, icrc }).toEqual({
      bth: plain4.bth,
      headers: plain4.headers,
      payload: plain4.payload,
      icrc: plain4.icrc,
    });
    expect([isIcrcRight, unchecked]).toEqual([true, undefined]);
  });

  it.each<[string, number, Uint8Array]>([
    ['LINKTYPE_LINUX_SLL', 113, bytesOf('0000 0001 0006 525400000001 0000 86dd', ip6)],
    ['LINKTYPE_RAW', 101, ip6],
    ['LINKTYPE_IPV6', 229, ip6],
    ['LINKTYPE_NULL of macOS', 0, bytesOf('1e000000', ip6)],
    ['LINKTYPE_NULL of FreeBSD', 0, bytesOf('1c000000', ip6)],
    ['VXLAN', 1, vxlan(overIpv6)],
    ['GENEVE', 1, geneve('00 00 86dd 00002a 00', ip6)],
    ['GRE', 1, gre('0000 86dd', ip6)],
    ['NVGRE', 1, gre('2000 6558 00002a01', overIpv6)],
  ])('reads a packet of RoCE v2 over IPv6 in %s', (_name, linkType, bytes) => {
    const { bth, headers, isIcrcRight, unchecked } = packetIn(linkType, bytes);
    expect([bth, headers]).toEqual([plain6.bth, plain6.headers]);
    expect([isIcrcRight, unchecked]).toEqual([true, undefined]);
  });

  it.each<[string, number, Uint8Array]>([
    ['LINKTYPE_INFINIBAND', 247, sample],
    ['ERF', 197, erf('15', 16 + sample.length, sample.length, sample)],
    ['ERF, padded to 8 bytes', 197, erf('15', 24 + sample.length, sample.length, sample, '0000000000000000')],
    [
      'ERF with two extension headers',
      197,
      erf('95', 32 + sample.length, sample.length, '8300000000000000 0300000000000000', sample),
    ],
  ])("reads the specification's sample packet in %s", (_name, linkType, bytes) => {
    // Its ICRC is 0x9625b75a (reference/wire/README.md), of which 0x96 is sent first.
    const { icrc, isIcrcRight, isVcrcRight } = packetIn(linkType, bytes);
    expect([icrc, isIcrcRight, isVcrcRight]).toEqual([0x5ab7_2596, true, true]);
  });

  it('RFC 791, 3.1: reads a packet after IPv4 options, for which no ICRC is defined', () => {
    const longer = (ip4.length + 4).toString(16).padStart(4, '0');
    const options = bytesOf(
      macs,
      '0800',
      `46 ${Buffer.from(ip4.subarray(1, 2)).toString('hex')} ${longer}`,
      ip4.subarray(4, 20),
      '01010100',
      ip4.subarray(20),
    );
    const { bth, payload, isIcrcRight, unchecked } = packetIn(1, options);
    expect([bth, payload]).toEqual([plain4.bth, plain4.payload]);
    expect([isIcrcRight, unchecked]).toEqual([true, 'IP options']);
  });

  it('RFC 8200, 4: reads a packet after extension headers of IPv6', () => {
    const longer = (ip6.length - 40 + 24).toString(16).padStart(4, '0');
    const extended = bytesOf(
      macs,
      '86dd',
      ip6.subarray(0, 4),
      longer,
      '00',
      ip6.subarray(7, 40),
      '3c00010400000000 11010104000000000000000000000000',
      ip6.subarray(40),
    );
    const { bth, headers, unchecked } = packetIn(1, extended);
    expect([bth, headers, unchecked]).toEqual([plain6.bth, plain6.headers, 'IP options']);
  });

  it('reads the part of a packet within the snap length, and never reports it as damaged or malformed', () => {
    const cases: [number, Uint8Array][] = [
      [1, overIpv4!],
      [1, overIpv6],
      [1, vxlan(overIpv4!)],
      [1, geneve('01 00 6558 00002a 00 ffff 00 00', overIpv4!)],
      [1, gre('b000 0800 12340000 0000002a 00000007', ip4)],
      [1, gre6('2000 6558 00002a01', overIpv4!)],
      [113, bytesOf('0000 0001 0006 525400000001 0000 0800', ip4)],
      [276, bytesOf('0800 0000 00000002 0001 00 06 5254000000010000', ip4)],
      [101, ip4],
      [0, bytesOf('02000000', ip4)],
      [247, sample],
    ];
    for (const [linkType, bytes] of cases)
      for (let length = 0; length < bytes.length; length++) {
        const read = readFrame(linkType, bytes.subarray(0, length), bytes.length);
        if (read.kind === 'packet')
          expect([read.isIcrcRight, read.isVcrcRight, read.unchecked].slice(0, 2)).toEqual([true, true]);
        else
          expect([linkType, length, read]).toEqual([
            linkType,
            length,
            expect.objectContaining({ kind: 'cut' }),
          ]);
      }
    // 96 bytes: Ethernet, IPv4, UDP, BTH and RETH are 70.
    const { headers, payload, payloadBytes, unchecked } = packetIn(
      1,
      overIpv4!.subarray(0, 96),
      overIpv4!.length,
    );
    expect([headers, payload, payloadBytes, unchecked]).toEqual([
      plain4.headers,
      plain4.payload.subarray(0, 26),
      plain4.payload.length,
      'cut',
    ]);
  });

  it('names frames of other protocols', () => {
    const named: [string, number, Uint8Array][] = [
      ['ARP', 1, bytesOf(macs, '0806', new Uint8Array(28))],
      ['IEEE 802.2', 1, bytesOf(macs, '0026', new Uint8Array(38))],
      ['EtherType 0x88cc', 1, bytesOf(macs, '88cc', new Uint8Array(38))],
      ['TCP', 101, outer4('06', new Uint8Array(20))],
      ['ICMP', 101, outer4('01', new Uint8Array(8))],
      ['IP protocol 89', 101, outer4('59', new Uint8Array(8))],
      // RFC 2784, 2.2 and 2.3: a routing bit, or version 1 of PPTP, is for another receiver.
      ['GRE', 101, outer4('2f', bytesOf('4000 0800', ip4))],
      ['GRE', 101, outer4('2f', bytesOf('2001 880b 00040000'))],
      // The flags announce a key, but the packet is too short for one.
      ['GRE', 101, outer4('2f', bytesOf('2000 0800'))],
      ['GRE of EtherType 0x88be', 101, outer4('2f', bytesOf('1000 88be 00000001', new Uint8Array(8)))],
      ['GRE of IEEE 802.2', 101, outer4('2f', bytesOf('0000 0000'))],
      // RFC 8926, 3.4: a control message, a wrong version, options longer than the packet.
      [
        'UDP to port 6081',
        101,
        outer4('11', bytesOf('c000 17c1 0014 0000 00 80 6558 00002a 00', '00000000')),
      ],
      ['UDP to port 6081', 101, outer4('11', bytesOf('c000 17c1 0010 0000 40 00 6558 00002a 00'))],
      ['UDP to port 6081', 101, outer4('11', bytesOf('c000 17c1 0010 0000 01 00 6558 00002a 00'))],
      ['GENEVE of EtherType 0x894f', 101, outer4('11', bytesOf('c000 17c1 0010 0000 00 00 894f 00002a 00'))],
      ['UDP to port 53', 101, outer4('11', bytesOf('c000 0035 0008 0000'))],
      // With a fragment offset of 8 bytes, the packet has no UDP header.
      ['IP fragment', 101, bytesOf('4500 001c 0000 0001 40 11 0000 c0a80001 c0a80002', new Uint8Array(8))],
    ];
    for (const [protocol, linkType, bytes] of named)
      expect(readFrame(linkType, bytes)).toMatchObject({ kind: 'other', protocol });
  });

  it('reports that it has no reader for other link types and records', () => {
    expect(readFrame(105, overIpv4!)).toEqual({ kind: 'unread', reason: 'link type 105' });
    expect(readFrame(197, erf('07', 16, 0))).toEqual({ kind: 'unread', reason: 'ERF record of type 7' });
  });

  it('follows tunnels within tunnels to a bounded depth', () => {
    let frame = overIpv4!;
    for (let depth = 0; depth < 4; depth++) frame = vxlan(frame);
    expect(packetIn(1, frame).bth).toEqual(plain4.bth);
    expect(readFrame(1, vxlan(frame))).toMatchObject({ kind: 'other', protocol: 'UDP to port 4789' });
    expect(readFrame(1, gre('0000 6558', frame))).toMatchObject({
      kind: 'other',
      protocol: 'UDP to port 4789',
    });
    let keyed = overIpv4!;
    for (let depth = 0; depth < 5; depth++) keyed = gre('2000 6558 00002a01', keyed);
    expect(readFrame(1, keyed)).toMatchObject({ kind: 'other', protocol: 'GRE' });
  });
});

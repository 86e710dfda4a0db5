/**
 * The captures of stock Linux and the specification's sample packet (reference/wire/README.md): all of them are read, and each packet
 * is made again from its fields.
 */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LinkType, readCapture } from '../../analyser/capture/index.ts';
import { decodeEthernet, decodeInfiniband, encodePacket, type WirePacket } from '../../wire/index.ts';
import { ownIcrcOfFrame, ownIcrcOfLink, ownVcrc } from './own-crc.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const names = readdirSync(folder).filter((name) => /\.pcap(ng)?$/.test(name));

const captureOf = (name: string) => readCapture(readFileSync(new URL(name, folder)));

interface Read {
  readonly bytes: Uint8Array;
  readonly isFrame: boolean;
  readonly read: ReturnType<typeof decodeEthernet>;
}

function readAll(name: string): Read[] {
  const { interfaces, frames } = captureOf(name);
  return frames.map((frame) => {
    const isFrame = interfaces[frame.interface]!.linkType === LinkType.ETHERNET;
    return {
      bytes: frame.bytes,
      isFrame,
      read: isFrame ? decodeEthernet(frame.bytes) : decodeInfiniband(frame.bytes),
    };
  });
}

const all = names.flatMap(readAll);
const packets = all.flatMap(({ bytes, isFrame, read }) =>
  read.kind === 'packet' ? [{ bytes, isFrame, read }] : [],
);

describe('the captures', () => {
  it('are all read: 72 files of 1389 frames, as many as their page counts', () => {
    const page = readFileSync(new URL('README.md', folder), 'utf8');
    const counted = [...page.matchAll(/^\| (\S+\.pcap(?:ng)?) \| (\d+) \|/gm)];
    expect(names).toHaveLength(72);
    for (const [, name, frames] of counted)
      expect([name, captureOf(name!).frames.length]).toEqual([name, Number(frames)]);
    expect(counted).toHaveLength(71);
    expect(all).toHaveLength(1389);
    expect(all.filter(({ read }) => read.kind === 'malformed')).toEqual([]);
  });

  it('hold nothing else but ARP, neighbour discovery, and the TCP of iWARP', () => {
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
    expect(kinds['packet']).toHaveLength(1052);
  });

  it('IBTA 7.8: end with the CRCs that ours and other code find', () => {
    for (const { bytes, isFrame, read } of packets) {
      expect([read.isIcrcRight, read.isVcrcRight]).toEqual([true, true]);
      expect(read.icrc).toBe(isFrame ? ownIcrcOfFrame(bytes) : ownIcrcOfLink(bytes));
      if (!isFrame) expect(read.vcrc).toBe(ownVcrc(bytes));
    }
  });

  it('are made again byte for byte from the fields of each of their 1052 packets', () => {
    for (const { bytes, read } of packets) expect(Buffer.compare(encodePacket(read), bytes)).toBe(0);
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

/** Of a frame of RoCE v2: what the ICRC leaves out. */
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

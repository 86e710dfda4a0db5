/**
 * Congestion marks in frames of stock Linux (reference/wire/README.md): only ECN and the checksum of IPv4 change, both checked
 * by calculations of this file, and the ICRC, checked by independent code, stays that of the capture.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LinkType, readCapture } from '../../analyser/capture/index.ts';
import type { FaultPlan } from '../../machine/faults/index.ts';
import { checksumAfter, markCongestion, takesCongestionMark } from '../../wire/congestion-mark.ts';
import { decodeEthernet } from '../../wire/index.ts';
import { runPrograms } from '../machines.ts';
import { errorsIn } from './independent.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const names = readdirSync(folder).filter((name) => /^(rc|ud|uc|cm)-.*\.pcap$/.test(name));
const frames = names.flatMap((name) => {
  const { interfaces, frames: all } = readCapture(readFileSync(new URL(name, folder)));
  return all
    .filter((frame) => interfaces[frame.interface]!.linkType === LinkType.ETHERNET)
    .map(({ bytes }) => bytes)
    .filter((bytes) => decodeEthernet(bytes).kind === 'packet');
});

const isIpv4 = (bytes: Uint8Array): boolean => bytes[12] === 0x08 && bytes[13] === 0;

/** Sum of the ten words of an IPv4 header, which is ffff if its checksum is right (RFC 1071, 1). */
function sumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 14; at < 34; at += 2) sum += (bytes[at]! << 8) | bytes[at + 1]!;
  return (sum & 0xffff) + (sum >>> 16);
}

/** The frame with this ECN in its IP header, and a right checksum. */
function withEcn(frame: Uint8Array, ecn: number): Uint8Array {
  const bytes = frame.slice();
  if (!isIpv4(bytes)) {
    bytes[15] = (bytes[15]! & 0xcf) | (ecn << 4);
    return bytes;
  }
  bytes[15] = (bytes[15]! & 0xfc) | ecn;
  bytes[24] = 0;
  bytes[25] = 0;
  const checksum = ~sumOf(bytes) & 0xffff;
  bytes[24] = checksum >>> 8;
  bytes[25] = checksum & 0xff;
  return bytes;
}

describe('a mark of congestion', () => {
  it('RFC 1624, 4: changes a checksum as in the example', () => {
    expect(checksumAfter(0xdd2f, 0x5555, 0x3285)).toBe(0);
  });

  it('RFC 3168, 5: is set in packets of Linux with ECT, and in no others', () => {
    let count = 0;
    for (const frame of frames) {
      expect(takesCongestionMark(withEcn(frame, 0), 0, frame.length)).toBe(false);
      for (const ecn of [1, 2, 3]) {
        const bytes = withEcn(frame, ecn);
        expect(takesCongestionMark(bytes, 0, frame.length)).toBe(true);
        markCongestion(bytes, 0, frame.length);
        expect(bytes).toEqual(withEcn(frame, 3));
        count++;
      }
      if (isIpv4(frame)) expect(sumOf(withEcn(frame, 3))).toBe(0xffff);
    }
    expect(count).toBeGreaterThan(900);
  });

  it('IBTA annex A17: leaves the ICRC as it is', () => {
    for (const frame of frames) {
      const marked = withEcn(frame, 3);
      const read = decodeEthernet(marked);
      expect(read).toMatchObject({ kind: 'packet', isIcrcRight: true });
      expect(errorsIn(marked)).toEqual([]);
    }
  });

  it('is rejected if packets have no IP header', async () => {
    const refused = (set: Record<string, string>) =>
      expect(runPrograms([], { set, faults: [{ packet: 'congested' }] satisfies FaultPlan })).rejects;
    const ethernet = { 'hca.capability.linkLayer': 'ethernet' };
    const expected =
      /packet is "congested", expected another effect on a cable of Ethernet, but with hca\.capability\.roce=v2/;
    await refused({ ...ethernet, 'hca.capability.roce': 'v1' }).toThrow(expected);
    await refused({ 'machine.adapter': 'nic' }).toThrow(expected);
    const { report } = await runPrograms([], {
      set: { ...ethernet, 'hca.capability.roce': 'v2' },
      faults: [{ packet: 'congested' }],
    });
    expect(report.faults![0]!.fired).toBe(0);
  });
});

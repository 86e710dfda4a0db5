/**
 * Records and frames of RoCE: each built from the other, compared with the captures of stock Linux (reference/wire/README.md),
 * and with packet-bytes.ts, which shares only the tables and the CRC.
 */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LinkType, readCapture } from '../../analyser/capture/index.ts';
import {
  decodeEthernet,
  encodePacket,
  ICRC_WRONG,
  isRoceFrame,
  PACKET_RIGHT,
  type PacketParts,
  ROCE_UDP_PORT,
  RoceBytes,
  type WirePacket,
} from '../../wire/index.ts';
import { dueIcrcOf, errorsIn } from './independent.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const names = readdirSync(folder).filter((name) => /\.pcap(ng)?$/.test(name));
const frames = names.flatMap((name) => {
  const { interfaces, frames: all } = readCapture(readFileSync(new URL(name, folder)));
  return all
    .filter((frame) => interfaces[frame.interface]!.linkType === LinkType.ETHERNET)
    .map(({ bytes }) => bytes);
});
const packets = frames.flatMap((bytes) => {
  const read = decodeEthernet(bytes);
  return read.kind === 'packet' ? [{ bytes, read }] : [];
});

const RECORD_BYTES = 8192;
const OFFSET = 64;

function roceBytes() {
  const buffer = new ArrayBuffer(RECORD_BYTES);
  const area = {
    bytes: new Uint8Array(buffer),
    words: new Int32Array(buffer),
    floats: new Float64Array(buffer),
  };
  area.bytes.fill(0xa5);
  return { area, roce: new RoceBytes(area) };
}

/** The frame built from the record that was built from this frame, which is at an odd offset, with this much padding after it. */
function remade(frame: Uint8Array, padding = 0): Uint8Array {
  const { roce } = roceBytes();
  const from = new Uint8Array(frame.length + padding + 10);
  from.set(frame, 3);
  expect(roce.unpack(from, 3, frame.length + padding, OFFSET)).toBe(PACKET_RIGHT);
  const into = new Uint8Array(frame.length + 100);
  const bytes = roce.pack(OFFSET, into, 5);
  return into.subarray(5, 5 + bytes);
}

/** Returns the packet with another route before its BTH. */
const rerouted = (read: WirePacket, route: Partial<PacketParts>): Uint8Array => {
  const { bth, headers, payload, ethernet } = read;
  return encodePacket({ ethernet, bth, headers, payload, ...route } as PacketParts);
};

const grh = {
  ipVersion: 6,
  trafficClass: 0x5a,
  flowLabel: 0x12345,
  nextHeader: 0x1b,
  hopLimit: 64,
  sourceGid: Uint8Array.from({ length: 16 }, (_, at) => 0xf0 + at),
  destinationGid: Uint8Array.from({ length: 16 }, (_, at) => 0x30 + at),
};

describe('a frame of RoCE', () => {
  it('IBTA A17: of each of the 1051 captured packets becomes a record, and byte for byte the frame again', () => {
    expect(packets).toHaveLength(1051);
    for (const { bytes } of packets) {
      expect(isRoceFrame(bytes, 0, bytes.length, ROCE_UDP_PORT)).toBe(true);
      expect(Buffer.compare(remade(bytes), bytes)).toBe(0);
    }
  });

  it('IBTA A16: of version 1, with a GRH, does so too, with and without a tag and padding', () => {
    for (const { read } of packets) {
      const type = 0x8915;
      const plain = rerouted(read, { ethernet: { ...read.ethernet, type }, grh });
      const vlan = { priority: 5, dropEligible: 0, vlan: 7, type };
      const tagged = rerouted(read, { ethernet: { ...read.ethernet, type: 0x8100 }, vlan, grh });
      for (const frame of [plain, tagged]) {
        expect(isRoceFrame(frame, 0, frame.length)).toBe(true);
        expect(Buffer.compare(remade(frame), frame)).toBe(0);
        expect(Buffer.compare(remade(frame, 17), frame)).toBe(0);
        expect(errorsIn(frame)).toEqual([]);
      }
    }
  });

  it('is not one of another protocol, nor of version 2 if that is not enabled', () => {
    const others = frames.filter((bytes) => decodeEthernet(bytes).kind === 'other');
    expect(others.length).toBeGreaterThan(100);
    for (const bytes of others) expect(isRoceFrame(bytes, 0, bytes.length, ROCE_UDP_PORT)).toBe(false);
    for (const { bytes } of packets) expect(isRoceFrame(bytes, 0, bytes.length)).toBe(false);
  });

  it('IBTA 7.8.1: is found damaged or malformed if any bit after the MACs is flipped that no router may change', () => {
    const flips = fc
      .constantFrom(...packets)
      .chain(({ bytes }) =>
        fc.tuple(fc.constant(bytes), fc.integer({ min: 14, max: bytes.length - 1 }), fc.nat(7)),
      );
    fc.assert(
      fc.property(flips, ([bytes, at, bit]) => {
        const frame = bytes.slice();
        frame[at]! ^= 1 << bit;
        const read = decodeEthernet(frame);
        if (read.kind !== 'packet' || !isRoceFrame(frame, 0, frame.length, ROCE_UDP_PORT)) return;
        const { area, roce } = roceBytes();
        const before = area.bytes.slice();
        const verdict = roce.unpack(frame, 0, frame.length, OFFSET);
        if (!read.isIcrcRight) expect(verdict).not.toBe(PACKET_RIGHT);
        if (verdict !== PACKET_RIGHT) expect(area.bytes).toEqual(before);
      }),
    );
  });

  it('IBTA 9.2: is malformed if payload and pad are not whole dwords, though its ICRC is right', () => {
    const withPayload = packets.filter(({ read }) => read.ipv4 !== undefined && read.payload.length > 0);
    expect(withPayload.length).toBeGreaterThan(50);
    for (const { bytes, read } of withPayload) {
      for (let more = 1; more < 4; more++) {
        const frame = Uint8Array.from([...bytes.subarray(0, -4), ...Array(more).fill(7), 0, 0, 0, 0]);
        const view = new DataView(frame.buffer);
        const ip = read.vlan === undefined ? 14 : 18;
        view.setUint16(ip + 2, view.getUint16(ip + 2) + more);
        view.setUint16(ip + 24, view.getUint16(ip + 24) + more);
        view.setUint16(ip + 10, 0);
        let sum = 0;
        for (let at = ip; at < ip + 20; at += 2) sum += view.getUint16(at);
        while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
        view.setUint16(ip + 10, ~sum & 0xffff);
        view.setUint32(frame.length - 4, dueIcrcOf(frame), true);
        const verdict = roceBytes().roce.unpack(frame, 0, frame.length, OFFSET);
        expect([PACKET_RIGHT, ICRC_WRONG]).not.toContain(verdict);
      }
    }
  });

  it('with a wrong ICRC is reported as such', () => {
    for (const { bytes } of packets.slice(0, 50)) {
      const frame = bytes.slice();
      frame[frame.length - 1]! ^= 1;
      expect(roceBytes().roce.unpack(frame, 0, frame.length, OFFSET)).toBe(ICRC_WRONG);
    }
  });
});

describe('any bytes in place of a frame', () => {
  it('are accepted or rejected, and never read beyond their end', () => {
    const hostile = fc.tuple(
      fc.constantFrom(...packets),
      fc.array(fc.tuple(fc.nat(80), fc.nat(255)), { maxLength: 6 }),
      fc.nat(100),
    );
    fc.assert(
      fc.property(hostile, ([{ bytes }, changes, cut]) => {
        const length = Math.max(60, bytes.length - cut);
        const frame = new Uint8Array(length);
        frame.set(bytes.subarray(0, length));
        for (const [at, value] of changes) if (at < length) frame[at] = value;
        if (!isRoceFrame(frame, 0, length, ROCE_UDP_PORT)) return;
        roceBytes().roce.unpack(frame, 0, length, OFFSET);
      }),
    );
  });
});

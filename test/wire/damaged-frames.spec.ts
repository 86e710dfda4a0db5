/**
 * Bit errors in frames of stock Linux (reference/wire/README.md): a fault strikes headers or payload alone. The places are
 * calculations of this file.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readCapture } from '../../analyser/capture/index.ts';
import { DamagePlace, damageFrame, hasDamagePlace } from '../../wire/damage.ts';

const folder = new URL('../../reference/wire/', import.meta.url);
const names = readdirSync(folder).filter((name) => /^siw-.*ipv4\.pcap(ng)?$/.test(name));
const frames = names.flatMap((name) =>
  readCapture(readFileSync(new URL(name, folder))).frames.map(({ bytes }) => bytes),
);

const ETHERNET_BYTES = 14;
const IPV4_BYTES = 20;

/** Bytes of an IPv4 packet's TCP header by its data offset (RFC 9293, 3.1); none of ARP's frames. */
function placesOf(bytes: Uint8Array): { payload: number; end: number } {
  const isArp = bytes[12] === 0x08 && bytes[13] === 0x06;
  if (isArp) return { payload: bytes.length, end: bytes.length };
  expect([bytes[12], bytes[13], bytes[14], bytes[23]]).toEqual([8, 0, 0x45, 6]);
  const tcp = ETHERNET_BYTES + IPV4_BYTES;
  return { payload: tcp + 4 * (bytes[tcp + 12]! >> 4), end: ETHERNET_BYTES + bytes[16]! * 256 + bytes[17]! };
}

/** The same segment over IPv6, whose header has other lengths (RFC 8200, 3), with the tag of a VLAN. */
function taggedOverIpv6(bytes: Uint8Array): Uint8Array {
  const packetBytes = bytes[16]! * 256 + bytes[17]! - IPV4_BYTES;
  const network = Uint8Array.of(
    0x60,
    0,
    0,
    0,
    packetBytes >> 8,
    packetBytes & 0xff,
    6,
    64,
    ...Array(32).fill(1),
  );
  const segment = bytes.slice(ETHERNET_BYTES + IPV4_BYTES, ETHERNET_BYTES + IPV4_BYTES + packetBytes);
  return Uint8Array.of(...bytes.subarray(0, 12), 0x81, 0, 0, 5, 0x86, 0xdd, ...network, ...segment);
}

/** The place of the only flipped bit. */
function struckBy(sent: Uint8Array, place: number): number {
  const bytes = sent.slice();
  damageFrame(bytes, 0, bytes.length, place);
  const struck = [...bytes.keys()].filter((at) => bytes[at] !== sent[at]);
  expect(struck).toHaveLength(1);
  expect([1, 2, 4, 8, 16, 32, 64, 128]).toContain(bytes[struck[0]!]! ^ sent[struck[0]!]!);
  return struck[0]!;
}

function expectPlaces(bytes: Uint8Array, first: number, { payload, end }: { payload: number; end: number }) {
  const header = struckBy(bytes, DamagePlace.HEADER);
  expect(header).toBeGreaterThanOrEqual(first);
  expect(header).toBeLessThan(payload);
  expect(hasDamagePlace(bytes, 0, bytes.length, DamagePlace.HEADER)).toBe(true);
  expect(hasDamagePlace(bytes, 0, bytes.length, DamagePlace.PAYLOAD)).toBe(end > payload);
  if (end === payload) return 0;
  const struck = struckBy(bytes, DamagePlace.PAYLOAD);
  expect(struck).toBeGreaterThanOrEqual(payload);
  expect(struck).toBeLessThan(end);
  return 1;
}

describe('a bit error within a switch', () => {
  it('RFC 791, 3.1; RFC 9293, 3.1: is in the headers or in the payload of a segment of siw, as wanted', () => {
    let count = 0;
    for (const bytes of frames) count += expectPlaces(bytes, ETHERNET_BYTES, placesOf(bytes));
    expect(count).toBeGreaterThan(100);
    expect(frames.length - count).toBeGreaterThan(100);
  });

  it('RFC 8200, 3; IEEE 802.1Q, 9.6: is there over IPv6 and in a VLAN, too', () => {
    let count = 0;
    for (const bytes of frames.filter((frame) => frame[13] === 0)) {
      const { payload, end } = placesOf(bytes);
      const shift = 4 + 40 - IPV4_BYTES;
      const places = { payload: payload + shift, end: end + shift };
      count += expectPlaces(taggedOverIpv6(bytes), ETHERNET_BYTES, places);
    }
    expect(count).toBeGreaterThan(100);
  });

  it('RFC 768; RFC 826: is in the payload of a datagram, but not in that of ARP, which has none', () => {
    const frame = (type: number, ...packet: number[]) =>
      Uint8Array.from([...Array<number>(12).fill(2), type >> 8, type & 0xff, ...packet]);
    const ipv4 = [0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    // Two bytes of payload after the header of UDP, and padding up to 60 bytes.
    const datagram = frame(0x0800, ...ipv4, 0, 7, 0, 7, 0, 10, 0, 0, 1, 2, ...Array<number>(16).fill(0));
    expectPlaces(datagram, ETHERNET_BYTES, { payload: 42, end: 44 });
    expectPlaces(frame(0x0806, ...Array<number>(46).fill(1)), ETHERNET_BYTES, { payload: 60, end: 60 });
  });

  it.each([
    ['of no bytes', 0x45, 0, 0],
    ['shorter than its header', 0x45, 0, 10],
    ['with a header of no bytes', 0x40, 0, 46],
    ['longer than the frame', 0x4f, 0xff, 0xff],
  ])('is within the frame if it says that its IPv4 packet is %s', (_what, version, high, low) => {
    const bytes = Uint8Array.from([
      ...Array<number>(12).fill(2),
      8,
      0,
      version,
      0,
      high,
      low,
      0,
      0,
      0,
      0,
      64,
      6,
    ]);
    const padded = new Uint8Array(60);
    padded.set(bytes);
    struckBy(padded, DamagePlace.HEADER);
    if (hasDamagePlace(padded, 0, 60, DamagePlace.PAYLOAD)) struckBy(padded, DamagePlace.PAYLOAD);
  });
});

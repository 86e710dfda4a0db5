/**
 * The two CRCs of an InfiniBand packet and that of an Ethernet frame's invariant part, eight bytes a step.
 *
 *   ICRC  CRC-32, polynomial 0x04C11DB7 as in Ethernet, over the bits that no switch changes; the others count as ones
 *         (IBTA vol 1, 7.8.1; for RoCE annexes A16 and A17, which put ones instead of the missing LRH)
 *   VCRC  CRC-16, polynomial 0x100B, over all from LRH to ICRC (7.8.2); flow control packets end with the same one (7.9.4)
 *
 * Both start from ones, take the low bit of a byte first, and are sent complemented, the byte with the low bits first.
 */
import { ReflectedCrc } from '../base/index.ts';
import { bth, GRH_BYTES, grh, lrh } from './headers.ts';

/** CRC-32 of Ethernet (IEEE 802.3, 3.2.9), also used for the ICRC. */
export const crc32 = new ReflectedCrc(0x04c1_1db7, 32);
/** CRC-16 of the VCRC and of flow control packets. */
export const crc16 = new ReflectedCrc(0x100b, 16);

/**
 * An LRH of ones: a router exchanges the whole LRH of a packet with a GRH, so the ICRC covers none of it (7.8.1); RoCE has no
 * LRH, and its ICRC begins as if it had one (A16, A17).
 */
const ROUTE_OF_ONES = new Uint8Array(lrh.sizeBytes).fill(0xff);
/** Offset in the BTH of the byte with FECN and BECN, which switches set. */
const CONGESTION_PLACE = bth.fields.fecn.wordOffset;
const VIRTUAL_LANE_MASK = lrh.fields.virtualLane.mask;
/** Masks for IPv6 and the GRH, which share a format: class and flow label fill the first four bytes except the version. */
const CLASS_AND_FLOW_BYTES = 4;
const VERSION_MASK = 0xf0;
const HOP_LIMIT_PLACE = grh.fields.hopLimit.wordOffset;

/** Longest run of headers that has masked fields: IPv6, UDP and a BTH. */
const MASKED_BYTES_MAX = 60;
const masked = new Uint8Array(MASKED_BYTES_MAX);

/** The bytes before the BTH that the ICRC covers. */
export type InvariantCover = 'local' | 'localWithGrh' | 'roce1' | 'roce2Ipv4' | 'roce2Ipv6';

const IPV4_BYTES = 20;
const IPV6_BYTES = 40;
const UDP_BYTES = 8;
/** Offsets of TOS, TTL and header checksum in IPv4, and of the checksum in UDP. */
const TYPE_OF_SERVICE_PLACE = 1;
const TIME_TO_LIVE_PLACE = 8;
const HEADER_CHECKSUM_PLACE = 10;
const UDP_CHECKSUM_PLACE = 6;

/**
 * The ICRC of a packet.
 * @param first offset of the first covered byte: of the LRH, or of RoCE's GRH or IP header
 * @param end offset after the padded payload
 */
export function invariantCrc(bytes: Uint8Array, first: number, end: number, cover: InvariantCover): number {
  const headerBytes = maskedHeaderBytes[cover];
  const from = cover === 'localWithGrh' ? first + lrh.sizeBytes : first;
  const length = Math.min(headerBytes, end - from);
  for (let at = 0; at < length; at++) masked[at] = bytes[from + at]!;
  mask(cover, headerBytes);
  let register = crc32.initial;
  if (cover !== 'local') register = crc32.update(register, ROUTE_OF_ONES, 0, ROUTE_OF_ONES.length);
  register = crc32.update(register, masked, 0, length);
  return crc32.finish(crc32.update(register, bytes, from + length, end));
}

/** Header bytes with masked bits: up to the BTH, and after an LRH of ones. */
const maskedHeaderBytes: Readonly<Record<InvariantCover, number>> = {
  local: lrh.sizeBytes + bth.sizeBytes,
  localWithGrh: GRH_BYTES + bth.sizeBytes,
  roce1: GRH_BYTES + bth.sizeBytes,
  roce2Ipv4: IPV4_BYTES + UDP_BYTES + bth.sizeBytes,
  roce2Ipv6: IPV6_BYTES + UDP_BYTES + bth.sizeBytes,
};

/** Sets the bits that a switch or router may change. */
function mask(cover: InvariantCover, headerBytes: number): void {
  masked[headerBytes - bth.sizeBytes + CONGESTION_PLACE] = 0xff;
  if (cover === 'local') masked[0] = masked[0]! | VIRTUAL_LANE_MASK;
  else if (cover !== 'roce2Ipv4') maskGlobalRoute();
  if (cover === 'roce2Ipv4') {
    masked[TYPE_OF_SERVICE_PLACE] = 0xff;
    masked[TIME_TO_LIVE_PLACE] = 0xff;
    masked[HEADER_CHECKSUM_PLACE] = 0xff;
    masked[HEADER_CHECKSUM_PLACE + 1] = 0xff;
  }
  if (cover !== 'roce2Ipv4' && cover !== 'roce2Ipv6') return;
  const udp = headerBytes - bth.sizeBytes - UDP_BYTES;
  masked[udp + UDP_CHECKSUM_PLACE] = 0xff;
  masked[udp + UDP_CHECKSUM_PLACE + 1] = 0xff;
}

/** Traffic class, flow label and hop limit of the header with which the masked bytes begin. */
function maskGlobalRoute(): void {
  masked[0] = masked[0]! | (VERSION_MASK ^ 0xff);
  for (let byte = 1; byte < CLASS_AND_FLOW_BYTES; byte++) masked[byte] = 0xff;
  masked[HOP_LIMIT_PLACE] = 0xff;
}

/** The VCRC from the LRH up to the end of the ICRC. */
export const variantCrc = (bytes: Uint8Array, first: number, end: number): number =>
  crc16.of(bytes, first, end);

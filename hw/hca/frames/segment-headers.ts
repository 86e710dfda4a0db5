/**
 * Headers of the frames of one LSO: software supplies those of the first frame. Each frame gets them with its own IP
 * length, its number added to IPv4's identification, its offset in the data added to the TCP sequence number, and its
 * checksums. Only the last frame has PSH and FIN. All other fields are repeated. Sources: interface sheet 6.3 (LSO);
 * RFC 791, 8200, 9293; Linux net/ipv4/tcp_offload.c (tcp_gso_segment: PSH and FIN).
 */
import {
  fillIpChecksum,
  fillTransportChecksum,
  IPV4_HEADER_BYTES,
  IPV6_HEADER_BYTES,
  ipVersionOf,
  isFragment,
  type PacketPlaces,
  setU16,
  TCP_HEADER_BYTES,
  u16At,
} from './frame-headers.ts';

const PROTOCOL_TCP = 6;
/** IPv6 extension headers that may precede TCP: hop-by-hop options and destination options. */
const HOP_BY_HOP = 0;
const DESTINATION_OPTIONS = 60;
const IPV4_LENGTH_PLACE = 2;
const IPV4_IDENTIFICATION_PLACE = 4;
const IPV6_LENGTH_PLACE = 4;
const TCP_SEQUENCE_PLACE = 4;
const TCP_OFFSET_PLACE = 12;
const TCP_FLAGS_PLACE = 13;
const FIN_AND_PSH = 0x09;

/**
 * Offsets of TCP over IP in the headers of an LSO, for a frame of `frameBytes`; undefined if the headers hold no TCP or
 * only part of it. Ignores the length fields, which software filled.
 */
export function segmentPlacesOf(
  bytes: Uint8Array,
  at: number,
  headerBytes: number,
  frameBytes = headerBytes,
): PacketPlaces | undefined {
  const headersEnd = at + headerBytes;
  const { version, network } = ipVersionOf(bytes, at, headersEnd);
  if (version === 0) return undefined;
  const isIpv4 = version === 4;
  const transport = isIpv4 ? behindIpv4(bytes, network) : behindIpv6(bytes, network, headersEnd);
  if (transport === -1 || transport + TCP_HEADER_BYTES > headersEnd) return undefined;
  const tcpBytes = (bytes[transport + TCP_OFFSET_PLACE]! >>> 4) * 4;
  if (tcpBytes < TCP_HEADER_BYTES || transport + tcpBytes > headersEnd) return undefined;
  return { isIpv4, network, transport, protocol: PROTOCOL_TCP, end: at + frameBytes };
}

/** Returns the offset of TCP after an IPv4 header that is complete and not of a fragment; -1 if TCP does not follow. */
function behindIpv4(bytes: Uint8Array, network: number): number {
  const headerBytes = (bytes[network]! & 0xf) * 4;
  const isFit = headerBytes >= IPV4_HEADER_BYTES && bytes[network + 9] === PROTOCOL_TCP;
  return isFit && !isFragment(bytes, network) ? network + headerBytes : -1;
}

function behindIpv6(bytes: Uint8Array, network: number, headersEnd: number): number {
  let next = bytes[network + 6]!;
  let place = network + IPV6_HEADER_BYTES;
  while (place < headersEnd && (next === HOP_BY_HOP || next === DESTINATION_OPTIONS)) {
    next = bytes[place]!;
    place += (bytes[place + 1]! + 1) * 8;
  }
  return next === PROTOCOL_TCP ? place : -1;
}

/** Which of the frames of an LSO, and where in the data its payload begins. */
export interface Segment {
  readonly index: number;
  readonly firstByte: number;
  readonly isLast: boolean;
}

/** Rewrites the headers at `at` (`headerBytes` long) for one frame of the LSO; its payload follows them. */
export function fillSegmentHeaders(
  bytes: Uint8Array,
  at: number,
  headerBytes: number,
  frameBytes: number,
  { index, firstByte, isLast }: Segment,
): void {
  const places = segmentPlacesOf(bytes, at, headerBytes, frameBytes);
  if (places === undefined) return;
  const { isIpv4, network, transport, end } = places;
  if (isIpv4) {
    setU16(bytes, network + IPV4_LENGTH_PLACE, end - network);
    const identification = network + IPV4_IDENTIFICATION_PLACE;
    setU16(bytes, identification, (u16At(bytes, identification) + index) & 0xffff);
  } else setU16(bytes, network + IPV6_LENGTH_PLACE, end - network - IPV6_HEADER_BYTES);
  addToSequence(bytes, transport + TCP_SEQUENCE_PLACE, firstByte);
  if (!isLast) bytes[transport + TCP_FLAGS_PLACE] = bytes[transport + TCP_FLAGS_PLACE]! & ~FIN_AND_PSH;
  fillIpChecksum(bytes, places);
  fillTransportChecksum(bytes, places);
}

function addToSequence(bytes: Uint8Array, place: number, count: number): void {
  const sequence = (u16At(bytes, place) * 0x1_0000 + u16At(bytes, place + 2) + count) >>> 0;
  setU16(bytes, place, sequence >>> 16);
  setU16(bytes, place + 2, sequence & 0xffff);
}

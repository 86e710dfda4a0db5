/**
 * Header fields that the HCA reads in frames and writes into them: the tag, and the checksums of IP, TCP and UDP.
 *
 *     destination 6 | source 6 | [ 8100 or 88a8 | tag 2 ] | type 2 | payload
 *
 * The value that software put into a checksum field is ignored when the checksum is computed. Sources: IEEE 802.3-2018,
 * 3.1; IEEE 802.1Q-2018, 9; RFC 791, 1071, 768, 8200, 9293.
 */
export const TAG_PLACE = 12;
export const TAG_BYTES = 4;
const TYPE_C_VLAN = 0x8100;
const TYPE_S_VLAN = 0x88a8;
const TYPE_IPV4 = 0x0800;
const TYPE_IPV6 = 0x86dd;
const PROTOCOL_TCP = 6;
const PROTOCOL_UDP = 17;
const TCP_CHECKSUM_PLACE = 16;
const UDP_CHECKSUM_PLACE = 6;
const UDP_LENGTH_PLACE = 4;
export const TCP_HEADER_BYTES = 20;
const UDP_HEADER_BYTES = 8;
const IPV4_CHECKSUM_PLACE = 10;
export const IPV4_HEADER_BYTES = 20;
export const IPV6_HEADER_BYTES = 40;
export const IPV4_ADDRESSES_PLACE = 12;
export const IPV6_ADDRESSES_PLACE = 8;
/** Source and destination. */
export const IPV4_ADDRESS_BYTES = 8;
export const IPV6_ADDRESS_BYTES = 32;
const FRAGMENT_MASK = 0x3fff;
const NO_TAG = -1;

export const u16At = (bytes: Uint8Array, at: number): number => (bytes[at]! << 8) | bytes[at + 1]!;

export function setU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value & 0xff;
}

const isTagType = (type: number): boolean => type === TYPE_C_VLAN || type === TYPE_S_VLAN;

/**
 * Returns the control information of the frame's outer tag, or -1. With `isCustomerOnly`, other tags than a customer's
 * are ignored.
 */
export function tagOf(bytes: Uint8Array, at: number, isCustomerOnly = false): number {
  const type = u16At(bytes, at + TAG_PLACE);
  const isTag = isCustomerOnly ? type === TYPE_C_VLAN : isTagType(type);
  return isTag ? u16At(bytes, at + TAG_PLACE + 2) : NO_TAG;
}

/** Copies a frame and inserts a tag. Returns its bytes then. */
export function insertTag(
  from: Uint8Array,
  at: number,
  frameBytes: number,
  type: number,
  tag: number,
  to: Uint8Array,
): number {
  to.set(from.subarray(at, at + TAG_PLACE));
  setU16(to, TAG_PLACE, type);
  setU16(to, TAG_PLACE + 2, tag);
  to.set(from.subarray(at + TAG_PLACE, at + frameBytes), TAG_PLACE + TAG_BYTES);
  return frameBytes + TAG_BYTES;
}

/** Offsets of the headers of a frame's packet. */
export interface PacketPlaces {
  readonly isIpv4: boolean;
  readonly network: number;
  /** -1: a fragment, or a header is not whole. */
  readonly transport: number;
  readonly protocol: number;
  /** Offset after the last byte of the packet; the bytes that follow are padding. */
  readonly end: number;
}

/**
 * Returns the offsets of an IP packet in the frame at `at`; undefined for other frames. IPv6 with extension headers has
 * no transport offset.
 */
export function packetPlacesOf(bytes: Uint8Array, at: number, frameBytes: number): PacketPlaces | undefined {
  const frameEnd = at + frameBytes;
  const { version, network } = ipVersionOf(bytes, at, frameEnd);
  if (version === 4) return ipv4Places(bytes, network, frameEnd);
  return version === 6 ? ipv6Places(bytes, network, frameEnd) : undefined;
}

/** Returns the IP version of the frame at `at` (0 if it carries no IP), and the offset after its tags and EtherType. */
export function ipVersionOf(
  bytes: Uint8Array,
  at: number,
  frameEnd: number,
): { readonly version: 0 | 4 | 6; readonly network: number } {
  let place = at + TAG_PLACE;
  while (place < frameEnd && isTagType(u16At(bytes, place))) place += TAG_BYTES;
  const type = u16At(bytes, place);
  const network = place + 2;
  if (type === TYPE_IPV4) return { version: 4, network };
  return { version: type === TYPE_IPV6 ? 6 : 0, network };
}

function ipv4Places(bytes: Uint8Array, network: number, frameEnd: number): PacketPlaces | undefined {
  const headerBytes = (bytes[network]! & 0xf) * 4;
  const end = network + u16At(bytes, network + 2);
  if (headerBytes < IPV4_HEADER_BYTES || network + headerBytes > end || end > frameEnd) return undefined;
  const protocol = bytes[network + 9]!;
  const transport = isFragment(bytes, network) ? -1 : network + headerBytes;
  return { isIpv4: true, network, transport, protocol, end };
}

/** True if an IPv4 packet is a fragment: more fragments follow, or it is not the first. */
export const isFragment = (bytes: Uint8Array, network: number): boolean =>
  (u16At(bytes, network + 6) & FRAGMENT_MASK) !== 0;

function ipv6Places(bytes: Uint8Array, network: number, frameEnd: number): PacketPlaces | undefined {
  const end = network + IPV6_HEADER_BYTES + u16At(bytes, network + 4);
  if (end > frameEnd) return undefined;
  return {
    isIpv4: false,
    network,
    transport: network + IPV6_HEADER_BYTES,
    protocol: bytes[network + 6]!,
    end,
  };
}

/** True if the packet is TCP's or UDP's, and the frame contains its ports. */
export function hasPorts({ transport, protocol, end }: PacketPlaces): boolean {
  return transport !== -1 && transport + 4 <= end && (protocol === PROTOCOL_TCP || protocol === PROTOCOL_UDP);
}

export const isTcp = ({ protocol }: PacketPlaces): boolean => protocol === PROTOCOL_TCP;

/** True if the frame contains the whole header of TCP or UDP. */
export function hasWholeHeader(places: PacketPlaces): boolean {
  if (!hasPorts(places)) return false;
  return places.transport + (isTcp(places) ? TCP_HEADER_BYTES : UDP_HEADER_BYTES) <= places.end;
}

/** Writes the checksum of the IPv4 header. */
export function fillIpChecksum(bytes: Uint8Array, { isIpv4, network }: PacketPlaces): void {
  if (!isIpv4) return;
  const headerBytes = (bytes[network]! & 0xf) * 4;
  setU16(bytes, network + IPV4_CHECKSUM_PLACE, 0);
  setU16(bytes, network + IPV4_CHECKSUM_PLACE, checksumOf(bytes, network, network + headerBytes));
}

/** Writes the checksum of TCP or UDP. A UDP checksum of 0 would mean "no checksum" (RFC 768), so ffff replaces it. */
export function fillTransportChecksum(bytes: Uint8Array, places: PacketPlaces): void {
  const { transport, protocol, end } = places;
  if (!hasPorts(places)) return;
  const place = transport + (protocol === PROTOCOL_TCP ? TCP_CHECKSUM_PLACE : UDP_CHECKSUM_PLACE);
  if (place + 2 > end) return;
  setU16(bytes, place, 0);
  const checksum = checksumOf(bytes, transport, end, pseudoHeaderSum(bytes, places));
  setU16(bytes, place, checksum === 0 && protocol === PROTOCOL_UDP ? 0xffff : checksum);
}

/** True where the checksum of the IPv4 header is right. */
export function isIpChecksumRight(bytes: Uint8Array, { network }: PacketPlaces): boolean {
  const headerBytes = (bytes[network]! & 0xf) * 4;
  return foldedSum(wordSum(bytes, network, network + headerBytes)) === FULL_SUM;
}

/** True if the checksum of TCP or UDP is right; false for UDP without a checksum. */
export function isTransportChecksumRight(bytes: Uint8Array, places: PacketPlaces): boolean {
  const { transport, end } = places;
  const isUdp = !isTcp(places);
  if (isUdp && u16At(bytes, transport + UDP_LENGTH_PLACE) !== end - transport) return false;
  if (isUdp && u16At(bytes, transport + UDP_CHECKSUM_PLACE) === 0) return false;
  return foldedSum(pseudoHeaderSum(bytes, places) + wordSum(bytes, transport, end)) === FULL_SUM;
}

/**
 * Returns the ones' complement sum of the addresses and of the bytes from `from` to the packet's end, plus `startSum`.
 */
export function sumWithAddresses(
  bytes: Uint8Array,
  places: PacketPlaces,
  from: number,
  startSum: number,
): number {
  return foldedSum(startSum + addressSum(bytes, places) + wordSum(bytes, from, places.end));
}

/** Addresses, protocol and length. */
function pseudoHeaderSum(bytes: Uint8Array, places: PacketPlaces): number {
  return places.protocol + (places.end - places.transport) + addressSum(bytes, places);
}

function addressSum(bytes: Uint8Array, { isIpv4, network }: PacketPlaces): number {
  const first = network + (isIpv4 ? IPV4_ADDRESSES_PLACE : IPV6_ADDRESSES_PLACE);
  return wordSum(bytes, first, first + (isIpv4 ? IPV4_ADDRESS_BYTES : IPV6_ADDRESS_BYTES));
}

/** Sum of 16-bit words, the last one filled up with zeros. */
function wordSum(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0;
  for (let at = from; at + 1 < to; at += 2) sum += u16At(bytes, at);
  return ((to - from) & 1) === 1 ? sum + (bytes[to - 1]! << 8) : sum;
}

/** A sum whose complement is 0: data that include their own, correct checksum have this sum. */
export const FULL_SUM = 0xffff;

/** The ones' complement sum (RFC 1071). */
function foldedSum(wideSum: number): number {
  let sum = wideSum;
  while (sum > FULL_SUM) sum = (sum & 0xffff) + (sum >>> 16);
  return sum;
}

/** Returns the complement of that sum. */
const checksumOf = (bytes: Uint8Array, from: number, to: number, startSum = 0): number =>
  ~foldedSum(startSum + wordSum(bytes, from, to)) & 0xffff;

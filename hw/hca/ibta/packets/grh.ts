/**
 * Global route headers: built from an address path, and matched against the GIDs of the port. The bytes are as on the
 * wire; the record of a packet holds them after the payload (wire/packet.ts). On an Ethernet port the same 40 bytes may
 * hold zeros and an IPv4 header, whose addresses represent GIDs (IBTA vol 1, annex A17). Source: IBTA vol 1, 8.3.
 */
import { GRH_BYTES, isIpv4Route, lrh, NEXT_HEADER_BTH, VCRC_BYTES } from '../../../../wire/index.ts';
import type { PortAddress } from './port-address.ts';

const IP_VERSION = 6;
const GID_BYTES = 16;
const PAYLOAD_LENGTH_PLACE = 4;
const SOURCE_GID_PLACE = 8;
const DESTINATION_GID_PLACE = 24;
/** Offsets in an IPv4 header that ends with the 40 bytes. */
const SOURCE_IPV4_PLACE = 32;
const DESTINATION_IPV4_PLACE = 36;
/** Bytes of a packet that the payload length of its GRH does not count. */
export const UNCOUNTED_BYTES = lrh.sizeBytes + GRH_BYTES + VCRC_BYTES;

/**
 * Writes the GRH of an address path or vector: both have hop limit, class, flow label, source GID index and destination GID
 * at the same places.
 * @param path place of the path in `from`; @param to place of the GRH in `into`
 */
export function buildGrh(
  from: Uint8Array,
  path: number,
  address: PortAddress,
  into: Uint8Array,
  to: number,
): void {
  into[to] = (IP_VERSION << 4) | (from[path + 0x0c]! & 0x0f);
  for (let byte = 1; byte < PAYLOAD_LENGTH_PLACE; byte++) into[to + byte] = from[path + 0x0c + byte]!;
  into[to + 4] = 0;
  into[to + 5] = 0;
  into[to + 6] = NEXT_HEADER_BTH;
  into[to + 7] = from[path + 0x0b]!;
  const source = ((from[path + 0x09]! & 0x7f) * GID_BYTES) % address.gids.length;
  for (let byte = 0; byte < GID_BYTES; byte++) {
    into[to + SOURCE_GID_PLACE + byte] = address.gids[source + byte]!;
    into[to + DESTINATION_GID_PLACE + byte] = from[path + 0x10 + byte]!;
  }
}

/** Fills in the payload length of the GRH of a packet of this many bytes. */
export function setGrhLength(bytes: Uint8Array, grh: number, packetBytes: number): void {
  const length = packetBytes - UNCOUNTED_BYTES;
  bytes[grh + PAYLOAD_LENGTH_PLACE] = length >> 8;
  bytes[grh + PAYLOAD_LENGTH_PLACE + 1] = length & 0xff;
}

const isSameGid = (left: Uint8Array, leftAt: number, right: Uint8Array, rightAt: number): boolean => {
  for (let byte = GID_BYTES - 1; byte >= 0; byte--)
    if (left[leftAt + byte] !== right[rightAt + byte]) return false;
  return true;
};

const IPV4_BYTES = 4;
/** Layout of a GID that represents an IPv4 address: ten zeros, then ones up to the address (RFC 4291, 2.5.5.2). */
const MAPPED_ZEROS = 10;
const MAPPED_PREFIX_BYTES = GID_BYTES - IPV4_BYTES;

/** True for a GID that is an IPv4 address. */
export function isMappedGid(bytes: Uint8Array, at: number): boolean {
  for (let byte = 0; byte < MAPPED_PREFIX_BYTES; byte++)
    if (bytes[at + byte] !== (byte < MAPPED_ZEROS ? 0 : 0xff)) return false;
  return true;
}

/** True where the GID at `gid` is the IPv4 address at `at`. */
function isMappedAddress(gids: Uint8Array, gid: number, bytes: Uint8Array, at: number): boolean {
  for (let byte = 0; byte < IPV4_BYTES; byte++)
    if (gids[gid + MAPPED_PREFIX_BYTES + byte] !== bytes[at + byte]) return false;
  return isMappedGid(gids, gid);
}

/** True if the GID is one of the port's table entries; an entry of zeros is empty. */
function isOwnGid(address: PortAddress, bytes: Uint8Array, at: number): boolean {
  const { gids } = address;
  if (bytes[at] === 0 && !isMappedGid(bytes, at)) return false;
  for (let entry = 0; entry < gids.length; entry += GID_BYTES)
    if (isSameGid(gids, entry, bytes, at)) return true;
  return false;
}

/** True when the GRH names this port as its destination. */
export const isGrhForPort = (address: PortAddress, bytes: Uint8Array, grh: number): boolean =>
  isIpv4Route(bytes, grh)
    ? isOwnIpv4(address, bytes, grh + DESTINATION_IPV4_PLACE)
    : isOwnGid(address, bytes, grh + DESTINATION_GID_PLACE);

/** True when the GRH names the GID at `at` of `gids` as its destination. */
export const isGrhForGid = (gids: Uint8Array, at: number, bytes: Uint8Array, grh: number): boolean =>
  isIpv4Route(bytes, grh)
    ? isMappedAddress(gids, at, bytes, grh + DESTINATION_IPV4_PLACE)
    : isSameGid(gids, at, bytes, grh + DESTINATION_GID_PLACE);

function isOwnIpv4(address: PortAddress, bytes: Uint8Array, at: number): boolean {
  const { gids } = address;
  for (let entry = 0; entry < gids.length; entry += GID_BYTES)
    if (isMappedAddress(gids, entry, bytes, at)) return true;
  return false;
}

/** Whether an address of IPv4 or IPv6 is that of a group: 224.0.0.0/4 (RFC 1112, 4) and ff00::/8 (RFC 4291, 2.7). */
const isGroupIpv4 = (first: number): boolean => first >> 4 === 0xe;
const GROUP_PREFIX = 0xff;

/**
 * True when the GRH names a multicast group as its destination. RoCE has groups of IPv4, too: as the address of an IPv4 header, and as a
 * mapped GID (annex A17; Linux' rdma_is_multicast_addr, and rxe_rcv_mcast_pkt).
 */
export function isGrhForGroup(bytes: Uint8Array, grh: number): boolean {
  if (isIpv4Route(bytes, grh)) return isGroupIpv4(bytes[grh + DESTINATION_IPV4_PLACE]!);
  const gid = grh + DESTINATION_GID_PLACE;
  if (bytes[gid] === GROUP_PREFIX) return true;
  return isGroupIpv4(bytes[gid + MAPPED_PREFIX_BYTES]!) && isMappedGid(bytes, gid);
}

/** True if the source GID of the GRH is the GID of this address path. */
export const isGrhFromPath = (bytes: Uint8Array, grh: number, from: Uint8Array, path: number): boolean =>
  isIpv4Route(bytes, grh)
    ? isMappedAddress(from, path + 0x10, bytes, grh + SOURCE_IPV4_PLACE)
    : isSameGid(bytes, grh + SOURCE_GID_PLACE, from, path + 0x10);

/** Exchanges source and destination. */
export function exchangeGids(bytes: Uint8Array, grh: number): void {
  const source = bytes.slice(grh + SOURCE_GID_PLACE, grh + DESTINATION_GID_PLACE);
  bytes.copyWithin(grh + SOURCE_GID_PLACE, grh + DESTINATION_GID_PLACE, grh + GRH_BYTES);
  bytes.set(source, grh + DESTINATION_GID_PLACE);
}

/** True when a path or vector with a GRH names this port as its destination. */
export const isLoopbackPath = (address: PortAddress, from: Uint8Array, path: number): boolean =>
  isOwnGid(address, from, path + 0x10);

/**
 * GIDs of Ethernet ports: the link-local address derived from a MAC (RFC 4291, appendix A), and an IPv4 address mapped into
 * IPv6 (RFC 4291, 2.5.5.2; IBTA annex A17.4.1).
 */
import { macBytesOf, macOfBytes, viewOf } from '../base/index.ts';

const gidBytes = 16;
const linkLocalPrefix = 0xfe80_0000_0000_0000n;
/** ::ffff/96 */
const mappedPrefixHigh = 0n;
const mappedPrefixLow = 0x0000_ffff;
const universalBit = 0x02;
const ipv4At = 12;

const isLinkLocal = (view: DataView): boolean => view.getBigUint64(0) === linkLocalPrefix;

export const isLinkLocalGid = (gid: Uint8Array): boolean => isLinkLocal(viewOf(gid));

export function isIpv4Gid(gid: Uint8Array): boolean {
  const view = viewOf(gid);
  return view.getBigUint64(0) === mappedPrefixHigh && view.getUint32(8) === mappedPrefixLow;
}

/** Link-local address from a modified EUI-64. */
export function gidOfMac(mac: number): Uint8Array {
  const gid = new Uint8Array(gidBytes);
  const bytes = macBytesOf(mac);
  viewOf(gid).setBigUint64(0, linkLocalPrefix);
  gid.set([bytes[0]! ^ universalBit, bytes[1]!, bytes[2]!, 0xff, 0xfe, ...bytes.subarray(3)], 8);
  return gid;
}

/** Whether a GID is that of a multicast group: an IPv6 address from ff00::, or an IPv4 address of 224.0.0.0/4 (Linux 6.1, rdma_is_multicast_addr). */
export const isMulticastGid = (gid: Uint8Array): boolean =>
  gid[0] === 0xff || (isIpv4Gid(gid) && (gid[ipv4At]! & 0xf0) === 0xe0);

/** The MAC of a multicast group: 01:00:5e and 23 bits of the IPv4 address (RFC 1112, 6.4), or 33:33 and 32 bits (RFC 2464, 7). */
export const multicastMacOf = (gid: Uint8Array): Uint8Array =>
  isIpv4Gid(gid)
    ? Uint8Array.of(0x01, 0x00, 0x5e, gid[13]! & 0x7f, gid[14]!, gid[15]!)
    : Uint8Array.of(0x33, 0x33, ...gid.subarray(ipv4At));

/** The MAC in a link-local GID: the inverse of {@link gidOfMac}. */
export const macOfGid = (gid: Uint8Array): number =>
  macOfBytes(Uint8Array.of(gid[8]! ^ universalBit, gid[9]!, gid[10]!, gid[13]!, gid[14]!, gid[15]!));

/** @param address IPv4, as text */
export function gidOfIpv4(address: string): Uint8Array {
  const gid = new Uint8Array(gidBytes);
  viewOf(gid).setUint32(8, mappedPrefixLow);
  gid.set(address.split('.').map(Number), ipv4At);
  return gid;
}

/** @param address IPv4, first byte highest */
export function gidOfIpv4Number(address: number): Uint8Array {
  const gid = new Uint8Array(gidBytes);
  viewOf(gid).setUint32(8, mappedPrefixLow);
  viewOf(gid).setUint32(ipv4At, address);
  return gid;
}

export const ipv4NumberOfGid = (gid: Uint8Array): number => viewOf(gid).getUint32(ipv4At);

export const ipv4OfGid = (gid: Uint8Array): string => gid.subarray(ipv4At).join('.');

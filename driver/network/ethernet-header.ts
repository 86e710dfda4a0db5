/** What frames of the kernel begin with, and addresses of it. Sources: IEEE 802.3-2018, 3.2; RFC 1112, 6.4 and RFC 2464, 7 (groups of IPv4 and IPv6). */
import { bytes, layout, u16 } from '../../base/index.ts';
import { isIpv4Gid } from '../gid.ts';

export const ethernetHeader = layout(
  'Ethernet header',
  { sizeBytes: 14, byteOrder: 'big', source: 'IEEE 802.3-2018, 3.2' },
  {
    destination: bytes(0, 6),
    source: bytes(6, 6),
    type: u16(12),
  },
);

/** All stations. */
export const broadcastMac = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff);

/** Whether a MAC is a group's, which no station has for its own. */
export const isGroupMac = (mac: Uint8Array): boolean => (mac[0]! & 1) === 1;

/** The MAC of a group of IPv6: 33-33, then the last four bytes. */
export const macOfIpv6Group = (group: Uint8Array): Uint8Array =>
  Uint8Array.of(0x33, 0x33, ...group.subarray(12));

const ipv4At = 12;
/** The first four bits of 224.0.0.0/4. */
const ipv4GroupNibble = 0xe;

/** The MAC of a GID that is a group's: an IPv6 group, or a mapped IPv4 group, of which 23 bits follow 01-00-5e. Undefined for a host's GID. */
export function macOfGroupGid(gid: Uint8Array): Uint8Array | undefined {
  if (gid[0] === 0xff) return macOfIpv6Group(gid);
  if (!isIpv4Gid(gid) || gid[ipv4At]! >> 4 !== ipv4GroupNibble) return undefined;
  return Uint8Array.of(0x01, 0x00, 0x5e, gid[ipv4At + 1]! & 0x7f, ...gid.subarray(ipv4At + 2));
}

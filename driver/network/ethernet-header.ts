/** What frames of the kernel begin with, and addresses of it. Sources: IEEE 802.3-2018, 3.2; RFC 2464, 7 (IPv6 groups). */
import { bytes, layout, u16 } from '../../base/index.ts';

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

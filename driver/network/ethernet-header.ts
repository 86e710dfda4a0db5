/** Header of the kernel's frames, and its addresses. Sources: IEEE 802.3-2018, 3.2; RFC 2464, 7 (IPv6 groups). */
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

/** Whether a MAC is a group's, which no station may own. */
export const isGroupMac = (mac: Uint8Array): boolean => (mac[0]! & 1) === 1;

/** The MAC of an IPv6 group: 33-33, then the last four bytes. */
export const macOfIpv6Group = (group: Uint8Array): Uint8Array =>
  Uint8Array.of(0x33, 0x33, ...group.subarray(12));

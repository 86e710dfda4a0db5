/** Ethernet frames as both software and hardware count them. Source: IEEE 802.3-2018, clause 3. */
import { bytes, layout, u16 } from '../../base/index.ts';

/** The header before every payload; the type is big-endian, as on the wire. */
export const ethernetHeader = layout(
  'Ethernet header',
  { sizeBytes: 14, byteOrder: 'big', source: 'IEEE 802.3, 3.1.1' },
  {
    destination: bytes(0, 6),
    source: bytes(6, 6),
    type: u16(12, 'EtherType, or the length of the payload'),
  },
);

export const ethernetHeaderBytes = 14;
/** A tag (IEEE 802.1Q, 9.6) after the two addresses: its EtherType, then priority, drop eligible and VLAN. */
export const ethernetTagBytes = 4;
/** Offset of the tag. */
export const ethernetTagAt = 12;
/** Frame check sequence: added and checked by the MAC, never in host memory. */
export const ethernetFcsBytes = 4;
/** Shortest frame on the wire, FCS included; shorter ones are padded. */
export const ethernetFrameMinBytes = 64;

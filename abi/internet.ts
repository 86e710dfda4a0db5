/**
 * The headers of the internet protocols that the kernel's network path, RoCE and iWARP share: IPv4 (RFC 791), IPv6 (RFC 8200),
 * UDP (RFC 768), and the VLAN tag before them (IEEE 802.1Q). Differentiated services and ECN: RFC 2474, RFC 3168.
 */
import { bits8, bits16, bits32, bytes, layout, u8, u16, u32 } from '../base/index.ts';

export const EtherType = {
  IPV4: 0x0800,
  ARP: 0x0806,
  VLAN: 0x8100,
  IPV6: 0x86dd,
  /** The outer of two tags: IEEE 802.1ad, and the number used before that standard. */
  PROVIDER_VLAN: 0x88a8,
  /** A whole Ethernet frame in a tunnel: "transparent Ethernet bridging" (RFC 7637, 3.2; RFC 8926, 3.4). */
  BRIDGED: 0x6558,
  ROCE: 0x8915,
  OLD_PROVIDER_VLAN: 0x9100,
} as const;
export const IpProtocol = { ICMP: 1, TCP: 6, UDP: 17, GRE: 47, ICMPV6: 58 } as const;
/** Headers that may follow IPv6's own (RFC 8200, 4). */
export const Ipv6Extension = { HOP_BY_HOP: 0, ROUTING: 43, FRAGMENT: 44, DESTINATION: 60 } as const;

/** After the addresses of a frame, before its type. */
export const vlanTag = layout(
  'VLAN tag',
  { sizeBytes: 4, byteOrder: 'big', source: 'IEEE 802.1Q, 9.6' },
  {
    priority: bits16(0, 15, 13),
    dropEligible: bits16(0, 12, 12),
    vlan: bits16(0, 11, 0),
    type: u16(2, 'EtherType of what follows'),
  },
);

export const ipv4Header = layout(
  'IPv4 header',
  { sizeBytes: 20, byteOrder: 'big', source: 'RFC 791, 3.1' },
  {
    versionAndLength: u8(0, '0x45: version 4, five dwords'),
    differentiatedServices: bits8(1, 7, 2),
    ecn: bits8(1, 1, 0, '3: congestion experienced'),
    totalLength: u16(2, 'bytes from here to the end of the packet'),
    identification: u16(4),
    fragment: u16(6, '0x4000: do not fragment'),
    timeToLive: u8(8),
    protocol: u8(9),
    checksum: u16(10, 'of this header'),
    source: u32(12),
    destination: u32(16),
  },
);

export const ipv6Header = layout(
  'IPv6 header',
  { sizeBytes: 40, byteOrder: 'big', source: 'RFC 8200, 3' },
  {
    version: bits32(0, 31, 28, '6'),
    differentiatedServices: bits32(0, 27, 22),
    ecn: bits32(0, 21, 20),
    flowLabel: bits32(0, 19, 0),
    payloadLength: u16(4, 'bytes behind this header'),
    nextHeader: u8(6),
    hopLimit: u8(7),
    source: bytes(8, 16),
    destination: bytes(24, 16),
  },
);

export const udpHeader = layout(
  'UDP header',
  { sizeBytes: 8, byteOrder: 'big', source: 'RFC 768' },
  {
    sourcePort: u16(0),
    destinationPort: u16(2),
    length: u16(4, 'of this header and what follows'),
    checksum: u16(6, '0: none'),
  },
);

export const tcpHeader = layout(
  'TCP header',
  { sizeBytes: 20, byteOrder: 'big', source: 'RFC 9293, 3.1' },
  {
    sourcePort: u16(0),
    destinationPort: u16(2),
    sequence: u32(4),
    acknowledgement: u32(8),
    dataOffset: bits8(12, 7, 4, 'dwords of this header, options included'),
    syn: bits8(13, 1, 1),
    window: u16(14),
  },
);

/**
 * The formats of capture files: pcap and pcapng, each in the byte order of the machine that wrote the file.
 *
 * Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
 */
import { bytes, layout, u8, u16, u32 } from '../../base/index.ts';

const PCAP = 'draft-ietf-opsawg-pcap';
const PCAPNG = 'draft-ietf-opsawg-pcapng';

export const LinkType = {
  /** A loopback interface of BSD or macOS: the address family precedes the packet, in the byte order of the machine that wrote it. */
  NULL: 0,
  ETHERNET: 1,
  /** An IP packet without a preceding header: numbers that systems used before 101 was assigned. */
  RAW_BSD: 12,
  RAW_OPENBSD: 14,
  RAW: 101,
  /** Like NULL, but most significant byte first. */
  LOOP: 108,
  /** Linux' device "any", and its second form. */
  LINUX_COOKED: 113,
  ERF: 197,
  IPV4: 228,
  IPV6: 229,
  INFINIBAND: 247,
  LINUX_COOKED_2: 276,
} as const;

export const BlockType = {
  SECTION: 0x0a0d_0d0a,
  INTERFACE: 1,
  /** Block type of files written before 2009. */
  OBSOLETE_PACKET: 2,
  SIMPLE_PACKET: 3,
  INTERFACE_STATISTICS: 5,
  PACKET: 6,
} as const;

/** Blocks that hold no packets, by name. */
export const blocksWithoutPackets: Readonly<Record<number, string>> = {
  4: 'name resolution',
  9: 'systemd journal',
  10: 'decryption secrets',
  2989: 'custom',
  1073744813: 'custom',
};

/** Codes of options. All but the first two are specific to a block type. */
export const OptionCode = {
  END: 0,
  COMMENT: 1,
  SECTION_APPLICATION: 4,
  INTERFACE_NAME: 2,
  INTERFACE_DESCRIPTION: 3,
  INTERFACE_SPEED: 8,
  INTERFACE_RESOLUTION: 9,
  INTERFACE_TIME_OFFSET: 14,
  PACKET_FLAGS: 2,
  STATISTICS_DROPPED: 5,
  STATISTICS_DROPPED_BY_SYSTEM: 7,
} as const;

/**
 * A record of Endace's ERF format, which Wireshark uses for InfiniBand; Wireshark does not read link type 247 (tried
 * with tshark 4.0). Its time stamp is in units of 2^-32 s, least significant byte first.
 */
export const erfHeader = layout(
  'ERF record header',
  { sizeBytes: 16, byteOrder: 'big', source: PCAP },
  {
    timeStamp: bytes(0, 8),
    type: u8(8, '21: InfiniBand'),
    flags: u8(9, '4: records differ in length'),
    recordLength: u16(10, 'header and packet'),
    lossCounter: u16(12),
    wireLength: u16(14, 'of the packet'),
  },
);
/** Types of ERF records. Further types carry no InfiniBand or RoCE packet in a known form. */
export const ErfType = {
  ETHERNET: 2,
  COLOR_ETHERNET: 11,
  DSM_COLOR_ETHERNET: 16,
  COLOR_HASH_ETHERNET: 20,
  INFINIBAND: 21,
  IPV4: 22,
  IPV6: 23,
} as const;
export const ERF_VARYING_LENGTH = 4;
/**
 * Bit of the record type: extension headers of 8 bytes follow. The same bit in the first byte of an extension header
 * announces another one.
 */
export const ERF_MORE_HEADERS = 0x80;
export const ERF_EXTENSION_BYTES = 8;
/** Bytes between the record's header and an Ethernet frame. */
export const ERF_ETHERNET_PAD_BYTES = 2;

/** Header that Linux writes before packets of any device. Source: LINKTYPE_LINUX_SLL of the tcpdump group. */
export const linuxCooked = layout(
  'Linux cooked header',
  { sizeBytes: 16, byteOrder: 'big', source: 'LINKTYPE_LINUX_SLL' },
  { packetType: u16(0, '4: sent by this host'), deviceType: u16(2), protocol: u16(14, 'an EtherType') },
);
/** Source: LINKTYPE_LINUX_SLL2 of the tcpdump group. */
export const linuxCooked2 = layout(
  'Linux cooked header, version 2',
  { sizeBytes: 20, byteOrder: 'big', source: 'LINKTYPE_LINUX_SLL2' },
  {
    protocol: u16(0, 'an EtherType'),
    deviceIndex: u32(4),
    deviceType: u16(8),
    packetType: u8(10, '4: sent by this host'),
  },
);
export const COOKED_OUTGOING = 4;

/** First word of a file: pcap with microseconds, pcap with nanoseconds. */
export const PCAP_MICROSECONDS = 0xa1b2_c3d4;
export const PCAP_NANOSECONDS = 0xa1b2_3c4d;
/** Second word of a section, after its type and length. */
export const BYTE_ORDER_MAGIC = 0x1a2b_3c4d;

function layoutsOf(byteOrder: 'little' | 'big') {
  const ofPcap = (sizeBytes: number) => ({ sizeBytes, byteOrder, source: PCAP }) as const;
  const ofPcapng = (sizeBytes: number) => ({ sizeBytes, byteOrder, source: PCAPNG }) as const;
  const block = { type: u32(0), length: u32(4, 'of the whole block; repeated at its end') };
  return {
    isLittle: byteOrder === 'little',
    fileHeader: layout('pcap file header', ofPcap(24), {
      magic: u32(0),
      major: u16(4),
      minor: u16(6),
      snapLength: u32(16),
      linkType: u32(20),
    }),
    recordHeader: layout('pcap record header', ofPcap(16), {
      seconds: u32(0),
      fraction: u32(4, 'microseconds or nanoseconds'),
      capturedLength: u32(8),
      originalLength: u32(12),
    }),
    block: layout('pcapng block', ofPcapng(8), block),
    section: layout('pcapng section header', ofPcapng(24), {
      ...block,
      byteOrderMagic: u32(8),
      major: u16(12),
      minor: u16(14),
      lengthLow: u32(16, 'all ones: not said'),
      lengthHigh: u32(20),
    }),
    interface: layout('pcapng interface description', ofPcapng(16), {
      ...block,
      linkType: u16(8),
      snapLength: u32(12),
    }),
    packet: layout('pcapng enhanced packet', ofPcapng(28), {
      ...block,
      interface: u32(8),
      timeHigh: u32(12),
      timeLow: u32(16),
      capturedLength: u32(20),
      originalLength: u32(24),
    }),
    obsoletePacket: layout('pcapng packet (obsolete)', ofPcapng(28), {
      ...block,
      interface: u16(8),
      drops: u16(10, 'packets dropped since the one before; all ones: not said'),
      timeHigh: u32(12),
      timeLow: u32(16),
      capturedLength: u32(20),
      originalLength: u32(24),
    }),
    simplePacket: layout('pcapng simple packet', ofPcapng(12), { ...block, originalLength: u32(8) }),
    statistics: layout('pcapng interface statistics', ofPcapng(20), {
      ...block,
      interface: u32(8),
      timeHigh: u32(12),
      timeLow: u32(16),
    }),
    option: layout('pcapng option', ofPcapng(4), { code: u16(0), length: u16(2) }),
  } as const;
}

export type CaptureLayouts = ReturnType<typeof layoutsOf>;
export const littleEndian = layoutsOf('little');
export const bigEndian = layoutsOf('big');

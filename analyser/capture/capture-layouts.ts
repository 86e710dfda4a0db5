/**
 * The formats of capture files: pcap and pcapng, in both byte orders, as the machine that wrote one had it.
 *
 * Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
 */
import { bytes, layout, u8, u16, u32 } from '../../base/index.ts';

const PCAP = 'draft-ietf-opsawg-pcap';
const PCAPNG = 'draft-ietf-opsawg-pcapng';

export const LinkType = { ETHERNET: 1, ERF: 197, INFINIBAND: 247 } as const;

export const BlockType = {
  SECTION: 0x0a0d_0d0a,
  INTERFACE: 1,
  SIMPLE_PACKET: 3,
  INTERFACE_STATISTICS: 5,
  PACKET: 6,
} as const;

/** Codes of options, each within its block but for the first two. */
export const OptionCode = {
  END: 0,
  COMMENT: 1,
  SECTION_APPLICATION: 4,
  INTERFACE_NAME: 2,
  INTERFACE_DESCRIPTION: 3,
  INTERFACE_SPEED: 8,
  INTERFACE_RESOLUTION: 9,
  PACKET_FLAGS: 2,
  STATISTICS_DROPPED: 5,
} as const;

/**
 * A record of Endace's ERF format: what Wireshark reads InfiniBand in. To link type 247 it has no reader (seen with tshark 4.0).
 * The time stamp is in units of 2^-32 s, its low byte first.
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
export const ERF_INFINIBAND = 21;
export const ERF_VARYING_LENGTH = 4;

/** First word of a file: pcap with microseconds, pcap with nanoseconds. */
export const PCAP_MICROSECONDS = 0xa1b2_c3d4;
export const PCAP_NANOSECONDS = 0xa1b2_3c4d;
/** Second word after a section's type and length. */
export const BYTE_ORDER_MAGIC = 0x1a2b_3c4d;

function layoutsOf(byteOrder: 'little' | 'big') {
  const ofPcap = (sizeBytes: number) => ({ sizeBytes, byteOrder, source: PCAP }) as const;
  const ofPcapng = (sizeBytes: number) => ({ sizeBytes, byteOrder, source: PCAPNG }) as const;
  const block = { type: u32(0), length: u32(4, 'of the whole block; stands again at its end') };
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

/**
 * The headers above Ethernet, with real bytes: IPv4 without options (RFC 791), and the header of TCP (RFC 9293, 3.1),
 * whose options are sent in SYN segments only.
 *
 *     ┌ Ethernet 14 ┬ IPv4 20 ┬ transport 20 (28 in a SYN) ┬ payload … MTU − 40 ┐
 *
 * The transport speaks the part of TCP that it needs: no SACK, no timestamps, no urgent data, no simultaneous open.
 */
import { ipv4Header } from '../../abi/index.ts';
import { ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { bits16, layout, u16, u32 } from '../../base/index.ts';

export const transportHeader = layout(
  'transport header',
  { sizeBytes: 20, byteOrder: 'big', source: 'RFC 9293, 3.1' },
  {
    sourcePort: u16(0),
    destinationPort: u16(2),
    sequence: u32(4),
    acknowledgement: u32(8),
    dataOffset: bits16(12, 15, 12, 'length of this header in dwords'),
    flags: bits16(12, 7, 0, 'Flag'),
    window: u16(14, 'bytes we take beyond the acknowledgement, shifted by the scale'),
    checksum: u16(16, 'of pseudo header, header and payload'),
    urgent: u16(18),
  },
);

export const Flag = { FIN: 0x01, SYN: 0x02, RST: 0x04, PSH: 0x08, ACK: 0x10 } as const;

/** Options of a SYN: maximum segment size (kind 2) and window scale (kind 3), padded with a no-operation. */
export const Option = { END: 0, NO_OPERATION: 1, MAXIMUM_SEGMENT: 2, WINDOW_SCALE: 3 } as const;
export const synOptionBytes = 8;

export const ipv4HeaderBytes = ipv4Header.sizeBytes;
export const transportHeaderBytes = transportHeader.sizeBytes;
/** Headers in front of a payload. */
export const headerBytes = ethernetHeaderBytes + ipv4HeaderBytes + transportHeaderBytes;
/** Where transport header and checksum lie in a frame: what the transmit descriptor names. */
export const transportStart = ethernetHeaderBytes + ipv4HeaderBytes;
export const transportChecksumAt = transportStart + 16;
/** Bytes of a buffer kept free in front of a payload: the headers, rounded up to a cache line. */
export const headroomBytes = 64;

/** The longest header of all: bytes of a SYN. */
export const synBytes = headerBytes + synOptionBytes;

/**
 * The header of TCP (RFC 9293, 3.1), whose options are sent in SYN segments only. What is in front of it: ip-version.ts.
 *
 * The transport speaks the part of TCP that it needs: no SACK, no timestamps, no urgent data, no simultaneous open.
 */
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

export const transportHeaderBytes = transportHeader.sizeBytes;

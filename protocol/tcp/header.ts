/**
 * The header of TCP (RFC 9293, 3.1): its layout, written and parsed. Options are sent in SYN segments only.
 *
 * Not implemented: SACK, timestamps, urgent data, simultaneous open.
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
const Option = { END: 0, NO_OPERATION: 1, MAXIMUM_SEGMENT: 2, WINDOW_SCALE: 3 } as const;
export const synOptionBytes = 8;

export const transportHeaderBytes = transportHeader.sizeBytes;

/** The fields of a segment. One object is reused for many segments. */
export interface SegmentFields {
  sequence: number;
  acknowledgement: number;
  /** {@link Flag} bits. */
  flags: number;
  /** As the header has it: shifted by the scale. */
  window: number;
  /** Maximum segment size in bytes, an option of a SYN; 0: the segment has no options. */
  maximumSegment: number;
  /** Window scale, an option of a SYN; -1: absent. */
  windowScale: number;
}

/** The ports of a segment, from its sender's view. */
export interface SegmentPorts {
  readonly localPort: number;
  readonly remotePort: number;
}

const dword = 4;

/** Bytes of the header of a segment, options included. */
export const segmentHeaderBytes = ({ maximumSegment }: SegmentFields): number =>
  transportHeaderBytes + (maximumSegment > 0 ? synOptionBytes : 0);

/** Writes the header at `at`, with a checksum of 0. */
export function writeSegmentHeader(
  view: DataView,
  at: number,
  ports: SegmentPorts,
  segment: SegmentFields,
): void {
  const { fields } = transportHeader;
  const headerBytes = segmentHeaderBytes(segment);
  fields.sourcePort.set(view, at, ports.localPort);
  fields.destinationPort.set(view, at, ports.remotePort);
  fields.sequence.set(view, at, segment.sequence);
  fields.acknowledgement.set(view, at, segment.acknowledgement);
  view.setUint16(at + 12, 0);
  fields.dataOffset.set(view, at, headerBytes / dword);
  fields.flags.set(view, at, segment.flags);
  fields.window.set(view, at, segment.window);
  fields.checksum.set(view, at, 0);
  fields.urgent.set(view, at, 0);
  if (headerBytes === transportHeaderBytes) return;
  const options = at + transportHeaderBytes;
  view.setUint8(options, Option.MAXIMUM_SEGMENT);
  view.setUint8(options + 1, 4);
  view.setUint16(options + 2, segment.maximumSegment);
  if (segment.windowScale < 0) {
    view.setUint32(options + 4, Option.NO_OPERATION * 0x0101_0101);
    return;
  }
  view.setUint8(options + 4, Option.NO_OPERATION);
  view.setUint8(options + 5, Option.WINDOW_SCALE);
  view.setUint8(options + 6, 3);
  view.setUint8(options + 7, segment.windowScale);
}

/**
 * Parses the header at `at`.
 * @param lengthBytes of the segment
 * @returns bytes of the header, or 0 for one that is shorter than its fixed part or longer than the segment
 */
export function readSegmentHeader(
  view: DataView,
  at: number,
  lengthBytes: number,
  into: SegmentFields,
): number {
  if (lengthBytes < transportHeaderBytes) return 0;
  const headerBytes = transportHeader.fields.dataOffset.get(view, at) * dword;
  if (headerBytes < transportHeaderBytes || headerBytes > lengthBytes) return 0;
  const { fields } = transportHeader;
  into.sequence = fields.sequence.get(view, at);
  into.acknowledgement = fields.acknowledgement.get(view, at);
  into.flags = fields.flags.get(view, at);
  into.window = fields.window.get(view, at);
  readOptions(view, at + transportHeaderBytes, at + headerBytes, into);
  return headerBytes;
}

function readOptions(view: DataView, from: number, end: number, into: SegmentFields): void {
  into.maximumSegment = 0;
  into.windowScale = -1;
  for (let at = from; at < end; ) {
    const kind = view.getUint8(at);
    if (kind === Option.END) return;
    if (kind === Option.NO_OPERATION) {
      at++;
      continue;
    }
    // The last byte may be a kind whose length lies beyond the header.
    const length = at + 1 < end ? view.getUint8(at + 1) : 0;
    if (length < 2 || at + length > end) return;
    if (kind === Option.MAXIMUM_SEGMENT && length === 4) {
      into.maximumSegment = view.getUint16(at + 2);
    } else if (kind === Option.WINDOW_SCALE && length === 3) into.windowScale = view.getUint8(at + 2);
    at += length;
  }
}

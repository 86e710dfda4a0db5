/**
 * The header of TCP (RFC 9293, 3.1) and its options: maximum segment size, window scale and timestamps (RFC 7323), SACK (RFC 2018). Their order and
 * padding are those of Linux.
 *
 * Not implemented: urgent data, simultaneous open.
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

const Option = {
  END: 0,
  NO_OPERATION: 1,
  MAXIMUM_SEGMENT: 2,
  WINDOW_SCALE: 3,
  SACK_PERMITTED: 4,
  SACK: 5,
  TIMESTAMPS: 8,
} as const;
/** Bytes of maximum segment size and window scale, the options of every SYN. */
export const synOptionBytes = 8;
/** Bytes of the timestamps with two no-operations, or with SACK permitted in a SYN. */
export const timestampOptionBytes = 12;
const sackPermittedBytes = 4;
const sackHeaderBytes = 4;
const sackBlockBytes = 8;
/** Blocks that a header has room for: three with timestamps. */
export const sackBlocksMax = 4;

export const transportHeaderBytes = transportHeader.sizeBytes;

/** The fields of a segment. One object is reused for many segments: {@link newSegmentFields}. */
export interface SegmentFields {
  sequence: number;
  acknowledgement: number;
  /** {@link Flag} bits. */
  flags: number;
  /** Window as in the header: shifted by the scale. */
  window: number;
  /** Maximum segment size in bytes, an option of a SYN; 0: absent, as in every other segment. */
  maximumSegment: number;
  /** Window scale, an option of a SYN; -1: absent. */
  windowScale: number;
  /** SACK permitted, an option of a SYN. */
  isSackPermitted: boolean;
  /** TSval; -1: the segment has no timestamps. */
  timestamp: number;
  /** TSecr. */
  timestampEcho: number;
  /** Blocks of the SACK option. */
  sackBlocks: number;
  /** Left and right edge of each block. */
  readonly sackEdges: Uint32Array;
}

/** Fields without options. */
export const newSegmentFields = (): SegmentFields => ({
  sequence: 0,
  acknowledgement: 0,
  flags: 0,
  window: 0,
  maximumSegment: 0,
  windowScale: -1,
  isSackPermitted: false,
  timestamp: -1,
  timestampEcho: 0,
  sackBlocks: 0,
  sackEdges: new Uint32Array(2 * sackBlocksMax),
});

/** The ports of a segment, from its sender's view. */
export interface SegmentPorts {
  readonly localPort: number;
  readonly remotePort: number;
}

const dword = 4;

/** Bytes of the header of a segment, options included. */
export function segmentHeaderBytes(segment: SegmentFields): number {
  const { maximumSegment, timestamp, isSackPermitted, sackBlocks } = segment;
  let bytes = transportHeaderBytes;
  if (timestamp >= 0) bytes += timestampOptionBytes;
  if (maximumSegment > 0)
    return bytes + synOptionBytes + (isSackPermitted && timestamp < 0 ? sackPermittedBytes : 0);
  return sackBlocks > 0 ? bytes + sackHeaderBytes + sackBlocks * sackBlockBytes : bytes;
}

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
  if (headerBytes > transportHeaderBytes) writeOptions(view, at + transportHeaderBytes, segment);
}

const noOperations = (count: number): number => (Option.NO_OPERATION * 0x0101_0101) >>> (32 - 8 * count);

function writeOptions(view: DataView, from: number, segment: SegmentFields): void {
  const { maximumSegment, windowScale, isSackPermitted, timestamp } = segment;
  const isSyn = maximumSegment > 0;
  let at = from;
  if (isSyn) {
    view.setUint8(at, Option.MAXIMUM_SEGMENT);
    view.setUint8(at + 1, 4);
    view.setUint16(at + 2, maximumSegment);
    at += 4;
  }
  if (isSyn && isSackPermitted) {
    // Instead of the no-operations before the timestamps, or after two of its own.
    if (timestamp < 0) view.setUint16(at, noOperations(2));
    const kind = timestamp < 0 ? at + 2 : at;
    view.setUint8(kind, Option.SACK_PERMITTED);
    view.setUint8(kind + 1, 2);
    if (timestamp < 0) at += sackPermittedBytes;
  } else if (timestamp >= 0) view.setUint16(at, noOperations(2));
  if (timestamp >= 0) {
    view.setUint8(at + 2, Option.TIMESTAMPS);
    view.setUint8(at + 3, 10);
    view.setUint32(at + 4, timestamp);
    view.setUint32(at + 8, segment.timestampEcho);
    at += timestampOptionBytes;
  }
  if (isSyn) writeScale(view, at, windowScale);
  else if (segment.sackBlocks > 0) writeSack(view, at, segment);
}

function writeScale(view: DataView, at: number, windowScale: number): void {
  if (windowScale < 0) {
    view.setUint32(at, noOperations(4));
    return;
  }
  view.setUint8(at, Option.NO_OPERATION);
  view.setUint8(at + 1, Option.WINDOW_SCALE);
  view.setUint8(at + 2, 3);
  view.setUint8(at + 3, windowScale);
}

function writeSack(view: DataView, at: number, { sackBlocks, sackEdges }: SegmentFields): void {
  view.setUint16(at, noOperations(2));
  view.setUint8(at + 2, Option.SACK);
  view.setUint8(at + 3, 2 + sackBlocks * sackBlockBytes);
  for (let edge = 0; edge < 2 * sackBlocks; edge++)
    view.setUint32(at + sackHeaderBytes + 4 * edge, sackEdges[edge]!);
}

/**
 * Parses the header at `at`.
 * @param lengthBytes of the segment
 * @returns bytes of the header, or 0 if it is shorter than its fixed part or longer than the segment
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
  into.isSackPermitted = false;
  into.timestamp = -1;
  into.timestampEcho = 0;
  into.sackBlocks = 0;
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
    readOption(view, at, kind, length, into);
    at += length;
  }
}

/** Options of another length than their own are passed over. */
function readOption(view: DataView, at: number, kind: number, length: number, into: SegmentFields): void {
  if (kind === Option.MAXIMUM_SEGMENT && length === 4) into.maximumSegment = view.getUint16(at + 2);
  else if (kind === Option.WINDOW_SCALE && length === 3) into.windowScale = view.getUint8(at + 2);
  else if (kind === Option.SACK_PERMITTED && length === 2) into.isSackPermitted = true;
  else if (kind === Option.TIMESTAMPS && length === 10) {
    into.timestamp = view.getUint32(at + 2);
    into.timestampEcho = view.getUint32(at + 6);
  } else if (kind === Option.SACK && length > 2 && (length - 2) % sackBlockBytes === 0) {
    into.sackBlocks = Math.min((length - 2) / sackBlockBytes, sackBlocksMax);
    for (let edge = 0; edge < 2 * into.sackBlocks; edge++)
      into.sackEdges[edge] = view.getUint32(at + 2 + 4 * edge);
  }
}

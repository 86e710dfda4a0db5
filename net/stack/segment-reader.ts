/** Reads a received segment: checks its header, and says where the payload is. */
import { IpProtocol } from '../../abi/index.ts';
import { folded, sumOf } from './checksum.ts';
import { Option, transportHeader, transportHeaderBytes } from './headers.ts';
import type { IpPacket } from './ip-packet.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import type { Segment } from './segment-input.ts';

const dword = 4;

/** A segment with its ports; one object, reused. */
export interface ReadSegment extends Segment {
  sourcePort: number;
  destinationPort: number;
  payloadBytes: number;
}

export const newSegment = (): ReadSegment => ({
  sourcePort: 0,
  destinationPort: 0,
  payloadBytes: 0,
  sequence: 0,
  acknowledgement: 0,
  flags: 0,
  window: 0,
  maximumSegment: 0,
  windowScale: -1,
});

/**
 * Parses the segment in `buffer` and narrows the buffer to its payload.
 * @param sum of the packet behind its headers; -1: to be computed here
 */
export function readSegment(
  bytes: Uint8Array,
  view: DataView,
  buffer: PacketBuffer,
  { at, payloadBytes: segmentBytes, addressSum }: IpPacket,
  sum: number,
  into: ReadSegment,
): 'segment' | 'bad' | 'badChecksum' {
  if (segmentBytes < transportHeaderBytes) return 'bad';
  const plain = sum >= 0 ? sum : sumOf(bytes, at, segmentBytes);
  if (folded(plain + addressSum + IpProtocol.TCP + segmentBytes) !== 0xffff) return 'badChecksum';
  const headerLength = transportHeader.fields.dataOffset.get(view, at) * dword;
  if (headerLength < transportHeaderBytes || headerLength > segmentBytes) return 'bad';
  readTransport(view, at, into);
  readOptions(bytes, at + transportHeaderBytes, at + headerLength, into);
  into.payloadBytes = segmentBytes - headerLength;
  buffer.start = at + headerLength - buffer.address;
  buffer.length = into.payloadBytes;
  return 'segment';
}

function readTransport(view: DataView, at: number, into: ReadSegment): void {
  const { fields } = transportHeader;
  into.sourcePort = fields.sourcePort.get(view, at);
  into.destinationPort = fields.destinationPort.get(view, at);
  into.sequence = fields.sequence.get(view, at);
  into.acknowledgement = fields.acknowledgement.get(view, at);
  into.flags = fields.flags.get(view, at);
  into.window = fields.window.get(view, at);
}

function readOptions(bytes: Uint8Array, from: number, end: number, into: ReadSegment): void {
  into.maximumSegment = 0;
  into.windowScale = -1;
  for (let at = from; at < end; ) {
    const kind = bytes[at]!;
    if (kind === Option.END) return;
    if (kind === Option.NO_OPERATION) {
      at++;
      continue;
    }
    const length = bytes[at + 1]!;
    if (length < 2 || at + length > end) return;
    if (kind === Option.MAXIMUM_SEGMENT && length === 4) {
      into.maximumSegment = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    } else if (kind === Option.WINDOW_SCALE && length === 3) into.windowScale = bytes[at + 2]!;
    at += length;
  }
}

/** Parses a received segment: checks its header, and locates the payload. */
import { IpProtocol } from '../../abi/index.ts';
import {
  newSegmentFields,
  readSegmentHeader,
  type SegmentFields,
  transportHeader,
  transportHeaderBytes,
} from '../../protocol/tcp/index.ts';
import { folded, sumOf } from './checksum.ts';
import type { IpPacket } from './ip-packet.ts';
import type { PacketBuffer } from './packet-buffer.ts';

/** A segment with its ports; one object, reused. */
export interface ReadSegment extends SegmentFields {
  sourcePort: number;
  destinationPort: number;
  payloadBytes: number;
}

export const newSegment = (): ReadSegment => ({
  ...newSegmentFields(),
  sourcePort: 0,
  destinationPort: 0,
  payloadBytes: 0,
});

/**
 * Parses the segment in `buffer` and narrows the buffer to its payload.
 * @param sum of the packet after its headers; -1: to be computed here
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
  const headerLength = readSegmentHeader(view, at, segmentBytes, into);
  if (headerLength === 0) return 'bad';
  into.sourcePort = transportHeader.fields.sourcePort.get(view, at);
  into.destinationPort = transportHeader.fields.destinationPort.get(view, at);
  into.payloadBytes = segmentBytes - headerLength;
  buffer.start = at + headerLength - buffer.address;
  buffer.length = into.payloadBytes;
  return 'segment';
}

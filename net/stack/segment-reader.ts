/** Reads a received frame: checks every header, and says where the payload is. */
import { EtherType, IpProtocol, ipv4Header } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { folded, pseudoHeaderSum, sumOf } from './checksum.ts';
import { ipv4HeaderBytes, Option, transportHeader, transportHeaderBytes, transportStart } from './headers.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import type { Segment } from './segment-input.ts';

const moreFragments = 0x3fff;
const dword = 4;

/** A segment with its ends; one object, reused. */
export interface ReadSegment extends Segment {
  sourceAddress: number;
  sourcePort: number;
  destinationPort: number;
  payloadBytes: number;
}

export const newSegment = (): ReadSegment => ({
  sourceAddress: 0,
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
 * Parses the frame in `buffer` and narrows the buffer to its payload.
 * @param sum of the frame from the transport header on as the NIC computed it; -1: to be computed here
 */
export function readSegment(
  bytes: Uint8Array,
  view: DataView,
  buffer: PacketBuffer,
  sum: number,
  ourAddress: number,
  into: ReadSegment,
): 'segment' | 'bad' | 'badChecksum' {
  const frame = buffer.physical;
  if (buffer.length < transportStart + transportHeaderBytes) return 'bad';
  if (ethernetHeader.fields.type.get(view, frame) !== EtherType.IPV4) return 'bad';
  const ip = frame + ethernetHeaderBytes;
  const segmentBytes = readIpv4(bytes, view, ip, buffer.length - ethernetHeaderBytes, ourAddress);
  if (segmentBytes < transportHeaderBytes) return 'bad';
  const at = ip + ipv4HeaderBytes;
  into.sourceAddress = ipv4Header.fields.source.get(view, ip);
  // What the NIC summed behind the packet is the MAC's padding: zeros.
  const plain = sum >= 0 ? sum : sumOf(bytes, at, segmentBytes);
  const pseudo = pseudoHeaderSum(into.sourceAddress, ourAddress, IpProtocol.TCP, segmentBytes);
  if (folded(plain + pseudo) !== 0xffff) return 'badChecksum';
  const headerLength = transportHeader.fields.dataOffset.get(view, at) * dword;
  if (headerLength < transportHeaderBytes || headerLength > segmentBytes) return 'bad';
  readTransport(view, at, into);
  readOptions(bytes, at + transportHeaderBytes, at + headerLength, into);
  into.payloadBytes = segmentBytes - headerLength;
  buffer.start += transportStart + headerLength;
  buffer.length = into.payloadBytes;
  return 'segment';
}

/** @returns bytes of the packet behind the header, -1 for a packet that is not for us */
function readIpv4(bytes: Uint8Array, view: DataView, at: number, room: number, ourAddress: number): number {
  const { fields } = ipv4Header;
  const total = fields.totalLength.get(view, at);
  const isOurs =
    fields.versionAndLength.get(view, at) === 0x45 &&
    total <= room &&
    fields.protocol.get(view, at) === IpProtocol.TCP &&
    (fields.fragment.get(view, at) & moreFragments) === 0 &&
    fields.destination.get(view, at) === ourAddress &&
    folded(sumOf(bytes, at, ipv4HeaderBytes)) === 0xffff;
  return isOurs ? total - ipv4HeaderBytes : -1;
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

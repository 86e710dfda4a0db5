/** Builds frames in place: the three headers in front of a payload that lies behind the headroom of its buffer. */
import { EtherType, IpProtocol } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import type { Cpu } from '../platform.ts';
import { folded, pseudoHeaderSum, sumOf } from './checksum.ts';
import type { Ends } from './connection.ts';
import type { StackEnvironment } from './environment.ts';
import {
  headerBytes,
  Option,
  synOptionBytes,
  transportHeader,
  transportHeaderBytes,
  transportStart,
} from './headers.ts';
import { writeIpv4 } from './ipv4.ts';
import type { PacketBuffer } from './packet-buffer.ts';

const dword = 4;

/** The fields of a segment that change; one object, reused. */
export interface SegmentFields {
  sequence: number;
  acknowledgement: number;
  flags: number;
  /** As it stands in the header. */
  window: number;
  /** Of a SYN; 0: no options. */
  maximumSegment: number;
  /** -1: none. */
  windowScale: number;
}

/**
 * Writes the headers of a segment whose payload is `payloadBytes` at `payloadAt` of the buffer, and has it leave.
 * @returns false when there is no way to the neighbour
 */
export function sendSegment(
  cpu: Cpu,
  environment: StackEnvironment,
  ends: Ends,
  fields: SegmentFields,
  buffer: PacketBuffer,
  payloadAt: number,
  payloadBytes: number,
): boolean {
  const { device, platform, counts, costs, neighbours } = environment;
  const { remoteAddress } = ends;
  if (!neighbours.isReachable(remoteAddress)) return false;
  const { bytes, view } = platform.memory;
  const optionBytes = fields.maximumSegment > 0 ? synOptionBytes : 0;
  const start = payloadAt - headerBytes - optionBytes;
  const frame = buffer.address + start;
  const segmentBytes = transportHeaderBytes + optionBytes + payloadBytes;
  ethernetHeader.fields.type.set(view, frame, EtherType.IPV4);
  writeIpv4(environment, frame + ethernetHeaderBytes, IpProtocol.TCP, remoteAddress, segmentBytes);
  const at = frame + transportStart;
  writeTransport(view, at, ends, fields, optionBytes);
  const pseudo = pseudoHeaderSum(environment.address, remoteAddress, IpProtocol.TCP, segmentBytes);
  let checksum = folded(pseudo);
  if (!device.hasChecksumOffload) {
    cpu.charge('checksum', Math.ceil(segmentBytes / costs.checksumBytesPerCycle));
    counts.checksummedBytes += segmentBytes;
    checksum = ~folded(sumOf(bytes, at, segmentBytes, pseudo)) & 0xffff;
  }
  transportHeader.fields.checksum.set(view, at, checksum);
  cpu.charge('protocol', costs.protocolTransmit);
  const lengthBytes = transportStart + segmentBytes;
  if (!neighbours.transmit(cpu, remoteAddress, { buffer, start, lengthBytes, isChecksummed: true }))
    return false;
  counts.segmentsSent++;
  return true;
}

function writeTransport(
  view: DataView,
  at: number,
  ends: Ends,
  segment: SegmentFields,
  optionBytes: number,
): void {
  const { fields } = transportHeader;
  fields.sourcePort.set(view, at, ends.localPort);
  fields.destinationPort.set(view, at, ends.remotePort);
  fields.sequence.set(view, at, segment.sequence);
  fields.acknowledgement.set(view, at, segment.acknowledgement);
  view.setUint16(at + 12, 0);
  fields.dataOffset.set(view, at, (transportHeaderBytes + optionBytes) / dword);
  fields.flags.set(view, at, segment.flags);
  fields.window.set(view, at, segment.window);
  fields.checksum.set(view, at, 0);
  fields.urgent.set(view, at, 0);
  if (optionBytes === 0) return;
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

/** Builds frames in place: the headers in front of a payload that lies behind the headroom of its buffer. */
import { IpProtocol } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import type { Cpu } from '../platform.ts';
import { folded, sumOf } from './checksum.ts';
import type { Ends } from './connection.ts';
import type { StackEnvironment } from './environment.ts';
import { Option, synOptionBytes, transportHeader, transportHeaderBytes } from './headers.ts';
import { ipVersionOf } from './ip-version.ts';
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
  const { device, platform, counts, costs } = environment;
  const { route } = ends;
  const version = ipVersionOf(route.destination);
  const { bytes, view } = platform.memory;
  const optionBytes = fields.maximumSegment > 0 ? synOptionBytes : 0;
  const start = payloadAt - version.transportStart - transportHeaderBytes - optionBytes;
  const frame = buffer.address + start;
  const segmentBytes = transportHeaderBytes + optionBytes + payloadBytes;
  ethernetHeader.fields.type.set(view, frame, version.etherType);
  const header = frame + ethernetHeaderBytes;
  const addressSum = version.write(platform.memory, header, route, IpProtocol.TCP, segmentBytes);
  const at = frame + version.transportStart;
  writeTransport(view, at, ends, fields, optionBytes);
  const pseudo = addressSum + IpProtocol.TCP + segmentBytes;
  let checksum = folded(pseudo);
  if (!device.hasChecksumOffload) {
    cpu.charge('checksum', Math.ceil(segmentBytes / costs.checksumBytesPerCycle));
    counts.checksummedBytes += segmentBytes;
    checksum = ~folded(sumOf(bytes, at, segmentBytes, pseudo)) & 0xffff;
  }
  transportHeader.fields.checksum.set(view, at, checksum);
  cpu.charge('protocol', costs.protocolTransmit);
  const lengthBytes = version.transportStart + segmentBytes;
  const outbound = { buffer, start, lengthBytes, checksum: version.segmentChecksum };
  if (!route.via.transmit(cpu, route, outbound)) return false;
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

/** Builds frames in place: the three headers in front of a payload that lies behind the headroom of its buffer. */
import { EtherType, IpProtocol, ipv4Header } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import type { Cpu } from '../platform.ts';
import { folded, pseudoHeaderSum, sumOf } from './checksum.ts';
import type { Ends } from './connection.ts';
import type { StackEnvironment } from './environment.ts';
import {
  headerBytes,
  ipv4HeaderBytes,
  Option,
  synOptionBytes,
  transportHeader,
  transportHeaderBytes,
  transportStart,
} from './headers.ts';
import type { PacketBuffer } from './packet-buffer.ts';

const dword = 4;
const timeToLive = 64;
const versionAndLength = 0x45;
const doNotFragment = 0x4000;

/** The fields of a segment that change; one object, reused. */
export interface SegmentFields {
  sequence: number;
  acknowledgement: number;
  flags: number;
  /** As it stands in the header. */
  window: number;
  /** Of a SYN; 0: no options. */
  maximumSegment: number;
  windowScale: number;
}

/**
 * Writes the headers of a segment whose payload is `payloadBytes` at `payloadAt` of the buffer, and gives it to the device.
 * @returns false when the neighbour's hardware address is unknown
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
  const neighbour = environment.neighbour(ends.remoteAddress);
  if (neighbour === undefined) return false;
  const { bytes, view } = platform.memory;
  const optionBytes = fields.maximumSegment > 0 ? synOptionBytes : 0;
  const start = payloadAt - headerBytes - optionBytes;
  const frame = buffer.address + start;
  const segmentBytes = transportHeaderBytes + optionBytes + payloadBytes;
  bytes.set(neighbour, frame);
  bytes.set(device.macAddress, frame + 6);
  ethernetHeader.fields.type.set(view, frame, EtherType.IPV4);
  writeIpv4(environment, ends, frame + ethernetHeaderBytes, segmentBytes);
  const at = frame + transportStart;
  writeTransport(view, at, ends, fields, optionBytes);
  const pseudo = pseudoHeaderSum(environment.address, ends.remoteAddress, IpProtocol.TCP, segmentBytes);
  let checksum = folded(pseudo);
  if (!device.hasChecksumOffload) {
    cpu.charge('checksum', Math.ceil(segmentBytes / costs.checksumBytesPerCycle));
    counts.checksummedBytes += segmentBytes;
    checksum = ~folded(sumOf(bytes, at, segmentBytes, pseudo)) & 0xffff;
  }
  transportHeader.fields.checksum.set(view, at, checksum);
  cpu.charge('protocol', costs.protocolTransmit);
  device.transmit(cpu, buffer, start, transportStart + segmentBytes);
  counts.segmentsSent++;
  return true;
}

function writeIpv4(environment: StackEnvironment, ends: Ends, at: number, segmentBytes: number): void {
  const { bytes, view } = environment.platform.memory;
  const { fields } = ipv4Header;
  bytes.fill(0, at, at + ipv4HeaderBytes);
  fields.versionAndLength.set(view, at, versionAndLength);
  fields.totalLength.set(view, at, ipv4HeaderBytes + segmentBytes);
  fields.fragment.set(view, at, doNotFragment);
  fields.timeToLive.set(view, at, timeToLive);
  fields.protocol.set(view, at, IpProtocol.TCP);
  fields.source.set(view, at, environment.address);
  fields.destination.set(view, at, ends.remoteAddress);
  fields.checksum.set(view, at, ~folded(sumOf(bytes, at, ipv4HeaderBytes)) & 0xffff);
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
  view.setUint8(options + 4, Option.NO_OPERATION);
  view.setUint8(options + 5, Option.WINDOW_SCALE);
  view.setUint8(options + 6, 3);
  view.setUint8(options + 7, segment.windowScale);
}

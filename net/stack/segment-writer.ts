/** Builds frames in place: the headers directly before a payload that follows the headroom of its buffer. */
import { IpProtocol } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import {
  type SegmentFields,
  segmentHeaderBytes,
  transportHeader,
  writeSegmentHeader,
} from '../../protocol/tcp/index.ts';
import type { Cpu } from '../platform.ts';
import { folded, sumOf } from './checksum.ts';
import type { Ends } from './connection.ts';
import type { StackEnvironment } from './environment.ts';
import { ipVersionOf } from './ip-version.ts';
import type { PacketBuffer } from './packet-buffer.ts';

/**
 * Writes the headers of a segment whose payload is `payloadBytes` at `payloadAt` of the buffer, and sends it.
 * @returns false if the neighbour has no route
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
  const headerBytes = segmentHeaderBytes(fields);
  const start = payloadAt - version.transportStart - headerBytes;
  const frame = buffer.address + start;
  const segmentBytes = headerBytes + payloadBytes;
  ethernetHeader.fields.type.set(view, frame, version.etherType);
  const header = frame + ethernetHeaderBytes;
  const addressSum = version.write(platform.memory, header, route, IpProtocol.TCP, segmentBytes);
  const at = frame + version.transportStart;
  writeSegmentHeader(view, at, ends, fields);
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

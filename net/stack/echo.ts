/**
 * Answers requests of echo (ping): a packet of its own with the same identifier, sequence number and data, which the core copies, as
 * Linux does. Requests to all, and any other message of ICMP, are dropped and counted.
 * Sources: RFC 792, echo; RFC 1122, 3.2.2.6; RFC 1071; Linux 6.1, net/ipv4/icmp.c (icmp_echo, sysctl_icmp_echo_ignore_broadcasts).
 */
import { EtherType, IpProtocol } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { layout, u8, u16 } from '../../base/index.ts';
import type { Cpu } from '../platform.ts';
import { folded, sumOf } from './checksum.ts';
import type { StackEnvironment } from './environment.ts';
import { transportStart } from './headers.ts';
import { type Ipv4Packet, writeIpv4 } from './ipv4.ts';

const icmpHeader = layout(
  'ICMP header of an echo',
  { sizeBytes: 8, byteOrder: 'big', source: 'RFC 792, echo' },
  {
    type: u8(0),
    code: u8(1),
    checksum: u16(2, 'of this header and the data'),
    identifier: u16(4),
    sequence: u16(6),
  },
);

const IcmpType = { ECHO_REPLY: 0, ECHO: 8 } as const;

/** @param sum one's complement sum of the packet behind its IPv4 header, or -1: to be computed here */
export function icmpArrived(cpu: Cpu, environment: StackEnvironment, packet: Ipv4Packet, sum: number): void {
  const { platform, counts } = environment;
  const { bytes, view } = platform.memory;
  const { at, payloadBytes } = packet;
  const { fields } = icmpHeader;
  if (payloadBytes < icmpHeader.sizeBytes) {
    counts.badFrames++;
    return;
  }
  const whole = sum >= 0 ? sum : sumOf(bytes, at, payloadBytes);
  if (folded(whole) !== 0xffff) counts.badChecksums++;
  else if (fields.type.get(view, at) !== IcmpType.ECHO || fields.code.get(view, at) !== 0)
    counts.foreignProtocols++;
  else if (answer(cpu, environment, packet)) counts.echoReplies++;
  else counts.droppedForMemory++;
}

/** @returns false where there is no buffer, no room, or no way back */
function answer(cpu: Cpu, environment: StackEnvironment, { at, payloadBytes, source }: Ipv4Packet): boolean {
  const { device, platform, costs, counts } = environment;
  const buffer = device.room > 0 ? device.buffers.take() : undefined;
  if (buffer === undefined) return false;
  const { bytes, view } = platform.memory;
  const { fields } = icmpHeader;
  const icmp = buffer.address + transportStart;
  const { copyFixed, copyBytesPerCycle } = platform.costs;
  cpu.charge('protocol', costs.bufferAllocate + costs.protocolTransmit);
  cpu.charge('copy', copyFixed + Math.ceil(payloadBytes / copyBytesPerCycle));
  counts.copiesInside++;
  counts.copiedInsideBytes += payloadBytes;
  bytes.copyWithin(icmp, at, at + payloadBytes);
  fields.type.set(view, icmp, IcmpType.ECHO_REPLY);
  // The sum was right with the type of the request in its first word.
  const checksum = fields.checksum.get(view, icmp) + IcmpType.ECHO * 256;
  fields.checksum.set(view, icmp, folded(checksum));
  ethernetHeader.fields.type.set(view, buffer.address, EtherType.IPV4);
  writeIpv4(environment, buffer.address + ethernetHeaderBytes, IpProtocol.ICMP, source, payloadBytes);
  const frame = { buffer, start: 0, lengthBytes: transportStart + payloadBytes, isChecksummed: false };
  const isSent = environment.neighbours.transmit(cpu, source, frame);
  device.buffers.giveWhenSent(buffer);
  return isSent;
}

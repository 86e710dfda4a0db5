/**
 * ICMP, of both versions of IP: echo requests (ping) are answered with a new packet of the same identifier, sequence number and
 * data, which the core copies, as Linux does; neighbour messages go to their interface. Any other message is dropped and
 * counted, including errors about our own packets, since none of these passes a router. A broadcast request of IPv4 is not
 * answered; a request to an IPv6 group is. Sources: RFC 792, echo; RFC 1122, 3.2.2.6; RFC 4443, 2.3, 4.1 and 4.2; RFC 1071; RFC
 * 1624, 3; Linux 6.1, net/ipv4/icmp.c (icmp_echo, sysctl_icmp_echo_ignore_broadcasts), net/ipv6/icmp.c (icmpv6_echo_reply).
 */
import { IpProtocol } from '../../abi/index.ts';
import { ethernetHeader, ethernetHeaderBytes } from '../../abi/nic/index.ts';
import { layout, u8, u16 } from '../../base/index.ts';
import type { Cpu } from '../platform.ts';
import { folded, sumOf } from './checksum.ts';
import type { StackEnvironment } from './environment.ts';
import type { NetInterface, Route } from './interface.ts';
import type { IpPacket } from './ip-packet.ts';
import { ipVersionOf } from './ip-version.ts';
import type { PacketBuffer } from './packet-buffer.ts';

const icmpHeader = layout(
  'ICMP header of an echo',
  { sizeBytes: 8, byteOrder: 'big', source: 'RFC 792, echo; RFC 4443, 4.1' },
  {
    type: u8(0),
    code: u8(1),
    checksum: u16(2, 'of this header and the data; of IPv6 of its pseudo header, too'),
    identifier: u16(4),
    sequence: u16(6),
  },
);

/** Types of the messages of either version. */
const Echo = { request: 8, reply: 0, protocol: IpProtocol.ICMP } as const;
const Echo6 = { request: 128, reply: 129, protocol: IpProtocol.ICMPV6 } as const;

/** @param sum one's complement sum of the packet after its IPv4 header, or -1: to be computed here */
export function icmpArrived(
  cpu: Cpu,
  environment: StackEnvironment,
  via: NetInterface,
  packet: IpPacket,
  sum: number,
): void {
  if (!isRight(environment, packet, sum, 0)) return;
  const route = via.routeTo(packet.source);
  echoArrived(cpu, environment, Echo, packet, route);
}

/** @param sum of the packet after its headers, or -1; `buffer` holds its frame */
export function icmpv6Arrived(
  cpu: Cpu,
  environment: StackEnvironment,
  via: NetInterface,
  packet: IpPacket,
  sum: number,
  buffer: PacketBuffer,
): void {
  const { source, destination, addressSum, payloadBytes } = packet;
  if (!isRight(environment, packet, sum, addressSum + IpProtocol.ICMPV6 + payloadBytes)) return;
  if (via.receiveNeighborMessage(cpu, buffer)) return;
  const isToGroup = typeof destination !== 'number' && destination.isGroup;
  const isFromHost = typeof source !== 'number' && !source.isUnspecified && !via.isOwn(source);
  if (!isFromHost) environment.counts.badFrames++;
  else echoArrived(cpu, environment, Echo6, packet, via.routeTo(source, isToGroup ? undefined : destination));
}

/** Whether a message has a header and a correct checksum; counts those without. @param pseudoSum sum of its pseudo header */
function isRight(
  { platform, counts }: StackEnvironment,
  { at, payloadBytes }: IpPacket,
  sum: number,
  pseudoSum: number,
): boolean {
  if (payloadBytes < icmpHeader.sizeBytes) {
    counts.badFrames++;
    return false;
  }
  const whole = sum >= 0 ? sum : sumOf(platform.memory.bytes, at, payloadBytes);
  const isSummed = folded(whole + pseudoSum) === 0xffff;
  if (!isSummed) counts.badChecksums++;
  return isSummed;
}

function echoArrived(
  cpu: Cpu,
  environment: StackEnvironment,
  kind: typeof Echo | typeof Echo6,
  packet: IpPacket,
  route: Route | undefined,
): void {
  const { counts, platform } = environment;
  const { view } = platform.memory;
  const { fields } = icmpHeader;
  if (fields.type.get(view, packet.at) !== kind.request || fields.code.get(view, packet.at) !== 0)
    counts.foreignProtocols++;
  else if (route === undefined) counts.unroutable++;
  else if (answer(cpu, environment, kind, packet, route)) counts.echoReplies++;
  else counts.droppedForMemory++;
}

/** @returns false if no buffer or no room is left */
function answer(
  cpu: Cpu,
  environment: StackEnvironment,
  kind: typeof Echo | typeof Echo6,
  { at, payloadBytes, addressSum }: IpPacket,
  route: Route,
): boolean {
  const { device, platform, costs, counts } = environment;
  const buffer = device.room > 0 ? device.buffers.take() : undefined;
  if (buffer === undefined) return false;
  const { bytes, view } = platform.memory;
  const { fields } = icmpHeader;
  const version = ipVersionOf(route.destination);
  const icmp = buffer.address + version.transportStart;
  const { copyFixed, copyBytesPerCycle } = platform.costs;
  cpu.charge('protocol', costs.bufferAllocate + costs.protocolTransmit);
  cpu.charge('copy', copyFixed + Math.ceil(payloadBytes / copyBytesPerCycle));
  counts.copiesInside++;
  counts.copiedInsideBytes += payloadBytes;
  bytes.copyWithin(icmp, at, at + payloadBytes);
  ethernetHeader.fields.type.set(view, buffer.address, version.etherType);
  const header = buffer.address + ethernetHeaderBytes;
  const answerSum = version.write(platform.memory, header, route, kind.protocol, payloadBytes);
  // The sum was correct with the request's type in its first word, and for IPv6 with the addresses of the request.
  const pseudo = kind.protocol === IpProtocol.ICMPV6 ? [addressSum, answerSum] : [0, 0];
  const was = folded(kind.request * 256 + pseudo[0]!);
  const is = folded(kind.reply * 256 + pseudo[1]!);
  fields.type.set(view, icmp, kind.reply);
  fields.checksum.set(
    view,
    icmp,
    ~folded((~fields.checksum.get(view, icmp) & 0xffff) + (0xffff - was) + is) & 0xffff,
  );
  const lengthBytes = version.transportStart + payloadBytes;
  const isSent = route.via.transmit(cpu, route, { buffer, start: 0, lengthBytes, checksum: undefined });
  device.buffers.giveWhenSent(buffer);
  return isSent;
}

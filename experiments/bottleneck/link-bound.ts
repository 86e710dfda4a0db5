/**
 * The most that a link can carry in messages of a test: back-to-back payload packets, each with its headers, CRCs and
 * framing. A closed form of the standard's figures, which no simulated rate may exceed.
 */

import type { MachineConfig } from '../../machine/profile/index.ts';
import { type CableFigures, Opcode } from '../../wire/index.ts';
import { cableOf } from '../model/index.ts';
import { kindOf, lengthsOf, type PerfArgs, type PerfVerb } from '../workloads/index.ts';

/** Opcodes of packets with payload: of a message's only packet, the first, middle and last one. */
const opcodesOf: Readonly<Record<PerfVerb, readonly [number, number, number, number]>> = {
  write: [
    Opcode.RC_RDMA_WRITE_ONLY,
    Opcode.RC_RDMA_WRITE_FIRST,
    Opcode.RC_RDMA_WRITE_MIDDLE,
    Opcode.RC_RDMA_WRITE_LAST,
  ],
  send: [Opcode.RC_SEND_ONLY, Opcode.RC_SEND_FIRST, Opcode.RC_SEND_MIDDLE, Opcode.RC_SEND_LAST],
  read: [
    Opcode.RC_RDMA_READ_RESPONSE_ONLY,
    Opcode.RC_RDMA_READ_RESPONSE_FIRST,
    Opcode.RC_RDMA_READ_RESPONSE_MIDDLE,
    Opcode.RC_RDMA_READ_RESPONSE_LAST,
  ],
  // The request, which is the longer packet.
  atomic: [Opcode.RC_FETCH_ADD, Opcode.RC_FETCH_ADD, Opcode.RC_FETCH_ADD, Opcode.RC_FETCH_ADD],
};

/** XRC opcodes are RC opcodes with these bits. */
const XRC_SERVICE = Opcode.XRC_SEND_FIRST;

const datagramOpcodes = [
  Opcode.UD_SEND_ONLY,
  Opcode.UD_SEND_ONLY,
  Opcode.UD_SEND_ONLY,
  Opcode.UD_SEND_ONLY,
] as const;

/**
 * Payload bytes per second, for both directions if both sides send. With randomly drawn lengths, the bound is that of
 * the most efficient one, because the number of draws is unknown here. Without an MTU of its own, a test has the
 * port's: then the bound is that of the largest.
 */
export function linkBound(config: MachineConfig, args: PerfArgs): number {
  const cable = cableOf(config);
  const { linkBound: bound } = kindOf(args).trafficOf(args);
  return bound === undefined ? messageBound(cable, args) : bound(cable);
}

function messageBound(cable: CableFigures, args: PerfArgs): number {
  const shares = lengthsOf(args).map(({ bytes }) => bytes / linkBytesOf(cable, args, bytes));
  const { numeratorPs, denominator } = cable.byteTime;
  const directions = args.isBidirectional === true ? 2 : 1;
  return (directions * Math.max(...shares) * denominator * 1e12) / numeratorPs;
}

/** Link bytes of a message with this much payload. */
export function linkBytesOf(
  cable: CableFigures,
  { verb, mtuBytes, connection }: PerfArgs,
  sizeBytes: number,
): number {
  // UC packets have the headers of RC, XRC requests one more; a datagram is one packet with a DETH.
  const [only, first, middle, last] = connection === 'UD' ? datagramOpcodes : opcodesOf[verb];
  const mtu = cable.payloadBytesMax?.(middle) ?? (mtuBytes === 0 ? cable.mtuBytes : mtuBytes);
  const packets = Math.ceil(sizeBytes / mtu);
  const service = connection === 'XRC' ? XRC_SERVICE : 0;
  const bytesOf = (opcode: number, payloadBytes: number): number =>
    cable.linkBytesOf(opcode | service, verb === 'atomic' ? 0 : payloadBytes);
  if (packets === 1) return bytesOf(only, sizeBytes);
  const end = bytesOf(last, sizeBytes - (packets - 1) * mtu);
  return bytesOf(first, mtu) + (packets - 2) * bytesOf(middle, mtu) + end;
}

/** Rounding of picoseconds and of quotients. */
const tolerance = 1e-6;

interface Rates {
  readonly peakBytesPerSecond?: number;
  readonly averageBytesPerSecond: number;
}

/** Whether the rates of a result are possible on the link. */
export const isWithinLink = (
  { peakBytesPerSecond = 0, averageBytesPerSecond }: Rates,
  boundBytesPerSecond: number,
): boolean => Math.max(peakBytesPerSecond, averageBytesPerSecond) <= boundBytesPerSecond * (1 + tolerance);

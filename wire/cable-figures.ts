/**
 * What packets cost a cable, InfiniBand's or Ethernet's: the bytes that one takes on the link, the time of a byte, the way. For those who
 * calculate without a machine.
 */
import type { EthernetConfig } from './ethernet-parameters.ts';
import {
  ETHERNET_FCS_BYTES,
  ETHERNET_FRAME_MIN_BYTES,
  ETHERNET_HEADER_BYTES,
  ethernetByteTime,
  ethernetLatencyPs,
} from './ethernet-sizing.ts';
import { type ByteTime, byteTimeOf, wireLatencyPs } from './link-rate.ts';
import { packetBytesOf } from './opcodes.ts';
import type { WireConfig } from './parameters.ts';

export interface CableFigures {
  readonly byteTime: ByteTime;
  /** From a packet's last byte leaving one port to its being whole at the other. */
  readonly latencyPs: number;
  /** Longest payload of a packet. */
  readonly mtuBytes: number;
  /** The port takes another packet when no more than this waits for the link. */
  readonly transmitAheadBytes: number;
  /** Bytes on the link until the last of a packet has left, with what goes before it. */
  sentBytesOf(opcode: number, payloadBytes: number): number;
  /** The same until another packet can follow. */
  linkBytesOf(opcode: number, payloadBytes: number): number;
}

const mtuBytesMax = 4096;

/** Of a cable of InfiniBand. */
export function infinibandFigures(wire: WireConfig): CableFigures {
  const bytesOf = (opcode: number, payloadBytes: number): number =>
    packetBytesOf(opcode, payloadBytes, false) + wire.framingBytes;
  return {
    byteTime: byteTimeOf(wire),
    latencyPs: wireLatencyPs(wire),
    mtuBytes: mtuBytesMax,
    transmitAheadBytes: wire.transmitAheadBytes,
    sentBytesOf: bytesOf,
    linkBytesOf: bytesOf,
  };
}

/** LRH and VCRC, which packets of RoCE do not have. */
const linkHeaderBytes = 8 + 2;
/** GRH; IPv4 and UDP. */
const networkBytes = { v1: 40, v2: 20 + 8 } as const;
/** As Linux takes them off the MTU of frames: the most headers that a packet of RoCE has. */
const roceHeaderBytesMax = 40 + 8 + 12 + 4 + 28 + 4;
const mtuBytesMin = 256;

/** Of a cable of Ethernet with packets of RoCE: version 1, or 2 over IPv4. Sources: IEEE 802.3-2018, 3.1; IBTA annexes A16, A17. */
export function roceFigures(ethernet: EthernetConfig, version: 'v1' | 'v2'): CableFigures {
  const sentBytesOf = (opcode: number, payloadBytes: number): number => {
    const transportBytes = packetBytesOf(opcode, payloadBytes, false) - linkHeaderBytes;
    const frameBytes = ETHERNET_HEADER_BYTES + networkBytes[version] + transportBytes;
    return ethernet.preambleBytes + Math.max(frameBytes, ETHERNET_FRAME_MIN_BYTES) + ETHERNET_FCS_BYTES;
  };
  let mtuBytes = mtuBytesMax;
  while (mtuBytes > mtuBytesMin && mtuBytes > ethernet.mtuBytes - roceHeaderBytesMax) mtuBytes /= 2;
  return {
    byteTime: ethernetByteTime(ethernet),
    latencyPs: ethernetLatencyPs(ethernet),
    mtuBytes,
    transmitAheadBytes: ethernet.transmitAheadBytes,
    sentBytesOf,
    linkBytesOf: (opcode, payloadBytes) => sentBytesOf(opcode, payloadBytes) + ethernet.interFrameGapBytes,
  };
}

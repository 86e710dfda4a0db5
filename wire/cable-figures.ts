/** Costs of packets on an InfiniBand or Ethernet cable: bytes on the link, time of a byte, latency. For calculations without a machine. */
import type { EthernetConfig } from './ethernet-parameters.ts';
import {
  ETHERNET_FCS_BYTES,
  ETHERNET_FRAME_MIN_BYTES,
  ETHERNET_HEADER_BYTES,
  ethernetByteTime,
  ethernetLatencyPs,
} from './ethernet-sizing.ts';
import { type ByteTime, byteTimeOf, wireLatencyPs } from './link-rate.ts';
import { opcodeRow, packetBytesOf } from './opcodes.ts';
import type { WireConfig } from './parameters.ts';

export interface CableFigures {
  readonly byteTime: ByteTime;
  /** Time from a packet's last byte leaving one port until the packet is complete at the other. */
  readonly latencyPs: number;
  /** Longest payload of a packet. */
  readonly mtuBytes: number;
  /** The same of an opcode, of transports whose packets have the length that their headers leave. Left out: it is {@link mtuBytes}, or less. */
  readonly payloadBytesMax?: (opcode: number) => number;
  /** The port accepts another packet if at most this many bytes wait for the link. */
  readonly transmitAheadBytes: number;
  /** Bytes on the link until the last byte of a packet has left, including those before it. */
  sentBytesOf(opcode: number, payloadBytes: number): number;
  /** The same until another packet can follow. */
  linkBytesOf(opcode: number, payloadBytes: number): number;
}

const mtuBytesMax = 4096;

/** Figures of an InfiniBand cable. */
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

/** LRH and VCRC, which RoCE packets lack. */
const linkHeaderBytes = 8 + 2;
/** GRH; IPv4 and UDP. */
const networkBytes = { v1: 40, v2: 20 + 8 } as const;
/** Header bytes that Linux subtracts from the frame MTU: the most that a RoCE packet has. */
const roceHeaderBytesMax = 40 + 8 + 12 + 4 + 28 + 4;
const mtuBytesMin = 256;

/** Figures of an Ethernet cable with RoCE packets: version 1, or version 2 over IPv4. Sources: IEEE 802.3-2018, 3.1; IBTA annexes A16, A17. */
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

/** Headers of a segment on Ethernet over IPv4, and the option of timestamps, padded (RFC 7323, appendix A). */
const segmentHeaderBytes = 20 + 20;
const timestampBytes = 12;
/** MPA's length and CRC (RFC 5044, 4); DDP's headers (RFC 5041, 4); a READ Request (RFC 5040, 4.4). */
const framingBytes = 2 + 4;
const ddpHeaderBytes = { tagged: 14, untagged: 18 } as const;
const readRequestBytes = 28;
/** A marker of MPA, and bytes of the stream from one to the next (RFC 5044, 4.3). */
const markerBytes = 4;
const markerDistanceBytes = 512;

/** Parts that segments of a connection of iWARP may have. */
export interface SegmentForm {
  readonly hasTimestamps: boolean;
  readonly hasMarkers: boolean;
}

/**
 * Figures of an Ethernet cable with iWARP: each message's packet is a DDP segment in a TCP segment of its own. Markers lie wherever the stream
 * has them: each byte of an FPDU bears its share.
 */
export function iwarpFigures(
  ethernet: EthernetConfig,
  { hasTimestamps, hasMarkers }: SegmentForm,
): CableFigures {
  const headerBytes = segmentHeaderBytes + (hasTimestamps ? timestampBytes : 0);
  const segmentBytes = ethernet.mtuBytes - headerBytes;
  const markersMax = hasMarkers ? Math.ceil(segmentBytes / markerDistanceBytes) : 0;
  const unitBytes = segmentBytes - framingBytes - markersMax * markerBytes - (segmentBytes % 4);
  const markedShare = hasMarkers ? markerDistanceBytes / (markerDistanceBytes - markerBytes) : 1;
  const sentBytesOf = (opcode: number, payloadBytes: number): number => {
    const streamBytes = markedShare * fpduBytesOf(opcode, payloadBytes);
    const frameBytes = ETHERNET_HEADER_BYTES + headerBytes + streamBytes;
    return ethernet.preambleBytes + Math.max(frameBytes, ETHERNET_FRAME_MIN_BYTES) + ETHERNET_FCS_BYTES;
  };
  return {
    byteTime: ethernetByteTime(ethernet),
    latencyPs: ethernetLatencyPs(ethernet),
    mtuBytes: unitBytes - ddpHeaderBytes.tagged,
    payloadBytesMax: (opcode) => unitBytes - ddpHeaderBytesOf(opcode),
    transmitAheadBytes: ethernet.transmitAheadBytes,
    sentBytesOf,
    linkBytesOf: (opcode, payloadBytes) => sentBytesOf(opcode, payloadBytes) + ethernet.interFrameGapBytes,
  };
}

const nameOf = (opcode: number): string => opcodeRow(opcode)?.name ?? '';

const ddpHeaderBytesOf = (opcode: number): number =>
  /WRITE|READ_RESPONSE/.test(nameOf(opcode)) ? ddpHeaderBytes.tagged : ddpHeaderBytes.untagged;

/** Length of the FPDU, without markers, that does the work of a packet of the IBTA: 0 for an acknowledgement, which TCP sends. */
function fpduBytesOf(opcode: number, payloadBytes: number): number {
  const name = nameOf(opcode);
  if (name.endsWith('ACKNOWLEDGE')) return 0;
  const unit = ddpHeaderBytesOf(opcode) + (name.includes('READ_REQUEST') ? readRequestBytes : payloadBytes);
  return framingBytes + unit + ((-2 - unit) & 3);
}

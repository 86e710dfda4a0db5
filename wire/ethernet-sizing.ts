/** What an Ethernet configuration implies: byte time, latency, frame limits, and how large its channels are. */
import { channelBufferBytes, RECORD_HEADER_BYTES } from '../sim/index.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';
import type { ByteTime } from './link-rate.ts';

export const ETHERNET_HEADER_BYTES = 14;
export const ETHERNET_FCS_BYTES = 4;
/** Shortest frame without its FCS. */
export const ETHERNET_FRAME_MIN_BYTES = 60;

const PS_GIGABITS_PER_BYTE = 8000;

/** Time of one byte: 800 ps at 10 Gb/s. */
export const ethernetByteTime = (config: Pick<EthernetConfig, 'gigabitsPerSecond'>): ByteTime => ({
  numeratorPs: PS_GIGABITS_PER_BYTE,
  denominator: config.gigabitsPerSecond,
});

/** From a frame's last bit leaving the sending MAC to its being whole at the receiver: a channel's latency. */
export const ethernetLatencyPs = (config: EthernetConfig): number =>
  2 * config.portLatencyNs * 1000 + config.cableMetres * config.cablePsPerMetre;

const TAG_BYTES = 4;

/** The same with room for a tag (IEEE 802.1Q) beside the longest payload. */
export const withTag = (config: EthernetConfig): EthernetConfig => ({
  ...config,
  mtuBytes: config.mtuBytes + TAG_BYTES,
});

/** Longest frame without its FCS. */
export const ethernetFrameBytesMax = (config: Pick<EthernetConfig, 'mtuBytes'>): number =>
  Math.max(config.mtuBytes + ETHERNET_HEADER_BYTES, ETHERNET_FRAME_MIN_BYTES);

/**
 * Bytes of a channel between two ports of this configuration: what is queued and in flight, as short frames or as long ones; twice,
 * since the reader may be as far behind as the writer may run ahead. The receiver holds none of it.
 */
export function ethernetChannelBytes(config: EthernetConfig): number {
  const { numeratorPs, denominator } = ethernetByteTime(config);
  const longBytes = recordBytes(ethernetFrameBytesMax(config));
  const flightBytes = config.transmitAheadBytes + (ethernetLatencyPs(config) * denominator) / numeratorPs;
  const shortLinkBytes =
    config.preambleBytes + ETHERNET_FRAME_MIN_BYTES + ETHERNET_FCS_BYTES + config.interFrameGapBytes;
  const flying = Math.ceil(flightBytes / shortLinkBytes) * recordBytes(ETHERNET_FRAME_MIN_BYTES);
  const neededBytes = 2 * (flying + flightBytes + 2 * longBytes) + 16_384;
  return channelBufferBytes(2 ** Math.ceil(Math.log2(neededBytes)));
}

const recordBytes = (frameBytes: number): number => (RECORD_HEADER_BYTES + frameBytes + 15) & ~15;

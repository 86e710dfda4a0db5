/** Values derived from an Ethernet configuration: byte time, latency, frame limits, and channel sizes. */
import { channelBufferBytes, RECORD_HEADER_BYTES } from '../sim/index.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';
import { ethernetFecLatencyPs } from './forward-error-correction.ts';
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

/** Time from a frame's last bit leaving the sending MAC until the frame is complete at the receiver: a channel's latency. */
export const ethernetLatencyPs = (config: EthernetConfig): number =>
  2 * config.portLatencyNs * 1000 +
  config.cableMetres * config.cablePsPerMetre +
  ethernetFecLatencyPs(config);

const TAG_BYTES = 4;

/** The same with room for a tag (IEEE 802.1Q) in addition to the longest payload. */
export const withTag = (config: EthernetConfig): EthernetConfig => ({
  ...config,
  mtuBytes: config.mtuBytes + TAG_BYTES,
});

/** Longest frame without its FCS. */
export const ethernetFrameBytesMax = (config: Pick<EthernetConfig, 'mtuBytes'>): number =>
  Math.max(config.mtuBytes + ETHERNET_HEADER_BYTES, ETHERNET_FRAME_MIN_BYTES);

/** Levels of the receive fifo at which a port pauses the other end, and lets it resume. */
export const xoffFramesOf = ({ receiveFifoFrames, pauseXoffPercent }: EthernetConfig): number =>
  Math.max(1, Math.floor((receiveFifoFrames * pauseXoffPercent) / 100));
export const xonFramesOf = (config: EthernetConfig): number =>
  Math.floor((xoffFramesOf(config) * config.pauseXonPercent) / 100);

/**
 * Shortest frames that may arrive after the frame at which a port pauses the other end:
 *
 *     PAUSE waits for accepted frames ─▶ PAUSE leaves ─▶ latency ─▶ the other end sends accepted frames ─▶ latency
 *
 * The accepted frames end no later than a longest frame that begins when `transmitAheadBytes` have left, or when it has been
 * formed: a RoCE packet is accepted before that, and forming it takes no longer than sending it, up to 54 Gb/s with the HCA's
 * defaults. The other end has accepted the short frames that begin within `transmitAheadBytes`, and one more. Another one
 * allows for frames that have begun.
 */
function pauseHeadroomFrames(config: EthernetConfig): number {
  const { numeratorPs, denominator } = ethernetByteTime(config);
  const { transmitAheadBytes, pauseCableMetres } = config;
  const latencyPs = ethernetLatencyPs({ ...config, cableMetres: pauseCableMetres });
  const longBytes = linkBytesOf(config, ethernetFrameBytesMax(config));
  const shortBytes = linkBytesOf(config, ETHERNET_FRAME_MIN_BYTES);
  const waitingBytes = Math.max(transmitAheadBytes, longBytes) + longBytes;
  const flyingBytes = (2 * latencyPs * denominator) / numeratorPs;
  return Math.ceil((waitingBytes + shortBytes + flyingBytes + transmitAheadBytes) / shortBytes) + 2;
}

/** Limit of frames in the receive fifo of a port with flow control. */
export const pausingFifoFrames = (config: EthernetConfig): number =>
  Math.max(config.receiveFifoFrames, xoffFramesOf(config) + pauseHeadroomFrames(config));

/** Bytes of a frame on the link, with preamble, FCS and gap. */
const linkBytesOf = ({ preambleBytes, interFrameGapBytes }: EthernetConfig, frameBytes: number): number =>
  preambleBytes + frameBytes + ETHERNET_FCS_BYTES + interFrameGapBytes;

/**
 * Bytes of a channel between two ports of this configuration: frames queued and in flight, short or long ones, one of them
 * while the next is formed; twice, since the reader may lag by as much as the writer may run ahead. The receiver holds none of
 * it.
 */
export function ethernetChannelBytes(config: EthernetConfig): number {
  const { numeratorPs, denominator } = ethernetByteTime(config);
  const longBytes = recordBytes(ethernetFrameBytesMax(config));
  const flightBytes = config.transmitAheadBytes + (ethernetLatencyPs(config) * denominator) / numeratorPs;
  const shortLinkBytes = linkBytesOf(config, ETHERNET_FRAME_MIN_BYTES);
  const flying = Math.ceil(flightBytes / shortLinkBytes) * recordBytes(ETHERNET_FRAME_MIN_BYTES);
  const neededBytes = 2 * (flying + flightBytes + 3 * longBytes) + 16_384;
  return channelBufferBytes(2 ** Math.ceil(Math.log2(neededBytes)));
}

const recordBytes = (frameBytes: number): number => (RECORD_HEADER_BYTES + frameBytes + 15) & ~15;

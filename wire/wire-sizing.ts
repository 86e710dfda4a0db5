/** Values derived from a wire configuration: the sizes of its channels, and whether its credits can starve a sender. */
import { ConfigurationError } from '../base/index.ts';
import { channelBufferBytes, RECORD_HEADER_BYTES } from '../sim/index.ts';
import { FLOW_CONTROL_PACKET_BYTES } from './headers.ts';
import { BUFFER_BLOCKS_MAX, blocksOf, CREDIT_BLOCK_BYTES } from './link-credits.ts';
import { byteTimeOf, wireLatencyPs } from './link-rate.ts';
import type { WireConfig } from './parameters.ts';

/** Bytes of a ring for one block of credit: a record's fields, and its bytes if they travel, too. */
const bytesPerBlock = ({ packetForm }: WireConfig): number =>
  CREDIT_BLOCK_BYTES + RECORD_HEADER_BYTES + (packetForm === 'bytes' ? CREDIT_BLOCK_BYTES : 0);
/** Bytes of a ring for a packet of lane 15. */
const managementRecordBytes = ({ packetForm }: WireConfig): number => (packetForm === 'bytes' ? 1024 : 512);

/** Time of a byte at 4X QDR. */
const QDR_BYTE_PS = 250;
const BUFFER_BYTES_MAX = BUFFER_BLOCKS_MAX * CREDIT_BLOCK_BYTES;

/** The longest packet: 4096 bytes of payload after every possible header. */
const PACKET_BYTES_MAX = 4096 + 128;

/**
 * Payload is referenced (referenced-records.ts) while its write is in progress on PCIe: limited by at most 2047 data credits of
 * 16 bytes and 127 headers, plus a transmit fifo of usual depth, twice for the headers of records. Beyond that, a snapshot
 * releases the references.
 */
const REFERENCED_BYTES = 65_536;

/**
 * Bytes of the data lanes' receive buffer: the configured size up to 4X QDR, scaled up for a faster link. A round trip of credits
 * takes equally long on each, but more packets pass meanwhile: four of 4096 bytes at FDR, where three fit.
 */
export function receiveBufferBytesOf(config: WireConfig): number {
  const { numeratorPs, denominator } = byteTimeOf(config);
  const scaledBytes = Math.floor((config.receiveBufferBytes * QDR_BYTE_PS * denominator) / numeratorPs);
  return Math.min(Math.max(config.receiveBufferBytes, scaledBytes), BUFFER_BYTES_MAX);
}

/** Data lanes of a port. */
export const dataLanesOf = ({ dataVls }: WireConfig): number => Number(dataVls);

/** Blocks of each data lane's part of the receive buffer. */
export const laneBlocksOf = (config: WireConfig): number =>
  Math.floor(blocksOf(receiveBufferBytesOf(config)) / dataLanesOf(config));

/** Bytes of a channel between two ports of this configuration: everything the credits and the flight time allow. */
export function wireChannelBytes(config: WireConfig): number {
  const heldBytes = blocksOf(receiveBufferBytesOf(config)) * bytesPerBlock(config);
  const managementBytes = config.managementBufferPackets * managementRecordBytes(config);
  const neededBytes = 2 * (heldBytes + managementBytes) + REFERENCED_BYTES + flyingBytes(config);
  return channelBufferBytes(2 ** Math.ceil(Math.log2(neededBytes)));
}

/** Bytes of a ring of this size that taken records, and all between them, may occupy: the rest is for records in flight. */
export function takenBytesMax(config: WireConfig, capacityBytes: number): number {
  return capacityBytes - flyingBytes(config);
}

/**
 * Room for everything in flight: twice, for a lagging reader and for the padding at the ring's end. Packets of data lanes may be
 * reserved for the time of forming one, which depends on the sender: at most as many as the credits allow, followed by at most
 * as many flow control packets as have credits to return. All other records fit into the time ahead and the flight time.
 */
function flyingBytes(config: WireConfig): number {
  const { numeratorPs, denominator } = byteTimeOf(config);
  const flightBytes = config.transmitAheadBytes + (wireLatencyPs(config) * denominator) / numeratorPs;
  const creditedBlocks = blocksOf(receiveBufferBytesOf(config));
  const returns = Math.ceil(creditedBlocks / blocksOf(config.creditReturnBytes)) + dataLanesOf(config) - 1;
  const records = Math.ceil(flightBytes / FLOW_CONTROL_PACKET_BYTES) + creditedBlocks + returns;
  return 2 * records * bytesPerBlock(config) + 16_384;
}

/** @throws ConfigurationError for credits that could starve the longest packet */
export function checkConfig(config: WireConfig): void {
  const returnBlocksMax = laneBlocksOf(config) - blocksOf(PACKET_BYTES_MAX);
  if (returnBlocksMax < 1)
    throw new ConfigurationError(
      'wire.dataVls',
      dataLanesOf(config),
      `fewer, or receive buffers of at least ${dataLanesOf(config) * (blocksOf(PACKET_BYTES_MAX) + 1) * CREDIT_BLOCK_BYTES} bytes (wire.receiveBufferBytes, switch.inputBufferBytes): each data lane must hold its longest packet`,
    );
  if (blocksOf(config.creditReturnBytes) > returnBlocksMax) {
    throw new ConfigurationError(
      'wire.creditReturnBytes',
      config.creditReturnBytes,
      `at most ${returnBlocksMax * CREDIT_BLOCK_BYTES}: a sender must always get to send its longest packet`,
    );
  }
}

/** What a wire configuration implies: how large its channels are, and whether its credits can starve a sender. */
import { ConfigurationError } from '../base/assert.ts';
import * as channelConstants from '../sim/channel.ts';
import { channelBufferBytes } from '../sim/channel.ts';
import * as headers from './headers.ts';
import * as linkCredits from './link-credits.ts';
import { blocksOf } from './link-credits.ts';
import { byteTimeOf, wireLatencyPs } from './link-rate.ts';
import type { WireConfig } from './parameters.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { RECORD_HEADER_BYTES } = channelConstants;
const { FLOW_CONTROL_PACKET_BYTES } = headers;
const { CREDIT_BLOCK_BYTES } = linkCredits;

/** The longest packet: 4096 bytes of payload behind every header there is. */
const PACKET_BYTES_MAX = 4096 + 128;

/** Bytes of a channel between two ports of this configuration: everything the credits and the flight time allow. */
export function wireChannelBytes(config: WireConfig): number {
  const { numeratorPs, denominator } = byteTimeOf(config);
  const flightBytes = config.transmitAheadBytes + (wireLatencyPs(config) * denominator) / numeratorPs;
  const perBlock = CREDIT_BLOCK_BYTES + RECORD_HEADER_BYTES;
  const heldBytes = blocksOf(config.receiveBufferBytes) * perBlock;
  const flyingBytes = Math.ceil(flightBytes / FLOW_CONTROL_PACKET_BYTES) * perBlock;
  const managementBytes = config.managementBufferPackets * 512;
  const neededBytes = 2 * (heldBytes + flyingBytes + managementBytes) + 16_384;
  return channelBufferBytes(2 ** Math.ceil(Math.log2(neededBytes)));
}

/** @throws ConfigurationError for credits that could starve the longest packet */
export function checkConfig(config: WireConfig): void {
  const blocks = blocksOf(config.receiveBufferBytes);
  const returnBlocksMax = blocks - blocksOf(PACKET_BYTES_MAX);
  if (blocksOf(config.creditReturnBytes) > returnBlocksMax) {
    throw new ConfigurationError(
      'creditReturnBytes',
      config.creditReturnBytes,
      `at most ${returnBlocksMax * CREDIT_BLOCK_BYTES}: a sender must always get to send its longest packet`,
    );
  }
}

/**
 * The receive buffers of a port: lane 0's in blocks of credit, which a sender that obeys its credits never overruns, and lane
 * 15's in packets, which has no credits and drops packets when it is full (IBTA volume 1, 7.6 and 7.9).
 */
import type { BlockState } from '../sim/index.ts';
import { blocksOf, CREDIT_BLOCK_BYTES, CreditReceiver } from './link-credits.ts';
import { MANAGEMENT_LANE, packetBytesIn, virtualLaneOf } from './packet.ts';
import type { ReceiveCounters } from './packet-counters.ts';
import type { WireConfig } from './parameters.ts';
import { receiveBufferBytesOf } from './wire-sizing.ts';

export class ReceiveBuffers {
  /** Lane 0's credits. */
  readonly credits: CreditReceiver;
  readonly #managementMax: number;
  readonly #counters: ReceiveCounters;
  #managementPackets = 0;

  /** @param counters in which refused packets are counted */
  constructor(config: WireConfig, counters: ReceiveCounters) {
    this.credits = new CreditReceiver(
      blocksOf(receiveBufferBytesOf(config)),
      blocksOf(config.creditReturnBytes),
    );
    this.#managementMax = config.managementBufferPackets;
    this.#counters = counters;
  }

  /** Reserves room for the packet of these record flags in its lane's buffer; returns false, and counts it, if the buffer is full. */
  take(flags: number): boolean {
    if (virtualLaneOf(flags) !== MANAGEMENT_LANE) {
      if (this.credits.received(blocksOf(packetBytesIn(flags)))) return true;
      this.#counters.overruns++;
      return false;
    }
    if (this.#managementPackets === this.#managementMax) {
      this.#counters.managementDrops++;
      return false;
    }
    this.#managementPackets++;
    return true;
  }

  /** Releases a packet's room. Returns true if credits are now due to be returned to the sender. */
  free(flags: number): boolean {
    if (virtualLaneOf(flags) !== MANAGEMENT_LANE) return this.credits.freed(blocksOf(packetBytesIn(flags)));
    this.#managementPackets--;
    return false;
  }

  inspect(): BlockState {
    return { ...this.credits.inspect(), managementPackets: this.#managementPackets };
  }

  /** Limit of held packets. */
  get packetsMax(): number {
    return this.credits.bufferBlocks + this.#managementMax;
  }

  /** Bytes of lane 0 held now, and the maximum so far; whole blocks. */
  get bufferedBytes(): number {
    return (this.credits.bufferBlocks - this.credits.freeBlocks) * CREDIT_BLOCK_BYTES;
  }

  get highWaterBytes(): number {
    return (this.credits.bufferBlocks - this.credits.lowWater) * CREDIT_BLOCK_BYTES;
  }
}

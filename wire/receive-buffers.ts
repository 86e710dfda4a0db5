/**
 * The receive buffers of a port: those of the data lanes in blocks of credit, which a sender that obeys its credits never overruns, and lane
 * 15's in packets, which has no credits and drops packets when it is full (IBTA volume 1, 7.6 and 7.9).
 */
import type { BlockState } from '../sim/index.ts';
import { LaneCount } from './lane-traffic.ts';
import { blocksOf, CREDIT_BLOCK_BYTES, CreditReceiver } from './link-credits.ts';
import { MANAGEMENT_LANE, packetBytesIn, virtualLaneOf } from './packet.ts';
import type { ReceiveCounters } from './packet-counters.ts';
import type { WireConfig } from './parameters.ts';
import { dataLanesOf, laneBlocksOf } from './wire-sizing.ts';

export class ReceiveBuffers {
  /** Credits of each data lane. */
  readonly lanes: readonly CreditReceiver[];
  /** Packets that found room in each data lane, if there are several. */
  readonly taken: readonly LaneCount[];
  readonly #managementMax: number;
  readonly #counters: ReceiveCounters;
  #managementPackets = 0;
  /** Data lanes, as bits, that have a flow control packet due. */
  #dueLanes = 0;
  /** Blocks held in all data lanes, and the most so far. */
  #heldBlocks = 0;
  #heldBlocksMax = 0;

  /** @param counters in which refused packets are counted */
  constructor(config: WireConfig, counters: ReceiveCounters) {
    const returnBlocks = blocksOf(config.creditReturnBytes);
    this.lanes = Array.from(
      { length: dataLanesOf(config) },
      () => new CreditReceiver(laneBlocksOf(config), returnBlocks),
    );
    this.taken = this.lanes.length === 1 ? [] : this.lanes.map(() => new LaneCount());
    this.#managementMax = config.managementBufferPackets;
    this.#counters = counters;
  }

  /** Reserves room for the packet of these record flags in its lane's buffer; returns false, and counts it, if the buffer is full. */
  take(flags: number): boolean {
    const lane = virtualLaneOf(flags);
    if (lane !== MANAGEMENT_LANE) {
      const blocks = blocksOf(packetBytesIn(flags));
      if (lane < this.lanes.length && this.lanes[lane]!.received(blocks)) {
        this.#heldBlocks += blocks;
        if (this.taken.length > 0) this.taken[lane]!.count(packetBytesIn(flags));
        if (this.#heldBlocks > this.#heldBlocksMax) this.#heldBlocksMax = this.#heldBlocks;
        return true;
      }
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
    const lane = virtualLaneOf(flags);
    if (lane === MANAGEMENT_LANE) {
      this.#managementPackets--;
      return false;
    }
    const blocks = blocksOf(packetBytesIn(flags));
    this.#heldBlocks -= blocks;
    if (!this.lanes[lane]!.freed(blocks)) return false;
    this.#dueLanes |= 1 << lane;
    return true;
  }

  /** A flow control packet of a data lane is due. */
  flowControlDue(lane: number): void {
    this.#dueLanes |= 1 << lane;
  }

  /** Returns the data lanes, as bits, of which a flow control packet must be sent now. */
  takeDueLanes(): number {
    const lanes = this.#dueLanes;
    this.#dueLanes = 0;
    return lanes;
  }

  /** Handles a link that came up: held blocks stay held, and every data lane has a flow control packet due. */
  linkUp(): void {
    for (const lane of this.lanes) lane.reset();
    this.#dueLanes = (1 << this.lanes.length) - 1;
  }

  inspect(): BlockState {
    const [first, ...others] = this.lanes.map((lane) => lane.inspect());
    return {
      ...first!,
      ...(others.length === 0 ? {} : { lanes: others }),
      managementPackets: this.#managementPackets,
    };
  }

  /** Limit of held packets. */
  get packetsMax(): number {
    return this.lanes.length * this.lanes[0]!.bufferBlocks + this.#managementMax;
  }

  /** Bytes of data lanes held now, and the maximum so far; whole blocks. */
  get bufferedBytes(): number {
    return this.#heldBlocks * CREDIT_BLOCK_BYTES;
  }

  get highWaterBytes(): number {
    return this.#heldBlocksMax * CREDIT_BLOCK_BYTES;
  }

  /** Most bytes of each data lane held at once; whole blocks. */
  get laneHighWaterBytes(): readonly number[] {
    return this.lanes.map(({ bufferBlocks, lowWater }) => (bufferBlocks - lowWater) * CREDIT_BLOCK_BYTES);
  }
}

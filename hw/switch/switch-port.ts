/**
 * One port of an InfiniBand switch: the packets that came by it, the state of its output, and the packets that it did
 * not forward.
 */
import type { Picoseconds } from '../../base/index.ts';
import {
  dataLanesOf,
  type LanesConfig,
  type LaneTables,
  laneTablesOf,
  tailDelayOf,
  VlArbiter,
  type WirePort,
} from '../../wire/index.ts';
import type { FecnMarker } from './fecn-marker.ts';
import { HeadOfQueueLimit, type HeadOfQueueSetting } from './head-of-queue-limit.ts';
import { InputBuffer } from './input-buffer.ts';
import { PartitionFilter } from './partition-filter.ts';

/** Packets that a switch did not forward, by reason. */
export interface SwitchDrops {
  noRoute: number;
  /** Its entry leads back to where it came from (PortRcvSwitchRelayErrors: looping). */
  ownPort: number;
  /** Its service level has no data lane at its output (7.6.6); counted for each output. */
  noLane: number;
  /** Its input, or an output, does not accept its P_Key (10.9); counted for each output. */
  inboundPkey: number;
  outboundPkey: number;
  /** It was the first of its input for longer than HOQLife; counted for each output, in its PortXmitDiscards. */
  hoqLife: number;
  /** Its lane was stalled at its output; counted like `hoqLife`. */
  vlStalled: number;
  /** It was in the switch for longer than LifeTimeValue; counted like `hoqLife`. */
  switchLifetime: number;
}

/** Reasons for which the time of a packet is up. */
export type ExpiryReason = 'hoqLife' | 'vlStalled' | 'switchLifetime';

/** Drops by the port to which performance management attributes them (IBTA volume 1, 16.1.3.5). */
class CountedDrops {
  expired = 0;
  outboundPkey = 0;
  readonly #drops: Readonly<SwitchDrops>;

  constructor(drops: Readonly<SwitchDrops>) {
    this.#drops = drops;
  }

  get noRoute(): number {
    return this.#drops.noRoute;
  }

  get ownPort(): number {
    return this.#drops.ownPort;
  }

  get inboundPkey(): number {
    return this.#drops.inboundPkey;
  }
}

/** One port, with the packets that came by it. */
export class SwitchPort {
  readonly port: WirePort;
  /** Packets that came by it, by lane: the data lanes, then lane 15. */
  readonly buffers: readonly InputBuffer[];
  /** Marks packets that leave by it; undefined without marks. */
  readonly marker: FecnMarker | undefined;
  /** Tables and state of arbitration between the data lanes that leave by it. */
  readonly tables: LaneTables;
  readonly arbiter: VlArbiter;
  /** P_Keys of packets that come and leave by it. */
  readonly partition = new PartitionFilter();
  /** Time for which packets that leave by it may be the first of their queues. */
  readonly headOfQueue: HeadOfQueueLimit;
  /** Time from a packet's first byte to its last on this cable. */
  readonly tailDelayPs: (packetBytes: number) => Picoseconds;
  readonly drops: SwitchDrops = {
    ...{ noRoute: 0, ownPort: 0, noLane: 0, inboundPkey: 0, outboundPkey: 0 },
    ...{ hoqLife: 0, vlStalled: 0, switchLifetime: 0 },
  };
  /** The same as management counts them: packets that were to leave by this port are of it. */
  readonly counted = new CountedDrops(this.drops);
  /**
   * Each data lane's buffer is being read until then; lane 15 is read with lane 0. And the output is busy with a packet
   * until then.
   */
  readonly #readUntilPs: Float64Array;
  sendsUntilPs = 0;
  /** The packet that leaves by this output: its input, or -1; released when its last byte has left. */
  sendsFrom = -1;
  sendsOffset = -1;
  /** Input whose turn is next. */
  turn = 0;
  /** The same for each data lane in which packets leave, of inputs and their lanes together, if there are several. */
  readonly turns: Int32Array;
  /** Lanes, as bits, whose first packet has changed and is not watched yet: its last instant is not known. */
  newFirsts = 0;
  /** First packets of inputs that are to leave by this output. */
  wantedBy = 0;
  /** Most packets of data lanes that have waited at once: one that leaves at an instant still waits at that instant. */
  waitingMax = 0;
  /** The last instant at which packets of data lanes left or were dropped, and their number. */
  #gonePs = Number.NEGATIVE_INFINITY;
  #goneCount = 0;

  constructor(
    port: WirePort,
    lanes: LanesConfig,
    marker: FecnMarker | undefined,
    headOfQueue: HeadOfQueueSetting,
  ) {
    const laneCount = dataLanesOf(port.config);
    this.port = port;
    this.headOfQueue = new HeadOfQueueLimit(laneCount, headOfQueue);
    this.buffers = Array.from({ length: laneCount + 1 }, () => new InputBuffer(port.receivePacketsMax));
    this.tables = laneTablesOf(lanes, laneCount);
    this.arbiter = new VlArbiter(this.tables);
    this.marker = marker;
    this.turns = new Int32Array(laneCount);
    this.#readUntilPs = new Float64Array(laneCount);
    this.tailDelayPs = tailDelayOf(port.config, 'head');
  }

  /** Notes that a lane, data or 15, has another first packet, or that it waits for fewer outputs. */
  noteNewFirst(lane: number): void {
    this.newFirsts |= 1 << lane;
  }

  /** Until when the buffer of a lane, data or 15, is being read. */
  readUntilPs(lane: number): Picoseconds {
    return this.#readUntilPs[lane === this.turns.length ? 0 : lane]!;
  }

  /** The buffer of a lane is read until then. */
  read(lane: number, untilPs: Picoseconds): void {
    this.#readUntilPs[lane === this.turns.length ? 0 : lane] = untilPs;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (const buffer of this.buffers) buffer.rebase(ps);
    this.headOfQueue.rebase(ps);
    for (let lane = 0; lane < this.#readUntilPs.length; lane++) this.#readUntilPs[lane]! -= ps;
    this.sendsUntilPs -= ps;
    this.#gonePs -= ps;
  }

  /** A packet has been added to a data lane: counted whatever the order of the instant's arrivals and departures. */
  added(nowPs: Picoseconds): void {
    const count = this.dataCount + (this.#gonePs === nowPs ? this.#goneCount : 0);
    if (count > this.waitingMax) this.waitingMax = count;
  }

  /** The first packet of a buffer has left by all its outputs, or was dropped. */
  gone(buffer: InputBuffer, nowPs: Picoseconds): void {
    if (buffer === this.buffers.at(-1)) return;
    this.#goneCount = this.#gonePs === nowPs ? this.#goneCount + 1 : 1;
    this.#gonePs = nowPs;
  }

  /** Packets that wait in data lanes. */
  get dataCount(): number {
    let count = 0;
    for (let lane = this.buffers.length - 2; lane >= 0; lane--) count += this.buffers[lane]!.count;
    return count;
  }
}

/**
 * Packets in front of a port of InfiniBand with several data lanes: a queue for each lane, and the arbitration between them.
 *
 *     transmitter ──▶ queue of its lane ──┐
 *                ──▶ queue of its lane ──┼─ arbitration ─▶ credits, serializer of the port
 *                ──▶ lane 15 ────────────┘
 *
 * Promises:
 * - A packet without credits blocks only packets of its lane. A lane is closed while `lanePackets` wait in it: no packet of it is begun then
 *   (lane-gate.ts), so that those on their way from memory find room here.
 * - A packet that finds all queues empty and the port ready passes at once, with the times of a port with one lane.
 * - Lane 15 goes first; the data lanes share by weight (wire/vl-arbiter.ts).
 * - A packet whose service level has no data lane is discarded by the port, and counted there (IBTA vol 1, 7.6.6).
 * - A decision depends on earlier instants alone.
 *
 * A port with one data lane has no such queues: the transmitter uses the port itself.
 */
import { NEVER, type Picoseconds } from '../../../../base/index.ts';
import type { BlockState, LogicalProcess } from '../../../../sim/index.ts';
import {
  blocksOf,
  canRelay,
  dataLanesOf,
  FLAG_GRH,
  MANAGEMENT_LANE,
  NO_LANE,
  openPacket,
  type PortArbitration,
  packetBytesIn,
  packetBytesOf,
  type RecordPlace,
  relayPacket,
  VlArbiter,
  type WirePort,
  WORD_PACKET_FLAGS,
} from '../../../../wire/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import { SLOT_BYTES } from './loopback.ts';
import type { PacketPort } from './packet-port.ts';

/** Returned instead of an offset: no packet is accepted. */
const REFUSED = -1;

export interface LaneEgressPorts {
  readonly gate: {
    /** A lane has fewer packets than before: it may be open. */
    packetsLeft(nowPs: Picoseconds): void;
  };
}

export interface LaneEgressSetup {
  readonly lp: LogicalProcess;
  readonly wire: WirePort;
  readonly config: Pick<HcaConfig, 'lanePackets' | 'transmitBufferPackets' | 'responseBufferPackets'>;
  /** Arbitration tables of the port. */
  readonly arbitration: PortArbitration;
}

/** Waiting packets of one lane, in order: a ring of slots. */
class LaneQueue {
  readonly #slots: Int32Array;
  #first = 0;
  count = 0;
  /** The same at the end of the last instant at which another one changed. */
  countBefore = 0;

  constructor(capacity: number) {
    this.#slots = new Int32Array(capacity);
  }

  get first(): number {
    return this.#slots[this.#first]!;
  }

  push(slot: number): void {
    this.#slots[(this.#first + this.count++) % this.#slots.length] = slot;
  }

  pop(): void {
    this.#first = (this.#first + 1) % this.#slots.length;
    this.count--;
  }

  clear(): void {
    this.count = 0;
  }
}

export class LaneEgress implements PacketPort {
  readonly outboundHeaders: WirePort['outboundHeaders'];
  readonly holdReasons: readonly string[] = [];
  readonly holdReason = -1;
  readonly laneCount: number;
  readonly #lp: LogicalProcess;
  readonly #wire: WirePort;
  readonly #lanePackets: number;
  readonly #arbiter: VlArbiter;
  /** Memory of the waiting packets, as the place of a record. */
  readonly #memory: RecordPlace;
  readonly #memoryFloats: Float64Array;
  /** Free slots, and for each slot the instants at which it was filled and at which its packet is formed. */
  readonly #free: Int32Array;
  #freeCount: number;
  readonly #filledPs: Float64Array;
  readonly #formedPs: Float64Array;
  /** Queues of the data lanes, then that of lane 15. */
  readonly #queues: readonly LaneQueue[];
  /** Instant at which a queue changed last. */
  #changedPs = Number.NEGATIVE_INFINITY;
  /** The packet that was accepted last has passed to the port, instead of a queue. */
  #hasPassed = true;
  readonly #drainEvent: number;
  #drainDuePs = NEVER;
  #gate!: LaneEgressPorts['gate'];

  constructor({ lp, wire, config, arbitration }: LaneEgressSetup) {
    const { lanePackets, transmitBufferPackets, responseBufferPackets } = config;
    this.laneCount = dataLanesOf(wire.config);
    const slotCount = (this.laneCount + 1) * lanePackets + transmitBufferPackets + responseBufferPackets + 2;
    const rxBytes = new Uint8Array(slotCount * SLOT_BYTES);
    this.outboundHeaders = wire.outboundHeaders;
    this.#lp = lp;
    this.#wire = wire;
    this.#lanePackets = lanePackets;
    this.#arbiter = new VlArbiter(arbitration);
    this.#memory = { rxBytes, rxWords: new Int32Array(rxBytes.buffer) };
    this.#memoryFloats = new Float64Array(rxBytes.buffer);
    this.#free = Int32Array.from({ length: slotCount }, (_, slot) => slotCount - 1 - slot);
    this.#freeCount = slotCount;
    this.#filledPs = new Float64Array(slotCount);
    this.#formedPs = new Float64Array(slotCount);
    this.#queues = Array.from({ length: this.laneCount + 1 }, () => new LaneQueue(slotCount));
    this.#drainEvent = lp.queue.addHandler(() => this.#drainDue());
    lp.addTimeKeeper(this);
  }

  connect({ gate }: LaneEgressPorts): void {
    this.#gate = gate;
  }

  /** Whether packets of a lane may be begun: fewer than `lanePackets` waited in it before this instant. */
  isOpen(lane: number): boolean {
    if (lane >= this.laneCount) return true;
    const { count, countBefore } = this.#queues[lane]!;
    return (this.#lp.nowPs > this.#changedPs ? count : countBefore) < this.#lanePackets;
  }

  /** Waiting packets. */
  get heldCount(): number {
    return this.#filledPs.length - this.#freeCount;
  }

  /** Forgets the waiting packets. */
  reset(): void {
    this.#note(this.#lp.nowPs);
    for (const queue of this.#queues) for (; queue.count > 0; queue.pop()) this.#release(queue.first);
    this.#wire.stopWaiting();
  }

  inspect(): BlockState {
    return { waiting: this.#queues.map(({ count }) => count), arbiter: this.#arbiter.inspect() };
  }

  // ---- the transmitter ----

  sendPacket(
    opcode: number,
    payloadBytes: number,
    flags: number,
    atPs: Picoseconds,
    virtualLane = 0,
  ): number {
    const { nowPs } = this.#lp;
    this.#hasPassed = true;
    const isManagement = virtualLane === MANAGEMENT_LANE;
    if (!isManagement && virtualLane >= this.laneCount)
      return this.#wire.discardPacket(opcode, payloadBytes, flags);
    const passed = this.#pass(opcode, payloadBytes, flags, atPs, virtualLane);
    if (passed >= 0) return passed;
    if (this.#freeCount === 0) return REFUSED;
    this.#hasPassed = false;
    this.#note(nowPs);
    const slot = this.#free[--this.#freeCount]!;
    this.#filledPs[slot] = nowPs;
    this.#formedPs[slot] = atPs;
    this.#queues[isManagement ? this.laneCount : virtualLane]!.push(slot);
    const offset = slot * SLOT_BYTES;
    const packetBytes = packetBytesOf(opcode, payloadBytes, (flags & FLAG_GRH) !== 0);
    openPacket(this.#memory.rxWords, offset >> 2, opcode, payloadBytes, flags, virtualLane, packetBytes);
    this.#drainBy(nowPs + 1);
    return offset;
  }

  /** Hands a packet to the port at once if no other waits or has waited at this instant. @returns its offset there, or a negative number */
  #pass(opcode: number, payloadBytes: number, flags: number, atPs: Picoseconds, virtualLane: number): number {
    if (this.heldCount > 0 || this.#changedPs >= this.#lp.nowPs) return REFUSED;
    const isData = virtualLane !== MANAGEMENT_LANE;
    if (isData && this.#arbiter.choose(1 << virtualLane) === NO_LANE) return REFUSED;
    const offset = this.#wire.sendPacket(opcode, payloadBytes, flags, atPs, virtualLane);
    if (offset >= 0 && isData)
      this.#arbiter.sent(blocksOf(packetBytesOf(opcode, payloadBytes, (flags & FLAG_GRH) !== 0)));
    return offset;
  }

  packetFilled(offset: number): void {
    if (this.#hasPassed) this.#wire.packetFilled(offset);
  }

  get txBytes(): Uint8Array {
    return this.#hasPassed ? this.#wire.txBytes : this.#memory.rxBytes;
  }

  get txWords(): Int32Array {
    return this.#hasPassed ? this.#wire.txWords : this.#memory.rxWords;
  }

  get txFloats(): Float64Array {
    return this.#hasPassed ? this.#wire.txFloats : this.#memoryFloats;
  }

  /** Packets are always accepted. */
  expectPacket(): number {
    return 0;
  }

  get freePs(): Picoseconds {
    return this.#wire.freePs;
  }

  get discardedCount(): number {
    return this.#wire.discardedCount;
  }

  // ---- the receiver ----

  consume(offset: number): void {
    this.#wire.consume(offset);
  }

  get rxBytes(): Uint8Array {
    return this.#wire.rxBytes;
  }

  get rxWords(): Int32Array {
    return this.#wire.rxWords;
  }

  get rxFloats(): Float64Array {
    return this.#wire.rxFloats;
  }

  get receivePacketsMax(): number {
    return this.#wire.receivePacketsMax;
  }

  // ---- the port ----

  /** The port may accept a packet again. */
  spaceFreed(): void {
    if (this.heldCount > 0) this.#drainBy(this.#lp.nowPs);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#changedPs -= ps;
    this.#drainDuePs -= ps;
    for (let slot = 0; slot < this.#filledPs.length; slot++) {
      this.#filledPs[slot]! -= ps;
      this.#formedPs[slot]! -= ps;
    }
  }

  // ---- inside ----

  #drainBy(atPs: Picoseconds): void {
    if (this.#drainDuePs <= atPs) return;
    this.#drainDuePs = atPs;
    this.#lp.queue.schedule(atPs, this.#drainEvent);
  }

  #drainDue(): void {
    const { nowPs } = this.#lp;
    if (nowPs < this.#drainDuePs) return;
    this.#drainDuePs = NEVER;
    const before = this.heldCount;
    while (this.#sendNext(nowPs));
    if (this.heldCount < before) this.#gate.packetsLeft(nowPs);
    if (this.#queues.some((queue) => queue.count > 0 && this.#filledPs[queue.first]! >= nowPs))
      this.#drainBy(nowPs + 1);
  }

  /** Hands the next packet to the port. Returns false if it accepts none. */
  #sendNext(nowPs: Picoseconds): boolean {
    if (this.#canSend(this.laneCount, nowPs)) {
      this.#send(this.laneCount, nowPs);
      return true;
    }
    let ready = 0;
    for (let lane = 0; lane < this.laneCount; lane++) if (this.#canSend(lane, nowPs)) ready |= 1 << lane;
    const lane = this.#arbiter.choose(ready);
    if (lane === NO_LANE) return false;
    this.#arbiter.sent(this.#send(lane, nowPs));
    return true;
  }

  /** Whether the port accepts the first packet of a queue, if it was there before this instant. */
  #canSend(index: number, nowPs: Picoseconds): boolean {
    const queue = this.#queues[index]!;
    if (queue.count === 0 || this.#filledPs[queue.first]! >= nowPs) return false;
    const lane = index === this.laneCount ? MANAGEMENT_LANE : index;
    return canRelay(this.#memory, queue.first * SLOT_BYTES, this.#wire, lane);
  }

  /** Hands the first packet of a queue to the port, which accepts it. @returns its blocks of credit */
  #send(index: number, nowPs: Picoseconds): number {
    this.#note(nowPs);
    const queue = this.#queues[index]!;
    const slot = queue.first;
    const offset = slot * SLOT_BYTES;
    const lane = index === this.laneCount ? MANAGEMENT_LANE : index;
    const atPs = Math.max(nowPs, this.#formedPs[slot]!);
    relayPacket(this.#memory, offset, this.#wire, atPs, lane);
    queue.pop();
    this.#release(slot);
    return blocksOf(packetBytesIn(this.#memory.rxWords[(offset >> 2) + WORD_PACKET_FLAGS]!));
  }

  #release(slot: number): void {
    this.#free[this.#freeCount++] = slot;
  }

  /** A queue changes now. */
  #note(nowPs: Picoseconds): void {
    if (this.#changedPs >= nowPs) return;
    this.#changedPs = nowPs;
    for (const queue of this.#queues) queue.countBefore = queue.count;
  }
}

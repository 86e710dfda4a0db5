/**
 * The sending half of a wire port: puts packets, flow control and training on the link, in the order of the calls, each as a
 * record that arrives when its last byte has left and crossed the cable; towards a switch, a packet when its first byte has.
 *
 *     canSend, send ──▶ credits of its lane ──▶ serializer ──▶ record in the channel
 *          ▲ spaceFreed
 *
 * Its port reports the link's state to it, and calls it only while packets are put on the wire.
 */
import { NEVER, type Picoseconds } from '../base/index.ts';
import type { BlockState, ChannelWriter, LogicalProcess } from '../sim/index.ts';
import { joinedNotes, lateNote, MARKED_NOTE, overtakenNote } from './fault-notes.ts';
import { FLOW_CONTROL_PACKET_BYTES } from './headers.ts';
import { type HeldPacket, HeldPackets } from './held-packets.ts';
import { LaneTraffic } from './lane-traffic.ts';
import { blocksOf, CreditSender } from './link-credits.ts';
import { byteTimeOf, type PacketArrival, Serializer, tailDelayOf, wireLatencyPs } from './link-rate.ts';
import { Opcode, type PacketShape, packetBytesOf, packetShapes } from './opcodes.ts';
import { flagWordOf, openPacket } from './open-packet.ts';
import {
  DAMAGE_PLACE,
  DAMAGE_PLACE_SHIFT,
  DISCARDED,
  FLAG_CONGESTION,
  FLAG_CORRUPTED,
  FLAG_DAMAGED_INSIDE,
  FLAG_GRH,
  FLAG_RETRANSMISSION,
  FLOW_CONTROL,
  LINK_TRAINING,
  MANAGEMENT_LANE,
  PACKET,
  WORD_FC_CREDIT_LIMIT,
  WORD_FC_TOTAL_BLOCKS_SENT,
  WORD_FC_VIRTUAL_LANE,
  WORD_PACKET_FLAGS,
  WORD_TRAINING_STEP,
} from './packet.ts';
import { TransmitCounters } from './packet-counters.ts';
import type { WireConfig } from './parameters.ts';
import {
  NOT_WAITING,
  SendWait,
  WAITING_FOR_CREDITS,
  WAITING_FOR_SERIALIZER,
  waitNames,
} from './send-wait.ts';
import { type ConcernedRules, WireFaults } from './wire-faults.ts';
import { bodyBytesOf, type Fate, PacketObserver, type WireTap } from './wire-observer.ts';
import { dataLanesOf } from './wire-sizing.ts';

const NO_PLUG = -1;
/** Longest interval between two flow control packets of a lane, in symbol times of a lane (7.9.4). */
const FLOW_CONTROL_SYMBOLS = 65_536;
/** Returned instead of a record: the packet was not sent. */
export const NOT_SENT = -1;

export interface WireSenderPorts {
  readonly sender: {
    /** A refused packet may now be accepted. */
    spaceFreed(): void;
  };
  readonly port: {
    /** {@link WireSender.sendHeld} must be called at this instant. */
    heldDue(atPs: Picoseconds): void;
    /** The other end must learn by this instant of the credits of a lane used by a lost packet. */
    packetLost(atPs: Picoseconds, virtualLane: number): void;
  };
}

/** A packet about to be sent. */
class OutboundPacket {
  opcode = 0;
  shape: PacketShape = packetShapes[Opcode.RC_ACKNOWLEDGE]!;
  payloadBytes = 0;
  flags = 0;
  virtualLane = 0;
  /** Bytes of the whole packet, headers and CRCs included. */
  packetBytes = 0;

  fill(opcode: number, payloadBytes: number, flags: number, virtualLane: number): this {
    const shape = packetShapes[opcode]!;
    this.opcode = opcode;
    this.shape = shape;
    this.payloadBytes = payloadBytes;
    this.flags = flags;
    this.virtualLane = virtualLane;
    this.packetBytes = shape.packetBytes(payloadBytes, (flags & FLAG_GRH) !== 0);
    return this;
  }
}

/** Destination QPN and PSN of the packet that is sent next. */
export class PacketHeaders {
  destinationQpn = 0;
  psn = 0;
}

export class WireSender {
  readonly counters = new TransmitCounters();
  /** Requests of faults for the packet about to be sent; set before {@link send} or {@link begin}. */
  readonly headers = new PacketHeaders();
  readonly faults = new WireFaults();
  readonly serializer: Serializer;
  readonly #lp: LogicalProcess;
  readonly #writer: ChannelWriter;
  readonly #latencyPs: Picoseconds;
  readonly #arrival: PacketArrival;
  readonly #framingBytes: number;
  readonly #aheadPs: Picoseconds;
  /** Credits of each data lane. */
  readonly #credits: readonly CreditSender[];
  /** Traffic and waits of single lanes; undefined with one data lane, whose figures are those of the port. */
  readonly #lanes: LaneTraffic | undefined;
  readonly #wait = new SendWait(this.counters);
  readonly #spaceEvent: number;
  readonly #held = new HeldPackets();
  /** The packet being processed. */
  readonly #packet = new OutboundPacket();
  /** Lanes, as bits, of which a held-back packet is due and waits for credits: no other packet may use them. */
  #starvedLanes = 0;
  readonly #flowControlPs: Picoseconds;
  /** Event queued for the arrival of each record in a loopback plug. */
  #plugEvent = NO_PLUG;
  #ports!: WireSenderPorts;
  #spaceDuePs = NEVER;
  /** Builds bytes of records, if bytes travel or are observed. */
  readonly #observer: PacketObserver;
  /** Fate of the packet being filled in. */
  #fate: Fate = 'sent';
  /** Effects of faults on the opened packet, for a capture; empty for others. */
  #remark = '';

  constructor(lp: LogicalProcess, config: WireConfig, writer: ChannelWriter, arrival: PacketArrival) {
    this.#lp = lp;
    this.#writer = writer;
    this.#arrival = arrival;
    const lanes = dataLanesOf(config);
    this.#credits = Array.from({ length: lanes }, () => new CreditSender());
    this.#lanes = lanes === 1 ? undefined : new LaneTraffic(lanes);
    this.#latencyPs = wireLatencyPs(config);
    this.#framingBytes = config.framingBytes;
    this.serializer = new Serializer(byteTimeOf(config));
    this.#aheadPs = this.serializer.durationPs(config.transmitAheadBytes);
    this.#spaceEvent = lp.queue.addHandler(() => this.#spaceDue());
    this.#flowControlPs = this.serializer.durationPs(FLOW_CONTROL_SYMBOLS * Number(config.lanes));
    this.#observer = new PacketObserver(writer, config, this.#latencyPs, tailDelayOf(config, arrival));
  }

  /** Observes packets that leave this end from now on. */
  set tap(tap: WireTap | undefined) {
    this.#observer.tap = tap;
  }

  /** The packet opened last was filled in. */
  filled(offset: number): void {
    if (this.#observer.isIdle) return;
    this.#observer.filled(offset, this.#fate, this.#remark);
    this.#remark = '';
  }

  connect(ports: WireSenderPorts): void {
    this.#ports = ports;
  }

  /** Whether the other end has granted room for that many credit blocks of a data lane. */
  hasCreditsFor(blocks: number, virtualLane: number): boolean {
    return this.#credits[virtualLane]!.canSend(blocks, this.#lp.nowPs);
  }

  /** Whether a refused packet waits for credits of the other end. */
  get waitsForCredits(): boolean {
    return this.#wait.reason === WAITING_FOR_CREDITS;
  }

  /** Its state, without the serializer's reservations: flow control is put there in the port's turns. */
  inspect(): BlockState {
    const [first, ...others] = this.#credits.map((credits) => credits.inspect());
    return {
      credits: first!,
      ...(others.length === 0 ? {} : { creditsOfLanes: others }),
      waitsFor: waitNames[this.#wait.reason]!,
      heldPackets: this.#held.count,
      isStarved: this.#starvedLanes !== 0,
    };
  }

  /** The records return through a plug: `event` is queued for the arrival of each. */
  attachPlug(event: number): void {
    this.#plugEvent = event;
  }

  // ---- packets ----

  /** Whether the serializer has little reserved, and the packet's lane has credit, for a formed packet. A refusal begins a wait. */
  canSend(opcode: number, payloadBytes: number, flags: number, virtualLane: number): boolean {
    return this.#isFree(packetBytesOf(opcode, payloadBytes, (flags & FLAG_GRH) !== 0), virtualLane, 0);
  }

  /**
   * Sends a packet that is formed by `atPs` if {@link canSend} allows it, otherwise returns NOT_SENT: {@link begin} for callers
   * that have not asked.
   */
  send(opcode: number, payloadBytes: number, flags: number, atPs: Picoseconds, virtualLane: number): number {
    const { packetBytes } = this.#packet.fill(opcode, payloadBytes, flags, virtualLane);
    if (!this.#isFree(packetBytes, virtualLane, atPs - this.#lp.nowPs)) return NOT_SENT;
    return this.#put(atPs);
  }

  /**
   * A packet is ready to be sent from `fromPs` on. It waits until the serializer has little reserved: the configured amount, or
   * the amount that leaves while the packet is formed, for `formingPs`.
   * @returns the instant from which that holds: the wait ends no earlier, and begins only if that instant is later
   */
  expectPacket(fromPs: Picoseconds, formingPs: Picoseconds): number {
    const aheadPs = this.#aheadPs;
    const readyPs = this.serializer.freePs - (formingPs > aheadPs ? formingPs : aheadPs);
    if (readyPs > fromPs) this.#wait.begin(WAITING_FOR_SERIALIZER, fromPs);
    return readyPs;
  }

  /** The packet that was refused will not be sent. */
  stopWaiting(): void {
    if (this.#wait.reason !== NOT_WAITING) this.#wait.end(this.#lp.nowPs);
    this.#lanes?.endBut(0, this.#lp.nowPs);
  }

  /** Packets of other lanes than these, as bits, will not be sent. */
  waitOnlyFor(lanes: number): void {
    this.#lanes?.endBut(lanes, this.#lp.nowPs);
  }

  /** Traffic and waits of single data lanes; undefined with one. */
  get lanes(): LaneTraffic | undefined {
    return this.#lanes;
  }

  /** Sends a packet at `atPs` or when the link is free; returns its record with opcode, flags and lengths set. */
  begin(opcode: number, payloadBytes: number, flags: number, atPs: Picoseconds, virtualLane: number): number {
    this.#packet.fill(opcode, payloadBytes, flags, virtualLane);
    return this.#put(atPs);
  }

  /** A packet while the link is down: a record that the reader skips. */
  discard(opcode: number, payloadBytes: number, flags: number, virtualLane: number): number {
    const { nowPs } = this.#lp;
    if (this.#wait.reason !== NOT_WAITING) this.#wait.end(nowPs);
    this.#lanes?.end(virtualLane, nowPs);
    return this.discardUnasked(opcode, payloadBytes, flags, virtualLane);
  }

  /** Like {@link discard}, for a packet that was never refused: packets that wait continue to wait. */
  discardUnasked(opcode: number, payloadBytes: number, flags: number, virtualLane: number): number {
    const { nowPs } = this.#lp;
    this.counters.discardedCount++;
    const arrivalPs = Math.max(this.serializer.freePs, nowPs) + this.#latencyPs;
    const { packetBytes } = this.#packet.fill(opcode, payloadBytes, flags, virtualLane);
    this.counters.discarded.count(opcode, packetBytes, payloadBytes);
    this.#fate = 'nowhere';
    return this.#open(arrivalPs, DISCARDED);
  }

  // ---- packets of the port itself ----

  /** A flow control packet of a data lane. */
  sendFlowControl(atPs: Picoseconds, virtualLane: number, creditLimit: number): void {
    this.counters.flowControlCount++;
    const endPs = this.serializer.occupy(atPs, FLOW_CONTROL_PACKET_BYTES + this.#framingBytes);
    const word = this.#append(endPs + this.#latencyPs, FLOW_CONTROL, 0) >> 2;
    const { words } = this.#writer;
    words[word + WORD_FC_VIRTUAL_LANE] = virtualLane;
    words[word + WORD_FC_TOTAL_BLOCKS_SENT] = this.#credits[virtualLane]!.totalBlocksSent;
    words[word + WORD_FC_CREDIT_LIMIT] = creditLimit;
  }

  /** A step of the link's training, after all reservations. */
  sendStep(step: number): void {
    const atPs = Math.max(this.#lp.nowPs, this.serializer.freePs) + this.#latencyPs;
    const offset = this.#append(atPs, LINK_TRAINING, 0);
    this.#writer.words[(offset >> 2) + WORD_TRAINING_STEP] = step;
  }

  // ---- notifications of the port ----

  /** A flow control packet has brought a new limit of a data lane. */
  limitReceived(virtualLane: number, creditLimit: number): void {
    const { nowPs } = this.#lp;
    this.#credits[virtualLane]!.limitReceived(creditLimit, nowPs);
    if ((this.#starvedLanes & (1 << virtualLane)) !== 0) this.#ports.port.heldDue(nowPs + 1);
    const isWaiting = this.#lanes?.isWaiting(virtualLane) === true;
    if (this.#wait.reason === WAITING_FOR_CREDITS || isWaiting) this.#ports.sender.spaceFreed();
  }

  /** Handles a link that came up: nothing sent, nothing promised. */
  linkUp(): void {
    for (const credits of this.#credits) credits.reset();
  }

  /** The link has gone down: discards the packet of a waiting sender. */
  linkDown(): void {
    this.#dropHeld();
    if (this.#isWaiting) this.#wakeAt(this.#lp.nowPs + 1);
  }

  /** Puts due held-back packets on the link, before anything else of this instant. */
  sendHeld(isOnWire: boolean): void {
    if (!isOnWire) return this.#dropHeld();
    const { nowPs } = this.#lp;
    const held = this.#held;
    held.capture(this.#writer.bytes);
    this.#starvedLanes = 0;
    for (;;) {
      const packet = held.firstDueBut(this.#starvedLanes, nowPs);
      if (packet === undefined) break;
      this.#letGo(packet, nowPs);
    }
    const duePs = held.duePsBut(this.#starvedLanes);
    if (duePs < NEVER) this.#ports.port.heldDue(duePs);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.serializer.rebase(ps);
    for (const credits of this.#credits) credits.rebase(ps);
    this.#lanes?.rebase(ps);
    this.#wait.rebase(ps);
    this.#spaceDuePs -= ps;
    this.#held.rebase(ps);
  }

  // ---- inside ----

  #isFree(packetBytes: number, virtualLane: number, formingPs: Picoseconds): boolean {
    const { nowPs } = this.#lp;
    const readyPs = this.expectPacket(nowPs, formingPs);
    if (readyPs > nowPs) {
      this.#wakeAt(readyPs);
      return false;
    }
    if (virtualLane === MANAGEMENT_LANE) return true;
    const credits = this.#credits[virtualLane]!;
    const isStarved = (this.#starvedLanes & (1 << virtualLane)) !== 0;
    if (!isStarved && credits.canSend(blocksOf(packetBytes), nowPs)) return true;
    this.#wait.begin(WAITING_FOR_CREDITS, nowPs);
    this.#lanes?.begin(virtualLane, nowPs);
    if (credits.newLimitPs === nowPs) this.#wakeAt(nowPs + 1);
    return false;
  }

  /** Sends the packet in {@link #packet}. */
  #put(atPs: Picoseconds): number {
    const { opcode, payloadBytes, flags, packetBytes, virtualLane } = this.#packet;
    if (this.#wait.reason !== NOT_WAITING) this.#wait.end(this.#lp.nowPs);
    if (this.#lanes !== undefined) this.#lanes.end(virtualLane, this.#lp.nowPs);
    const { counters } = this;
    counters.packetCount++;
    counters.packetBytes += packetBytes;
    const statistics = (flags & FLAG_RETRANSMISSION) === 0 ? counters.first : counters.retransmitted;
    statistics.count(opcode, packetBytes, payloadBytes);
    if (counters.packetCount >= this.faults.nextPacket) return this.#putWithFaults(atPs);
    if (virtualLane !== MANAGEMENT_LANE) this.#useCredits(virtualLane, packetBytes);
    this.#fate = 'sent';
    this.#countDamage(flags);
    return this.#open(this.#reserve(packetBytes, atPs), PACKET);
  }

  /** Counts a packet that leaves, if a fault of this cable or of an earlier one has damaged it. */
  #countDamage(flags: number): void {
    if ((flags & (FLAG_CORRUPTED | FLAG_DAMAGED_INSIDE)) === 0) return;
    if ((flags & FLAG_CORRUPTED) !== 0) this.counters.corruptedCount++;
    else this.counters.relayedDamageCount++;
  }

  /** Sends the packet just counted, with the effects of faults. */
  #putWithFaults(atPs: Picoseconds): number {
    const { counters, faults } = this;
    const { opcode, shape, payloadBytes, flags: givenFlags, packetBytes, virtualLane } = this.#packet;
    const { nowPs } = this.#lp;
    const packet = counters.packetCount;
    const { destinationQpn, psn } = this.headers;
    const rules = faults.rulesOn({ opcode, destinationQpn, psn });
    const delayPs = this.#delayLink(packet, rules, atPs);
    const isLost = this.#isLost(packet, rules);
    const isCorrupted = !isLost && faults.isCorrupted(packet);
    const damageFlags = isLost ? 0 : isCorrupted ? FLAG_CORRUPTED : damageFlagsOf(rules);
    const { passed, canCopy } = this.#held;
    const reordering =
      isLost || passed !== undefined ? undefined : (faults.reorderingOf(packet) ?? rules.of('reordered'));
    const copy = canCopy ? (faults.copyOf(packet) ?? rules.of('duplicated')) : undefined;
    const congestionFlag = isLost ? 0 : congestionFlagOf(rules);
    const markedFlags = givenFlags | congestionFlag;
    const markNote = congestionFlag === 0 ? '' : MARKED_NOTE;
    const remark = joinedNotes(lateNote(delayPs), markNote);
    const flags = damageFlags === 0 ? markedFlags : (markedFlags & ~DAMAGE_FLAGS) | damageFlags;
    const arrivalPs =
      reordering === undefined
        ? this.#occupy(packetBytes, atPs, virtualLane)
        : Math.max(this.serializer.freePs, nowPs) + this.#latencyPs;
    const kind = isLost || reordering !== undefined ? DISCARDED : PACKET;
    this.#packet.flags = flags;
    this.#fate = isLost ? 'lost' : reordering === undefined ? 'sent' : 'nowhere';
    this.#remark = remark;
    const offset = this.#open(arrivalPs, kind);
    const bodyBytes = bodyBytesOf(shape, payloadBytes, flags);
    const body = { opcode, payloadBytes, virtualLane, packetBytes, bodyBytes, offset, content: undefined };
    if (reordering !== undefined) {
      const { passes } = reordering.effect;
      const duePs = atPs + reordering.effect.delayPs;
      counters.heldBack.count(opcode, packetBytes, payloadBytes);
      this.#hold({ ...body, flags, isCopy: false, passes, passesLeft: passes, remark, duePs });
      faults.isEachConcerned = true;
      reordering.fired();
    } else if (!isLost) this.#countDamage(flags);
    if (isLost) {
      counters.lost.count(opcode, packetBytes, payloadBytes);
      if (virtualLane !== MANAGEMENT_LANE)
        this.#ports.port.packetLost(nowPs + this.#flowControlPs, virtualLane);
    }
    if (copy !== undefined) {
      const duePs = atPs + copy.effect.delayPs;
      const copied = { isCopy: true, passes: NEVER, passesLeft: NEVER, remark: markNote };
      this.#hold({ ...body, ...copied, flags: markedFlags, duePs });
      copy.fired();
    }
    if (passed !== undefined && passed.virtualLane === virtualLane && --passed.passesLeft <= 0)
      this.#letGo(passed, atPs);
    faults.passed(packet);
    return offset;
  }

  /** Reserves credits and the link for a packet. @returns its arrival */
  #occupy(packetBytes: number, atPs: Picoseconds, virtualLane: number): number {
    if (virtualLane !== MANAGEMENT_LANE) this.#useCredits(virtualLane, packetBytes);
    return this.#reserve(packetBytes, atPs);
  }

  /** A packet of a data lane is put on the link. */
  #useCredits(virtualLane: number, packetBytes: number): void {
    this.#credits[virtualLane]!.sent(blocksOf(packetBytes));
    if (this.#lanes !== undefined) this.#lanes.sent[virtualLane]!.count(packetBytes);
  }

  /** Reserves the link for a packet. @returns the instant of its record */
  #reserve(packetBytes: number, atPs: Picoseconds): number {
    const startPs = Math.max(this.serializer.freePs, atPs);
    const endPs = this.serializer.occupy(atPs, packetBytes + this.#framingBytes);
    return (this.#arrival === 'tail' ? endPs : startPs) + this.#latencyPs;
  }

  #isLost(packet: number, rules: ConcernedRules): boolean {
    if (this.faults.isLost(packet)) return true;
    const rule = rules.of('lost');
    rule?.fired();
    return rule !== undefined;
  }

  /** Delays a packet by holding the link before it. @returns the delay */
  #delayLink(packet: number, rules: ConcernedRules, atPs: Picoseconds): Picoseconds {
    let delayPs = this.faults.delayPs(packet);
    if (delayPs === 0) {
      const rule = rules.of('late');
      if (rule === undefined) return 0;
      rule.fired();
      delayPs = rule.effect.delayPs;
    }
    this.counters.delayedCount++;
    this.serializer.hold(atPs, delayPs);
    return delayPs;
  }

  /** Holds a packet: from the next instant on, all of its record can be copied. */
  #hold(packet: HeldPacket): void {
    this.#held.hold(packet);
    this.#ports.port.heldDue(this.#lp.nowPs + 1);
  }

  /** Puts a held-back packet on the link; or it waits for credits, before all others of its lane. */
  #letGo(packet: HeldPacket, atPs: Picoseconds): void {
    const { opcode, payloadBytes, flags, packetBytes, virtualLane, isCopy } = packet;
    const { counters, faults } = this;
    const isManagement = virtualLane === MANAGEMENT_LANE;
    const { nowPs } = this.#lp;
    if (!isManagement) {
      const credits = this.#credits[virtualLane]!;
      if (!credits.canSend(blocksOf(packetBytes), nowPs)) {
        this.#starvedLanes |= 1 << virtualLane;
        packet.duePs = Math.min(packet.duePs, nowPs);
        if (credits.newLimitPs === nowPs) this.#ports.port.heldDue(nowPs + 1);
        return;
      }
      this.#starvedLanes &= ~(1 << virtualLane);
    }
    const arrivalPs = this.#occupy(packetBytes, atPs, virtualLane);
    (isCopy ? counters.copied : counters.letGo).count(opcode, packetBytes, payloadBytes);
    this.#countDamage(flags);
    const shape = packetShapes[opcode]!;
    const bodyBytes = this.#observer.recordBytes(bodyBytesOf(shape, payloadBytes, flags), packetBytes);
    const offset = this.#append(arrivalPs, PACKET, bodyBytes);
    this.#held.fill(packet, this.#writer.bytes, offset);
    this.#writer.words[(offset >> 2) + WORD_PACKET_FLAGS] = flagWordOf(
      flags,
      payloadBytes,
      virtualLane,
      packetBytes,
    );
    this.#held.release(packet);
    if (!this.#observer.isIdle) {
      const passedBy = isCopy ? '' : overtakenNote(packet.passes - Math.max(0, packet.passesLeft));
      this.#observer.filled(offset, isCopy ? 'copied' : 'sent', joinedNotes(passedBy, packet.remark));
    }
    if (!isCopy) faults.isEachConcerned = false;
  }

  #dropHeld(): void {
    this.#held.clear();
    this.#starvedLanes = 0;
    this.faults.isEachConcerned = false;
  }

  #open(arrivalPs: Picoseconds, kind: number): number {
    const { opcode, shape, payloadBytes, flags, packetBytes, virtualLane } = this.#packet;
    const bodyBytes = this.#observer.recordBytes(bodyBytesOf(shape, payloadBytes, flags), packetBytes);
    const offset = this.#append(arrivalPs, kind, bodyBytes);
    openPacket(this.#writer.words, offset >> 2, opcode, payloadBytes, flags, virtualLane, packetBytes);
    return offset;
  }

  #append(timePs: Picoseconds, kind: number, payloadBytes: number): number {
    if (this.#plugEvent !== NO_PLUG) this.#lp.queue.schedule(timePs, this.#plugEvent);
    return this.#writer.append(timePs, kind, payloadBytes);
  }

  /** Whether a refused packet, of any lane, waits. */
  get #isWaiting(): boolean {
    return this.#wait.reason !== NOT_WAITING || this.#lanes?.isAnyWaiting === true;
  }

  #wakeAt(atPs: Picoseconds): void {
    if (this.#spaceDuePs <= atPs) return;
    this.#spaceDuePs = atPs;
    this.#lp.queue.schedule(atPs, this.#spaceEvent);
  }

  #spaceDue(): void {
    if (this.#lp.nowPs < this.#spaceDuePs) return;
    this.#spaceDuePs = NEVER;
    if (this.#isWaiting) this.#ports.sender.spaceFreed();
  }
}

/** Flags of a bit error: one on this cable replaces that of an earlier one. */
const DAMAGE_FLAGS = FLAG_CORRUPTED | FLAG_DAMAGED_INSIDE | DAMAGE_PLACE;

/** Flags of a bit error caused by a rule. */
function damageFlagsOf(rules: ConcernedRules): number {
  const rule = rules.of('corrupted');
  if (rule === undefined) return 0;
  rule.fired();
  const { place, isInside } = rule.effect;
  return FLAG_CORRUPTED | (place << DAMAGE_PLACE_SHIFT) | (isInside ? FLAG_DAMAGED_INSIDE : 0);
}

/** The congestion mark, if a rule requests it for this packet. */
function congestionFlagOf(rules: ConcernedRules): number {
  const rule = rules.of('congested');
  rule?.fired();
  return rule === undefined ? 0 : FLAG_CONGESTION;
}

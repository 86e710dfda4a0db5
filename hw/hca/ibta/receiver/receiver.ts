/**
 * The receiver: takes packets from the wire port one at a time, in order, finds their QP, and hands them to the
 * responder (requests), to the acknowledgement side (responses) or to the datagram receiver. A datagram for a multicast
 * group is processed once for each member at this port.
 *
 *   wire port ──> fifo (ICRC, parsing) ──┬──> QP, context ──> responder ──> payload writes, completions, responses
 *    loopback ──> fifo ──────────────────┘            ├──> acknowledgements ──> payload writes, completions
 *                                                     ├──> datagram receiver ──> payload writes, completions
 *                                                     └──> marks of congestion, CNPs ──> notification, reaction point
 *
 * In-order and blocking: data that are not on chip stop the receiver, and with it, through the wire's credits, the
 * sender.
 */

import { QpState } from '../../../../abi/index.ts';
import { type Cycles, NEVER } from '../../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  type LogicalProcess,
} from '../../../../sim/index.ts';
import {
  bytesBeforeGrh,
  FLAG_GRH,
  grhPlace,
  Opcode,
  PACKET_PAYLOAD_OFFSET,
  WORD_DATAGRAM_SOURCE_QPN,
  WORD_LIDS,
  WORD_PAYLOAD_BYTES,
  WORD_REQUEST_PKEY,
  WORD_RESPONSE_PKEY,
} from '../../../../wire/index.ts';
import { isSamePartition } from '../../../management/index.ts';
import { WAIT } from '../../answers.ts';
import type { CostAttribution } from '../../costs/index.ts';
import type { ReceiveTurns } from '../../frames/index.ts';
import {
  type ContextCache,
  type ContextPort,
  type ContextUser,
  PORT_RECEIVER,
  RESPONDER_HALF,
} from '../../memory/index.ts';
import {
  type Qpn,
  type QpSlot,
  type QpTable,
  type QueuePair,
  UD_OPCODE_BASE,
  XRC_SERVICE,
} from '../../objects/index.ts';
import { receiverStalls, STALL_COMPLETION, STALL_CONTEXT, STALL_DMA } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { PayloadWriter } from '../../receive-queue/index.ts';
import type { DataPathViolation, ViolationCounters } from '../../statistics/index.ts';
import type { NotificationPoint, ReactionPoint } from '../congestion/index.ts';
import {
  exchangeGids,
  FIRST_MULTICAST_LID,
  IS_KNOWN,
  IS_REQUEST,
  isGrhForGroup,
  isGrhForPort,
  isGrhFromPath,
  isOwnLid,
  type Loopback,
  type PacketPort,
  type ReceivedPackets,
  type ReorderBuffer,
} from '../packets/index.ts';
import type { AnswerSide } from '../requests/index.ts';
import type { Responder } from '../responder/index.ts';
import { type DatagramReceiver, QPN_GENERAL_SERVICES, QPN_SUBNET_MANAGEMENT } from './datagram-receiver.ts';
import type { MulticastGroups } from './multicast-groups.ts';

const { ERR, RTR } = QpState;
/** Bits of an opcode that name the service. */
const SERVICE_MASK = 0xe0;
const QPN_MULTICAST = 0xffffff;
/** Distance of QP1's block from QP0's in the special QPs: one place for each of two ports. */
const PORTS = 2;

/** Numbers of the special QPs. */
export interface SpecialQps {
  /** QPN of port 1's QP0, or 0 before it is set. */
  readonly specialQpBase: number;
}

/** The subnet manager embedded in the HCA. */
export interface EmbeddedManager {
  /** Turns a management datagram into its response, in place. False: the manager sends none. */
  answer(mad: Uint8Array): boolean;
  /** Whether the response continues in another datagram. */
  readonly hasNext: boolean;
  /** Turns a datagram of a response, which has been received, into the next one, in place. */
  next(mad: Uint8Array): void;
}

export interface ReceiverPorts {
  readonly writer: PayloadWriter;
  readonly responder: Responder;
  readonly acknowledgements: AnswerSide;
  readonly datagrams: DatagramReceiver;
  readonly notificationPoint: NotificationPoint;
  readonly reactionPoint: ReactionPoint;
}

/** Parts of the device that {@link Receiver} uses. */
export interface ReceiverSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: Pick<
    HcaConfig,
    | 'receiveLatencyCycles'
    | 'receiveBytesPerCycle'
    | 'receivePacketCycles'
    | 'receiveHeadCycles'
    | 'qpcLinesPerContext'
  >;
  readonly ports: readonly PacketPort[];
  readonly specialQps: SpecialQps;
  /** The embedded managers of each port. */
  readonly managers: readonly EmbeddedManager[];
  readonly groups: MulticastGroups;
  readonly qps: QpTable;
  readonly qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly loopback: Loopback;
  readonly reorder: ReorderBuffer;
  readonly receiveTurns: ReceiveTurns | undefined;
  readonly received: ReceivedPackets;
  readonly violations: ViolationCounters;
  readonly costs: CostAttribution | undefined;
}

export class Receiver {
  readonly account = new BlockAccount('receiver', receiverStalls);
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #managers: readonly EmbeddedManager[];
  readonly #qps: QpTable;
  readonly #violations: ViolationCounters;
  readonly #costs: CostAttribution | undefined;
  readonly #pairs: readonly QueuePair[];
  readonly #contexts: ContextPort;
  readonly #responderHalf: number;
  readonly #loopback: Loopback;
  readonly #reorder: ReorderBuffer;
  readonly #packets: ReceivedPackets;
  /**
   * Packets that arrived by the cable of each port, and by the loopback: as many as their buffers hold, each until it
   * has left its buffer.
   */
  readonly #arrived: readonly Fifo[];
  readonly #looped: Fifo;
  /** The same fifos, those of the cables first, then that of the reorder buffer if it is on; and the one whose oldest packet is being processed. */
  readonly #sources: readonly Fifo[];
  #source: Fifo;
  readonly #stage: number;
  /** Values of the configuration. */
  readonly #latencyCycles: number;
  readonly #bytesPerCycle: Cycles;
  readonly #packetCycles: number;
  readonly #headCycles: number;
  #writer!: PayloadWriter;
  #responder!: Responder;
  #acknowledgements!: AnswerSide;
  #datagrams!: DatagramReceiver;
  /** Undefined without congestion control. */
  #notificationPoint: NotificationPoint | undefined;
  #reactionPoint: ReactionPoint | undefined;
  /** Opcode of the link's CNPs; -1 without congestion control. */
  #cnp = -1;
  readonly #specialQps: SpecialQps;
  readonly #groups: MulticastGroups;
  /** Arbitration with the frame receiver on a port of Ethernet: see ReceiveTurns. */
  readonly #turns: ReceiveTurns | undefined;
  /** Number of members of the packet's group, and the one being served. */
  #memberCount = 0;
  #member = 0;
  /**
   * Whether the packet is a response of the embedded subnet manager, which may continue; and whether its next datagram
   * must replace it.
   */
  #isManagers = false;
  #isFollowing = false;
  /** QP of the packet being worked on. */
  #active: QueuePair | undefined;

  constructor(setup: ReceiverSetup) {
    const { ports, loopback } = setup;
    this.#lp = setup.lp;
    this.#domain = setup.domain;
    this.#managers = setup.managers;
    this.#qps = setup.qps;
    this.#violations = setup.violations;
    this.#costs = setup.costs;
    this.#pairs = setup.qps.rows;
    this.#contexts = setup.qpcCache.port(PORT_RECEIVER);
    this.#responderHalf = setup.config.qpcLinesPerContext === 2 ? RESPONDER_HALF : 0;
    this.#loopback = loopback;
    this.#reorder = setup.reorder;
    this.#packets = setup.received;
    this.#specialQps = setup.specialQps;
    this.#groups = setup.groups;
    this.#turns = setup.receiveTurns;
    this.#arrived = ports.map(
      ({ receivePacketsMax: capacity }, index) =>
        new Fifo({
          name: index === 0 ? 'packets from the cable' : `packets from the cable of port ${index + 1}`,
          capacity,
          whenFull: 'never: the cable gives credits for what the receive buffers hold',
        }),
    );
    this.#looped = new Fifo({
      name: 'packets from the loopback',
      capacity: loopback.capacity,
      whenFull: 'never: the transmitter waits for room in the loopback',
    });
    const { reorder } = setup;
    this.#sources = [...this.#arrived, this.#looped, ...(reorder.isOn ? [reorder.released] : [])];
    this.#source = this.#arrived[0]!;
    this.#active = undefined;
    this.#latencyCycles = setup.config.receiveLatencyCycles;
    this.#bytesPerCycle = setup.config.receiveBytesPerCycle;
    this.#packetCycles = setup.config.receivePacketCycles;
    this.#headCycles = setup.config.receiveHeadCycles;
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: ReceiverPorts): void {
    const { writer, responder, acknowledgements, datagrams, notificationPoint, reactionPoint } = ports;
    this.#writer = writer;
    this.#responder = responder;
    this.#acknowledgements = acknowledgements;
    this.#datagrams = datagrams;
    this.#notificationPoint = notificationPoint.isOn ? notificationPoint : undefined;
    this.#reactionPoint = reactionPoint.isOn ? reactionPoint : undefined;
    this.#cnp = reactionPoint.isOn ? notificationPoint.marks.cnpOpcode : -1;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Room for a completion became free. */
  completionSpace(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_COMPLETION)) this.wake(cycle + 1);
  }

  isServing(qp: QpSlot): boolean {
    return this.#active?.slot === qp;
  }

  reset(): void {
    for (const [index, arrived] of this.#arrived.entries())
      while (!arrived.isEmpty) this.#writer.finish(this.#packets.nameAt(index, arrived.pop()));
    while (!this.#looped.isEmpty) this.#writer.finish(~this.#looped.pop());
    this.#reorder.released.clear();
    this.#active = undefined;
    this.#memberCount = 0;
    this.#isManagers = false;
    this.#isFollowing = false;
    this.#datagrams.reset();
    this.#responder.reset();
    this.#acknowledgements.reset();
  }

  /** Packets that have arrived and are not finished. */
  get heldCount(): number {
    return this.#sources.reduce((sum, { count }) => sum + count, 0);
  }

  get fifos(): readonly Fifo[] {
    return this.#sources;
  }

  inspect(): BlockState {
    return {
      active: this.#active?.slot ?? 'none',
      fromCable: this.#arrived.flatMap(({ values }) => values),
      fromLoopback: this.#looped.values,
      members: this.#memberCount,
    };
  }

  /** Notes a packet that arrived by the cable. */
  packetArrived(offset: number, bytes: number, portIndex = 0): void {
    const cycle =
      this.#domain.clock.cycleAfter(this.#lp.nowPs) + this.#latencyCycles + this.#moveCycles(bytes);
    this.#arrived[portIndex]!.push(offset, cycle);
    this.#domain.wake(this.#stage, cycle);
  }

  /** A packet from this port to itself: it will be here at `arrivalCycle`. */
  packetLooped(offset: number, arrivalCycle: Cycles): void {
    const bytes = this.#loopback.words[(offset >> 2) + WORD_PAYLOAD_BYTES]!;
    const cycle = arrivalCycle + this.#latencyCycles + this.#moveCycles(bytes);
    this.#looped.push(offset, cycle);
    this.wake(cycle);
  }

  /** Returns the cycles that this much payload takes through the data path. */
  #moveCycles(bytes: number): number {
    if (bytes === 0) return 0;
    const perCycle = this.#bytesPerCycle;
    return ((bytes + perCycle - 1) / perCycle) | 0;
  }

  /**
   * Selects the packet that has waited longest; of several, the first in the order of {@link #sources}. A packet
   * already begun is finished first.
   */
  #selectSource(): void {
    const source = this.#longestWaiting();
    if (source === this.#source) return;
    this.#source = source;
    if (source === this.#looped) this.#packets.selectLoopback();
    else if (source === this.#reorder.released) this.#packets.selectReordered();
    else this.#packets.selectPort(this.#sources.indexOf(source));
  }

  /** Returns the fifo whose oldest packet arrived first; without packets that of port 1. */
  #longestWaiting(): Fifo {
    let longest = this.#sources[0]!;
    for (const source of this.#sources) if (source.headCycle < longest.headCycle) longest = source;
    return longest;
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    if (this.#active === undefined) this.#selectSource();
    const source = this.#source;
    if (this.#turns?.isOthers(this)) return this.#await(this.#turns, cycle);
    if (source.headCycle > cycle) {
      this.account.rest(cycle);
      if (!source.isEmpty) this.wake(source.headCycle);
      return;
    }
    this.#turns?.take(this);
    const bytes = this.#process(source.head, cycle);
    if (bytes === WAIT) return;
    if (this.#active !== undefined) this.#contexts.used();
    if (this.#active !== undefined && this.#reorder.isOn) this.#reorder.worked(this.#active, cycle);
    this.#active = this.#memberCount === 0 ? this.#nextAnswer() : this.#nextMember();
    if (this.#active === undefined) {
      this.#costs?.rests(PORT_RECEIVER);
      this.#release(source.pop());
    }
    const passCycles = bytes === 0 ? 0 : this.#headCycles + this.#moveCycles(bytes);
    const busyCycles = passCycles > this.#packetCycles ? passCycles : this.#packetCycles;
    this.account.serve(cycle, busyCycles);
    if (this.#active !== undefined) return this.wake(cycle + busyCycles);
    this.#turns?.pass(cycle + busyCycles);
    const { headCycle } = this.#longestWaiting();
    if (headCycle !== NEVER) this.wake(Math.max(headCycle, cycle + busyCycles));
  }

  /** The frame receiver is active: requests the next turn if a packet is visible. */
  #await(turns: ReceiveTurns, cycle: Cycles): void {
    if (this.#source.headCycle <= cycle) turns.awaitNext(this);
    else if (!this.#source.isEmpty) this.wake(this.#source.headCycle);
  }

  /** The packet is worked off: its buffer is freed when its payload has left. */
  #release(offset: number): void {
    if (this.#source === this.#reorder.released) this.#reorder.taken(offset);
    else if (this.#packets.isLoopback) this.#loopback.received(offset);
    this.#writer.finish(this.#packets.nameOf(offset));
  }

  #process(offset: number, cycle: Cycles): number {
    let pair = this.#active;
    const isBegun = pair !== undefined;
    if (pair === undefined) {
      this.#packets.turnTo(offset, this.#source.headCycle);
      const isHeld = this.#source === this.#reorder.released;
      if (isHeld && !this.#reorder.isCurrent(offset)) return 0;
      pair = this.#findQp();
      if (pair === undefined) return 0;
      this.#active = pair;
      if (!isHeld && this.#notificationPoint !== undefined)
        this.#checkMarks(this.#notificationPoint, pair, cycle);
      if (this.#costs !== undefined) this.#noteWork(this.#costs, pair);
    }
    const half = (this.#packets.traits & IS_REQUEST) !== 0 ? this.#responderHalf : 0;
    if (!this.#contexts.access(pair.slot + half, true)) {
      this.account.stall(cycle, STALL_CONTEXT);
      return WAIT;
    }
    if (this.#isFollowing && !this.#follow(cycle)) return WAIT;
    if (isBegun && !takesRequests(pair)) {
      // The QP has failed since.
      this.#isManagers = false;
      this.#responder.reset();
      this.#acknowledgements.reset();
      this.#datagrams.reset();
      return 0;
    }
    if (this.#packets.opcode === this.#cnp) return this.#notify(pair, cycle);
    if (pair.opcodeBase === UD_OPCODE_BASE) return this.#datagrams.process(offset, pair.slot, cycle);
    return (this.#packets.traits & IS_REQUEST) !== 0
      ? this.#responder.process(pair, cycle)
      : this.#acknowledgements.process(pair, cycle);
  }

  /** Passes on the marks of a packet that has just been found to be the QP's: of a switch, and of its peer. */
  #checkMarks(notificationPoint: NotificationPoint, pair: QueuePair, cycle: Cycles): void {
    const packets = this.#packets;
    notificationPoint.received(pair, packets, this.#grhPlace(this.#opcodeOf(pair)), cycle);
    if (packets.opcode !== this.#cnp && notificationPoint.marks.carriesBecn(packets))
      this.#reactionPoint?.notified(pair, cycle);
  }

  /** A CNP has no payload, and is not answered. */
  #notify(pair: QueuePair, cycle: Cycles): number {
    this.#reactionPoint?.notified(pair, cycle);
    return 0;
  }

  /** Works on a request of the peer's, or on an answer to one of the QP's own. */
  #noteWork(costs: CostAttribution, pair: QueuePair): void {
    const packet = this.#packets;
    if (packet.opcode === this.#cnp) return costs.rests(PORT_RECEIVER);
    if ((packet.traits & IS_REQUEST) === 0) return costs.worksOnAnswerOf(PORT_RECEIVER, pair, packet.psn);
    const isDatagram = pair.opcodeBase === UD_OPCODE_BASE;
    costs.worksOnNewPacket(PORT_RECEIVER, {
      sourceQpn: isDatagram ? packet.word(WORD_DATAGRAM_SOURCE_QPN) : pair.remoteQpn,
      number: packet.psn,
      portIndex: packet.portIndex,
      isLoopback: this.#packets.isLoopback,
    });
  }

  /** Packets whose DLID is neither ours, a multicast LID nor the permissive LID are dropped as misrouted. */
  #isForUs(lid: number): boolean {
    const { address } = this.#packets;
    return lid === address.lid || lid >= FIRST_MULTICAST_LID || isOwnLid(address, lid);
  }

  /** Returns the packet's QP if it can accept the packet; otherwise drops and counts the packet. */
  #findQp(): QueuePair | undefined {
    const packet = this.#packets;
    const lid = packet.lids & 0xffff;
    if (!packet.isLoopback) {
      if (!this.#isForUs(lid)) return this.#drop('packetForeignLid');
    } else if (lid === packet.address.embeddedManagerLid && !this.#askManager()) return undefined;
    const qpn = packet.destinationQpn;
    if (qpn === QPN_MULTICAST) return this.#firstMember();
    const number = qpn > QPN_GENERAL_SERVICES ? qpn : this.specialQpn(qpn);
    const slot = number === -1 ? -1 : this.#qps.slotOf(number);
    if (slot === -1) return this.#drop('packetUnknownQp');
    const pair = this.#pairs[slot]!;
    // A QP receives by the port that it is bound to.
    if (pair.portIndex !== packet.portIndex) return this.#drop('packetForeignLid');
    const { traits } = packet;
    if ((traits & IS_KNOWN) === 0 || !this.#isOfService(pair)) return this.#drop('packetOpcode');
    if (pair.opcodeBase !== UD_OPCODE_BASE && !this.#isInPartition(pair)) return this.#drop('packetPkey');
    const hasGrh = (packet.flags & FLAG_GRH) !== 0;
    if ((hasGrh || pair.hasGrh === 1) && !this.#hasRightGrh(pair, hasGrh))
      return this.#drop('packetForeignGid');
    const isForRequester = (traits & IS_REQUEST) === 0 && packet.opcode !== this.#cnp;
    const isReady = takesRequests(pair) && !(isForRequester && pair.state === RTR);
    if (!isReady) return this.#drop('packetQpState');
    if (pair.serviceBits === XRC_SERVICE && packet.opcode !== this.#cnp) packet.opcode -= XRC_SERVICE;
    return pair;
  }

  /** Whether the packet is of the QP's service, or a CNP, which has one of its own, and is known with congestion control. */
  #isOfService({ serviceBits }: QueuePair): boolean {
    const { opcode } = this.#packets;
    return (opcode & SERVICE_MASK) === serviceBits || opcode === this.#cnp;
  }

  /** True if the packet belongs to the connection's partition (9.6.1.1, 10.9.1); the port counts others. */
  #isInPartition(pair: QueuePair): boolean {
    const packet = this.#packets;
    const place = (packet.traits & IS_REQUEST) !== 0 ? WORD_REQUEST_PKEY : WORD_RESPONSE_PKEY;
    if (isSamePartition(packet.address.pkeys[pair.pkeyIndex]!, packet.word(place))) return true;
    packet.address.countPkeyViolation();
    return false;
  }

  /**
   * Hands a datagram to the embedded subnet manager and turns the packet into its response, with source and destination
   * exchanged. Returns false if the manager does not answer.
   */
  #askManager(): boolean {
    const packet = this.#packets;
    const { rxBytes, rxWords, offset, payloadBytes, lids } = packet;
    if (packet.opcode !== Opcode.UD_SEND_ONLY || packet.destinationQpn > QPN_GENERAL_SERVICES) {
      this.#drop('packetForeignLid');
      return false;
    }
    const at = offset + PACKET_PAYLOAD_OFFSET;
    if (!this.#manager.answer(rxBytes.subarray(at, at + payloadBytes))) return false;
    this.#isManagers = true;
    packet.lids = (lids << 16) | (lids >>> 16);
    rxWords[(offset >> 2) + WORD_LIDS] = packet.lids;
    if ((packet.flags & FLAG_GRH) !== 0) exchangeGids(rxBytes, this.#grhPlace());
    return true;
  }

  /** The QP once more, if the embedded subnet manager has another datagram for it. */
  #nextAnswer(): QueuePair | undefined {
    this.#isFollowing = this.#isManagers && this.#manager.hasNext;
    if (!this.#isFollowing) this.#isManagers = false;
    return this.#isFollowing ? this.#active : undefined;
  }

  /** Replaces a datagram of a response by the next one. False: the former has not completely left for memory. */
  #follow(cycle: Cycles): boolean {
    if (!this.#writer.awaitLeft()) {
      this.account.stall(cycle, STALL_DMA);
      return false;
    }
    const { rxBytes, offset, payloadBytes } = this.#packets;
    const at = offset + PACKET_PAYLOAD_OFFSET;
    this.#manager.next(rxBytes.subarray(at, at + payloadBytes));
    this.#isFollowing = false;
    return true;
  }

  #drop(violation: DataPathViolation): undefined {
    this.#violations.count(violation);
  }

  /** The embedded subnet manager of the port at which the packet arrived. */
  get #manager(): EmbeddedManager {
    return this.#managers[this.#packets.portIndex]!;
  }

  /** Number of the QP that the wire calls 0 or 1 at the port of the packet, or -1. */
  specialQpn(qpn: Qpn): number {
    const base = this.#specialQps.specialQpBase;
    if (base === 0) return -1;
    return base + (qpn === QPN_SUBNET_MANAGEMENT ? 0 : PORTS) + this.#packets.portIndex;
  }

  /**
   * True if the GRH is for this port and, if the QP's path demands one, comes from the path's destination (9.6.1.1).
   */
  #hasRightGrh(pair: QueuePair, hasGrh: boolean): boolean {
    const isConnected = pair.opcodeBase !== UD_OPCODE_BASE;
    if (!hasGrh) return !isConnected || pair.hasGrh === 0;
    const bytes = this.#packets.rxBytes;
    const grh = this.#grhPlace();
    if (!isGrhForPort(this.#packets.address, bytes, grh)) return false;
    return (
      !isConnected ||
      pair.hasGrh === 0 ||
      isGrhFromPath(bytes, grh, this.#qps.bytes, this.#qps.pathOf(pair.slot))
    );
  }

  /** The opcode as it came: {@link #findQp} has replaced one of XRC by that of RC, which has no XRCETH. */
  #opcodeOf({ serviceBits }: QueuePair): number {
    const { opcode } = this.#packets;
    return serviceBits === XRC_SERVICE && opcode !== this.#cnp ? opcode + XRC_SERVICE : opcode;
  }

  #grhPlace(opcode = this.#packets.opcode): number {
    const { offset, payloadBytes } = this.#packets;
    return grhPlace(offset, bytesBeforeGrh(opcode, payloadBytes));
  }

  /**
   * Returns the first member of the group that accepts the packet, if any; packets of groups without a member here are
   * not counted.
   */
  #firstMember(): QueuePair | undefined {
    const packet = this.#packets;
    const hasGrh = (packet.flags & FLAG_GRH) !== 0;
    const isDatagram = (packet.opcode & SERVICE_MASK) === UD_OPCODE_BASE;
    if (!hasGrh || !isDatagram || (packet.traits & IS_KNOWN) === 0) return this.#drop('packetOpcode');
    const grh = this.#grhPlace();
    if (!isGrhForGroup(packet.rxBytes, grh)) return this.#drop('packetForeignGid');
    this.#memberCount = this.#groups.find(packet.rxBytes, grh);
    this.#member = -1;
    return this.#memberCount === 0 ? undefined : this.#nextMember();
  }

  /** Returns the next member that accepts the packet, if one is left. */
  #nextMember(): QueuePair | undefined {
    const source = this.#packets.word(WORD_DATAGRAM_SOURCE_QPN);
    while (++this.#member < this.#memberCount) {
      const qpn = this.#groups.memberQpn(this.#member);
      const isEcho = this.#packets.isLoopback && qpn === source && this.#groups.blocksLoopback(this.#member);
      const slot = qpn === -1 || isEcho ? -1 : this.#qps.slotOf(qpn);
      if (slot === -1) continue;
      const pair = this.#pairs[slot]!;
      const isBoundHere = pair.portIndex === this.#packets.portIndex;
      if (isBoundHere && pair.opcodeBase === UD_OPCODE_BASE && takesRequests(pair)) return pair;
    }
    this.#memberCount = 0;
    return undefined;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const source of this.#sources) source.rebase(cycles);
    this.#packets.arrivedCycle -= cycles;
  }
}

function takesRequests(pair: QueuePair): boolean {
  return pair.state >= RTR && pair.state !== ERR;
}

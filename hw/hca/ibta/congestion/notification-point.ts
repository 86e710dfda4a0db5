/**
 * The notification point: answers packets that a switch has marked by congestion notification packets.
 *
 *     receiver ─marked packet of a QP─▶ none to it within minTimeBetweenCnps? ─▶ CNP ─▶ transmitter, before all other packets
 *                                  └─▶ InfiniBand, a request that is acknowledged at once ─▶ BECN of the next response
 *
 * A CNP has a BTH with BECN, for the sender's QP, with PSN 0 (mark-format.ts). That of RoCE is not ECT and has a DSCP and a priority
 * of its own (traffic-classes.ts). While no slot is free none is made, and the QP's next marked packet asks again.
 *
 * Source: IBTA vol 1, annexes A10 and A17.9. Counters have the names of mlx5's (drivers/infiniband/hw/mlx5/counters.c): np_cnp_sent,
 * np_ecn_marked_roce_packets.
 */
import { type Cycles, psPerUs } from '../../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../../sim/index.ts';
import { FLAG_ACK_REQUEST, RESPONSE_BECN } from '../../../../wire/index.ts';
import {
  noRecord,
  type QpSlot,
  type QueuePair,
  UC_OPCODE_BASE,
  UD_OPCODE_BASE,
} from '../../objects/index.ts';
import { PacketQueue } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import { type IbtaPacket, IS_REQUEST, makeIbtaPacket, type Transmitter } from '../packets/index.ts';
import type { IbtaStates } from '../state/index.ts';
import type { MarkedPacket, MarkFormat } from './mark-format.ts';
import { leastCnpDistanceUs, type NotificationConfig, usesMarks } from './parameters.ts';

/** CNPs on their way to the port. */
const SLOTS = 16;

/** Parts of the device that {@link NotificationPoint} uses. */
export interface NotificationPointSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'responseCycles' | 'transmitLatencyCycles'>;
  readonly congestion: NotificationConfig;
  readonly marks: MarkFormat;
  readonly states: IbtaStates;
}

export interface NotificationPorts {
  readonly transmitter: Transmitter;
}

export class NotificationPoint {
  /** Packets that arrived marked, of any service; CNPs made; and responses that carry BECN instead. */
  markedCount = 0;
  sentCount = 0;
  becnCount = 0;
  readonly marks: MarkFormat;
  /** False where marks are not answered. */
  readonly isOn: boolean;
  readonly packets: PacketQueue<IbtaPacket>;
  /** Cycles from making a CNP until it can be sent; and least distance of two of a QP. */
  readonly #formationCycles: number;
  readonly #distanceCycles: number;
  readonly #states: IbtaStates;
  /** Cycle from which a QP may be sent the next CNP, by slot. */
  readonly #nextCycle = new Map<QpSlot, Cycles>();
  #transmitter!: Transmitter;

  constructor({ domain, config, congestion, marks, states }: NotificationPointSetup) {
    this.marks = marks;
    this.#states = states;
    this.isOn = usesMarks(congestion);
    this.packets = new PacketQueue(this.isOn ? SLOTS : 1, 0, makeIbtaPacket, 0);
    this.#formationCycles = config.responseCycles + config.transmitLatencyCycles;
    this.#distanceCycles = domain.clock.cyclesOf(leastCnpDistanceUs(congestion) * psPerUs);
  }

  connect({ transmitter }: NotificationPorts): void {
    this.#transmitter = transmitter;
  }

  /** A packet of the QP has arrived, whose network header is at `grhAt`. */
  received(pair: QueuePair, packet: MarkedPacket, grhAt: number, cycle: Cycles): void {
    if (!this.marks.isMarked(packet, grhAt)) return;
    this.markedCount++;
    const { slot } = pair;
    if (this.marks.hasBecn && isAcknowledgedAtOnce(pair, packet)) return this.#oweBecn(slot);
    if (pair.opcodeBase === UD_OPCODE_BASE || this.packets.isFull) return;
    if (cycle < (this.#nextCycle.get(slot) ?? 0)) return;
    this.#nextCycle.set(slot, cycle + this.#distanceCycles);
    this.#make(pair, cycle);
  }

  /** The next response of the QP carries BECN: one for all requests that it answers. */
  #oweBecn(slot: QpSlot): void {
    const state = this.#states.rows[slot]!;
    if (state.owedBecn !== 0) return;
    state.owedBecn = RESPONSE_BECN;
    this.becnCount++;
  }

  #make(pair: QueuePair, cycle: Cycles): void {
    const packet = this.packets.open(pair, 0, noRecord);
    pair.inPipelineCount++;
    packet.opcode = this.marks.cnpOpcode;
    packet.becn = RESPONSE_BECN;
    packet.psn = 0;
    packet.flags = 0;
    packet.readyCycle = cycle + this.#formationCycles;
    packet.isSealed = 1;
    this.sentCount++;
    this.#transmitter.wake(packet.readyCycle);
  }

  /** A generation of the QP begins or ends. */
  forget(slot: QpSlot): void {
    this.#nextCycle.delete(slot);
  }

  /** CNPs that have not left. */
  get heldCount(): number {
    return this.packets.heldCount;
  }

  /** CNPs that have not left are not sent. */
  reset(): void {
    this.sentCount -= this.packets.heldCount;
    this.packets.clear();
    this.#nextCycle.clear();
  }

  inspect(): BlockState {
    return { packets: this.packets.heldCount, notified: [...this.#nextCycle.keys()] };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.packets.rebase(cycles);
    for (const [slot, nextCycle] of this.#nextCycle) this.#nextCycle.set(slot, nextCycle - cycles);
  }
}

/** Whether the packet is a request of a reliable connection that the responder acknowledges without waiting for others. */
const isAcknowledgedAtOnce = ({ opcodeBase }: QueuePair, { traits, flags }: MarkedPacket): boolean =>
  opcodeBase < UC_OPCODE_BASE && (traits & IS_REQUEST) !== 0 && (flags & FLAG_ACK_REQUEST) !== 0;

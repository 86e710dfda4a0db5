/**
 * The notification point: answers packets that a switch has marked (ECN 11) by congestion notification packets.
 *
 *     receiver ─marked packet of a QP─▶ none to it within minTimeBetweenCnps? ─▶ CNP ─▶ transmitter, before all other packets
 *
 * A CNP is 16 reserved bytes after a BTH with BECN, for the sender's QP, with PSN 0; it is not ECT and has a DSCP and a priority
 * of its own (traffic-classes.ts). While no slot is free none is made, and the QP's next marked packet asks again.
 *
 * Source: IBTA vol 1, annex A17.9. Counters have the names of mlx5's (drivers/infiniband/hw/mlx5/counters.c): np_cnp_sent,
 * np_ecn_marked_roce_packets.
 */
import { type Cycles, psPerUs } from '../../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../../sim/index.ts';
import { isMarkedRoute, Opcode } from '../../../../wire/index.ts';
import { noRecord, type QpSlot, type QueuePair, UD_OPCODE_BASE } from '../../objects/index.ts';
import { PacketQueue } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import { type IbtaPacket, makeIbtaPacket, type Transmitter } from '../packets/index.ts';
import { type NotificationConfig, usesMarks } from './parameters.ts';

/** CNPs on their way to the port. */
const SLOTS = 16;

/** Parts of the device that {@link NotificationPoint} uses. */
export interface NotificationPointSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'responseCycles' | 'transmitLatencyCycles'>;
  readonly congestion: NotificationConfig;
}

export interface NotificationPorts {
  readonly transmitter: Transmitter;
}

export class NotificationPoint {
  /** Packets that arrived marked, of any service; and CNPs made. */
  markedCount = 0;
  sentCount = 0;
  /** False where marks are not answered. */
  readonly isOn: boolean;
  readonly packets: PacketQueue<IbtaPacket>;
  /** Cycles from making a CNP until it can be sent; and least distance of two of a QP. */
  readonly #formationCycles: number;
  readonly #distanceCycles: number;
  /** Cycle from which a QP may be sent the next CNP, by slot. */
  readonly #nextCycle = new Map<QpSlot, Cycles>();
  #transmitter!: Transmitter;

  constructor({ domain, config, congestion }: NotificationPointSetup) {
    this.isOn = usesMarks(congestion);
    this.packets = new PacketQueue(this.isOn ? SLOTS : 1, 0, makeIbtaPacket, 0);
    this.#formationCycles = config.responseCycles + config.transmitLatencyCycles;
    this.#distanceCycles = domain.clock.cyclesOf(congestion.minTimeBetweenCnpsUs * psPerUs);
  }

  connect({ transmitter }: NotificationPorts): void {
    this.#transmitter = transmitter;
  }

  /** A packet of the QP has arrived, whose network header is at `grhAt` of `bytes`. */
  received(pair: QueuePair, bytes: Uint8Array, grhAt: number, cycle: Cycles): void {
    if (!isMarkedRoute(bytes, grhAt)) return;
    this.markedCount++;
    const { slot } = pair;
    if (pair.opcodeBase === UD_OPCODE_BASE || this.packets.isFull) return;
    if (cycle < (this.#nextCycle.get(slot) ?? 0)) return;
    this.#nextCycle.set(slot, cycle + this.#distanceCycles);
    this.#make(pair, cycle);
  }

  #make(pair: QueuePair, cycle: Cycles): void {
    const packet = this.packets.open(pair, 0, noRecord);
    pair.inPipelineCount++;
    packet.opcode = Opcode.CNP;
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

/**
 * Packets of the response engine: at most one is open, the one being made. Sealed, it goes out in its order with the credits
 * that the QP can grant; abandoned, it is dropped when its reads are done.
 */
import { type BlockAccount, stallReasons } from '../../../sim/index.ts';
import { ackSyndrome, CREDIT_CODE_INVALID, creditCodeFor } from '../../../wire/aeth.ts';
import type { HcaCore } from '../core.ts';
import { noRecord, type QueuePair } from '../objects/index.ts';
import type { PacketQueue, PacketSlot } from '../packets/index.ts';

export const responseStalls = stallReasons('translation', 'dma', 'responseBuffer', 'ordering', 'atomic');
export const {
  translation: STALL_TRANSLATION,
  dma: STALL_DMA,
  responseBuffer: STALL_RESPONSE_BUFFER,
  ordering: STALL_ORDERING,
  atomic: STALL_ATOMIC,
} = responseStalls;

const NONE = -1;

export interface ResponsePacketListener {
  /** Credits the QP can grant: receive WQEs known to be posted. */
  knownReceives(pair: QueuePair): number;
  /** A packet is complete and can be sent from `cycle` on; one that waits for DMA reads tells by itself. */
  packetSealed(cycle: number): void;
}

export class ResponsePackets {
  readonly queue: PacketQueue;
  readonly #account: BlockAccount;
  readonly #listener: ResponsePacketListener;
  /** Cycles from sealing a packet until it can be sent. */
  readonly #formationCycles: number;
  /** True while a packet is open: the one below. */
  isOpen = false;
  packet: PacketSlot;

  constructor(core: HcaCore, queue: PacketQueue, account: BlockAccount, listener: ResponsePacketListener) {
    this.queue = queue;
    this.#account = account;
    this.#listener = listener;
    this.#formationCycles = core.config.responseCycles + core.config.transmitLatencyCycles;
    this.packet = queue.rows[0]!;
  }

  /** Opens a packet of a QP. False: there is no room, which is accounted for. */
  open(pair: QueuePair, cycle: number): boolean {
    if (this.queue.isFull) {
      this.#account.stall(cycle, STALL_RESPONSE_BUFFER);
      return false;
    }
    this.packet = this.queue.open(pair, 0, noRecord);
    this.isOpen = true;
    pair.inPipelineCount++;
    return true;
  }

  /** Completes the open packet. */
  seal(opcode: number, psn: number, syndrome: number, cycle: number): void {
    const { packet } = this;
    packet.opcode = opcode;
    packet.psn = psn;
    packet.aeth = (syndrome << 24) | packet.pair.msn;
    packet.readyCycle = cycle + this.#formationCycles;
    packet.isSealed = 1;
    this.isOpen = false;
    if (packet.pendingReads === 0) this.#listener.packetSealed(packet.readyCycle);
  }

  /** Gives up the open packet, if there is one. */
  abandon(cycle: number): void {
    if (!this.isOpen) return;
    this.packet.epoch = NONE;
    this.packet.isSealed = 1;
    this.isOpen = false;
    this.#listener.packetSealed(cycle + 1);
  }

  /** Syndrome of an ACK: the credits that the QP can grant. */
  creditSyndrome(pair: QueuePair): number {
    if (pair.creditsInvalid === 1) return ackSyndrome(CREDIT_CODE_INVALID);
    return ackSyndrome(creditCodeFor(this.#listener.knownReceives(pair)));
  }

  /** Forgets the open packet: the queue is cleared, too. */
  reset(): void {
    this.isOpen = false;
  }
}

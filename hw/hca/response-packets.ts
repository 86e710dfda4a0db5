/**
 * Packets of the response engine: at most one is open, the one being made. Sealed, it goes out in its order with the credits
 * that the QP can grant; abandoned, it is dropped when its reads are done.
 */
import type { BlockAccount } from '../../sim/index.ts';
import * as aethConstants from '../../wire/aeth.ts';
import { ackSyndrome, creditCodeFor } from '../../wire/aeth.ts';
import type { HcaCore } from './core.ts';
import type { PacketQueue } from './packet-queue.ts';
import * as sendRecord from './send-record.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { CREDIT_CODE_INVALID } = aethConstants;
const { noRecord } = sendRecord;

export const responseStallReasons = ['translation', 'dma', 'responseBuffer', 'ordering', 'atomic'] as const;
export const STALL_TRANSLATION = 0;
export const STALL_DMA = 1;
export const STALL_RESPONSE_BUFFER = 2;
export const STALL_ORDERING = 3;
export const STALL_ATOMIC = 4;

/** What became of an answer: it waits in the engine, its page has been asked for, or its memory is refused. */
export const STALLED = -1;
export const ABSENT = -2;
export const REFUSED = -3;

const NONE = -1;

export interface ResponsePacketListener {
  /** Credits the QP can grant: receive WQEs known to be posted. */
  knownReceives(qp: number): number;
  /** A packet is complete and can be sent from `cycle` on; one that waits for DMA reads tells by itself. */
  packetSealed(cycle: number): void;
}

export class ResponsePackets {
  readonly queue: PacketQueue;
  readonly #core: HcaCore;
  readonly #account: BlockAccount;
  readonly #listener: ResponsePacketListener;
  #slot = NONE;

  constructor(core: HcaCore, queue: PacketQueue, account: BlockAccount, listener: ResponsePacketListener) {
    this.#core = core;
    this.queue = queue;
    this.#account = account;
    this.#listener = listener;
  }

  get isOpen(): boolean {
    return this.#slot !== NONE;
  }

  /** The open packet's slot. */
  get slot(): number {
    return this.#slot;
  }

  /** Opens a packet for `qp`. False: there is no room, which is accounted for. */
  open(qp: number, cycle: number): boolean {
    if (this.queue.isFull) {
      this.#account.stall(cycle, STALL_RESPONSE_BUFFER);
      return false;
    }
    const pair = this.#core.qps.rows[qp]!;
    this.#slot = this.queue.open(pair, 0, noRecord).slot;
    pair.inPipelineCount++;
    return true;
  }

  /** Puts the result of an atomic into the open packet. */
  setResult(low: number, high: number): void {
    const { operands } = this.queue.rows[this.#slot]!;
    operands[0] = low;
    operands[1] = high;
  }

  /** Completes the open packet. */
  seal(opcode: number, psn: number, syndrome: number, qp: number, cycle: number): void {
    const { qps, config } = this.#core;
    const packet = this.queue.rows[this.#slot]!;
    packet.opcode = opcode;
    packet.psn = psn;
    packet.aeth = (syndrome << 24) | qps.rows[qp]!.msn;
    packet.readyCycle = cycle + config.responseCycles + config.transmitLatencyCycles;
    packet.isSealed = 1;
    this.#slot = NONE;
    if (packet.pendingReads === 0) this.#listener.packetSealed(packet.readyCycle);
  }

  /** Gives up the open packet, if there is one. */
  abandon(cycle: number): void {
    if (this.#slot === NONE) return;
    const packet = this.queue.rows[this.#slot]!;
    packet.epoch = NONE;
    packet.isSealed = 1;
    this.#slot = NONE;
    this.#listener.packetSealed(cycle + 1);
  }

  /** Syndrome of an ACK: the credits that the QP can grant. */
  creditSyndrome(qp: number): number {
    if (this.#core.qps.rows[qp]!.creditsInvalid === 1) return ackSyndrome(CREDIT_CODE_INVALID);
    return ackSyndrome(creditCodeFor(this.#listener.knownReceives(qp)));
  }

  /** Forgets the open packet: the queue is cleared, too. */
  reset(): void {
    this.#slot = NONE;
  }
}

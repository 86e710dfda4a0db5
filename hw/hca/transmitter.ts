/**
 * The transmitter: sends complete packets to the wire port, one at a time.
 *
 *   response packets ─┐
 *                     ├─> choose (responses first) ─> header words and payload ─> wire port
 *   request packets  ─┘
 *
 * Each queue is served in its own order: a packet whose payload is not yet on chip holds up those behind it, but
 * not the other queue. Responses go first because a responder must make progress whatever its own requests wait for.
 */
import { BlockAccount } from '../../sim/index.ts';
import { operandBytes } from '../../wire/opcodes.ts';
import {
  FLAG_RETRANSMISSION,
  FLOAT_VIRTUAL_ADDRESS,
  PACKET_PAYLOAD_OFFSET,
  WORD_AETH,
  WORD_DESTINATION_QPN,
  WORD_DMA_LENGTH,
  WORD_IMMEDIATE,
  WORD_LIDS,
  WORD_PSN,
  WORD_RKEY,
} from '../../wire/packet.ts';
import { copyBytes, wordsOver } from '../dma/copy.ts';
import type { HcaCore } from './core.ts';
import type { PacketPort } from './packet-port.ts';
import { PacketQueue } from './packet-queue.ts';

const STALL_PAYLOAD = 0;
const STALL_WIRE = 1;
const STALL_FORMATION = 2;

export interface TransmitterListener {
  /** A request packet was handed to the wire port. */
  requestSent(record: number, qp: number, isLast: number, cycle: number): void;
  /** The payload of a request packet could not be read. */
  payloadFailed(record: number, qp: number, cycle: number): void;
  /** A slot of the request queue, or of the response queue, became free. */
  requestSlotFreed(cycle: number): void;
  responseSlotFreed(cycle: number): void;
}

export class Transmitter {
  readonly account = new BlockAccount('transmitter', ['payload', 'wire', 'formation']);
  repeatedPacketCount = 0;
  droppedPacketCount = 0;
  readonly requests: PacketQueue;
  readonly responses: PacketQueue;
  readonly #core: HcaCore;
  readonly #port: PacketPort;
  readonly #localLid: () => number;
  readonly #sramWords: Int32Array;
  readonly #stage: number;
  #listener: TransmitterListener | undefined;

  constructor(
    core: HcaCore,
    port: PacketPort,
    requestSram: number,
    responseSram: number,
    localLid: () => number,
  ) {
    this.#core = core;
    this.#port = port;
    this.#localLid = localLid;
    this.#sramWords = wordsOver(core.sram);
    this.requests = new PacketQueue(core.config.transmitBufferPackets, requestSram);
    this.responses = new PacketQueue(core.config.responseBufferPackets, responseSram);
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    port.onSpace(() => core.domain.wakeAfter(this.#stage, core.lp.nowPs));
  }

  connect(listener: TransmitterListener): void {
    this.#listener = listener;
  }

  wake(cycle: number): void {
    this.#core.domain.wake(this.#stage, cycle);
  }

  /** A DMA read into a slot is complete. */
  payloadArrived(queue: PacketQueue, slot: number, status: number, cycle: number): void {
    queue.pendingReads[slot] = queue.pendingReads[slot]! - 1;
    if (status !== 0) queue.failure[slot] = status;
    if (queue.pendingReads[slot] !== 0 || queue.isSealed[slot] === 0 || slot !== queue.head) return;
    this.wake(Math.max(cycle + 1, queue.readyCycle[slot]!));
  }

  reset(): void {
    this.requests.clear();
    this.responses.clear();
  }

  #run(cycle: number): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    const queue = this.#choose(cycle);
    if (queue === undefined) return;
    const slot = queue.head;
    if (!this.#port.canTransmit(queue.opcode[slot]!, queue.payloadBytes[slot]!)) {
      this.account.stall(cycle, STALL_WIRE);
      return;
    }
    this.#send(queue, slot, cycle);
    const busyCycles = this.#core.config.transmitPacketCycles;
    this.account.serve(cycle, busyCycles);
    if (this.responses.isHeadComplete || this.requests.isHeadComplete) this.wake(cycle + busyCycles);
  }

  /** The queue to serve, or undefined: then the reason is accounted for and the next look is arranged. */
  #choose(cycle: number): PacketQueue | undefined {
    const response = this.#headReadyCycle(this.responses, cycle);
    const request = this.#headReadyCycle(this.requests, cycle);
    if (response <= cycle) return this.responses;
    if (request <= cycle) return this.requests;
    const next = Math.min(request, response);
    if (next < Number.POSITIVE_INFINITY) {
      this.account.stall(cycle, STALL_FORMATION);
      this.wake(next);
    } else if (this.requests.isEmpty && this.responses.isEmpty) {
      this.account.rest(cycle);
    } else {
      this.account.stall(cycle, STALL_PAYLOAD);
    }
    return undefined;
  }

  /**
   * Cycle from which the oldest packet of a queue can be sent; Infinity while it is not complete. Complete ones in
   * front of it that are void or could not be read are dropped.
   */
  #headReadyCycle(queue: PacketQueue, cycle: number): number {
    while (queue.isHeadComplete) {
      const slot = queue.head;
      const qp = queue.qp[slot]!;
      const record = queue.record[slot]!;
      // Responses answer for packets already accepted: they go out even if the QP has failed since.
      const isCurrent =
        record === -1 ? queue.epoch[slot] !== -1 : queue.epoch[slot] === this.#core.qps.epoch[qp];
      if (isCurrent && queue.failure[slot] === 0) return queue.readyCycle[slot]!;
      this.droppedPacketCount++;
      if (isCurrent && record !== -1) this.#listener!.payloadFailed(record, qp, cycle);
      this.#free(queue, qp, cycle);
    }
    return Number.POSITIVE_INFINITY;
  }

  #send(queue: PacketQueue, slot: number, cycle: number): void {
    const { qps, sram } = this.#core;
    const port = this.#port;
    const qp = queue.qp[slot]!;
    const payloadBytes = queue.payloadBytes[slot]!;
    const flags = queue.flags[slot]! | (queue.isRepeat[slot] === 1 ? FLAG_RETRANSMISSION : 0);
    const formedCycle = cycle + Math.ceil(payloadBytes / this.#core.config.transmitBytesPerCycle);
    const nowPs = this.#core.domain.clock.edgePs(formedCycle);
    const offset = port.beginPacket(queue.opcode[slot]!, payloadBytes, flags, nowPs);
    const words = port.txWords;
    const word = offset >> 2;
    words[word + WORD_DESTINATION_QPN] = qps.remoteQpn[qp]!;
    words[word + WORD_PSN] = queue.psn[slot]!;
    port.txFloats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS] = queue.address[slot]!;
    words[word + WORD_RKEY] = queue.key[slot]!;
    words[word + WORD_DMA_LENGTH] = queue.dmaBytes[slot]!;
    words[word + WORD_AETH] = queue.aeth[slot]!;
    words[word + WORD_IMMEDIATE] = queue.immediate[slot]!;
    words[word + WORD_LIDS] = (this.#localLid() << 16) | qps.remoteLid[qp]!;
    const operandWords = operandBytes(queue.opcode[slot]!) >> 2;
    const payload = word + (PACKET_PAYLOAD_OFFSET >> 2);
    for (let index = 0; index < operandWords; index++)
      words[payload + index] = queue.operands[slot * 4 + index]!;
    if (payloadBytes > 0) {
      const from = queue.payloadOffset(slot);
      copyBytes(
        port.txBytes,
        words,
        offset + PACKET_PAYLOAD_OFFSET,
        sram,
        this.#sramWords,
        from,
        payloadBytes,
      );
    }
    if (queue.isRepeat[slot] === 1) {
      this.repeatedPacketCount++;
    }
    const record = queue.record[slot]!;
    const isLast = queue.isLast[slot]!;
    this.#free(queue, qp, cycle);
    if (record !== -1) this.#listener!.requestSent(record, qp, isLast, cycle);
  }

  #free(queue: PacketQueue, qp: number, cycle: number): void {
    const { qps } = this.#core;
    queue.close();
    qps.inPipelineCount[qp] = qps.inPipelineCount[qp]! - 1;
    if (queue === this.requests) this.#listener!.requestSlotFreed(cycle);
    else this.#listener!.responseSlotFreed(cycle);
  }
}

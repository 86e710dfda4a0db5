/**
 * The memory that a request names: whether it may be accessed, by the rights of the QP first, then of the region; and the
 * payload of WRITEs and SENDs on its way there, piece by piece. A packet that has to wait goes on where it stopped.
 */

import { CqeSyndrome } from '../../../abi/cqe.ts';
import { EventType } from '../../../abi/eqe.ts';
import type { Cycles } from '../../../base/units.ts';
import type { BlockAccount } from '../../../sim/index.ts';
import { NakCode } from '../../../wire/aeth.ts';
import { Opcode } from '../../../wire/opcodes.ts';
import { PACKET_PAYLOAD_OFFSET } from '../../../wire/packet.ts';
import { ABSENT, DONE, FULL, REFUSED, type StepAnswer, WAIT } from '../answers.ts';
import type { HcaCore } from '../core.ts';
import {
  BAD_KEY,
  PAGE_FAULT,
  PENDING,
  PORT_RECEIVER,
  RIGHT_REMOTE_ATOMIC,
  RIGHT_REMOTE_READ,
  RIGHT_REMOTE_WRITE,
  TRANSLATED,
  type TranslationPort,
} from '../memory/index.ts';
import { QP_RIGHT_ATOMIC, QP_RIGHT_READ, QP_RIGHT_WRITE, type QueuePair } from '../objects/index.ts';
import { MESSAGE_SEND, MESSAGE_WRITE, STALL_TRANSLATION, STARTS_MESSAGE } from '../packets/index.ts';
import type { ReceiveScatter } from '../receive-queue/index.ts';
import type { InboundRequest } from './inbound-request.ts';
import type { RequestRefusals } from './request-refusals.ts';

const ATOMIC_BYTES = 8;

export class RequestMemory {
  readonly #translation: TranslationPort;
  readonly #request: InboundRequest;
  #scatter!: ReceiveScatter;
  readonly #refusals: RequestRefusals;
  readonly #account: BlockAccount;
  /** When the last WRITE began. */
  #checkedCycle = -1;

  constructor(core: HcaCore, request: InboundRequest, refusals: RequestRefusals, account: BlockAccount) {
    this.#translation = core.translator.port(PORT_RECEIVER);
    this.#request = request;
    this.#refusals = refusals;
    this.#account = account;
    core.domain.addEdgeKeeper(this);
  }

  connect({ scatter }: { readonly scatter: ReceiveScatter }): void {
    this.#scatter = scatter;
  }

  /** Rights of WRITE, READ and atomics. ALLOWED, REFUSED or WAIT. */
  checkRights(cycle: Cycles): StepAnswer {
    const request = this.#request;
    const { kind, pair } = request;
    if (kind === MESSAGE_SEND || (request.traits & STARTS_MESSAGE) === 0) return DONE;
    if (kind === MESSAGE_WRITE) {
      const bytes = request.dmaBytes;
      const allowed = this.#mayAccess(QP_RIGHT_WRITE, RIGHT_REMOTE_WRITE, bytes, cycle);
      if (allowed !== DONE) return allowed;
      pair.writeAddress = request.remoteAddress;
      pair.writeKey = request.remoteKey;
      pair.writeRemaining = bytes;
      pair.writeBytes = bytes;
      this.#checkedCycle = cycle;
      return DONE;
    }
    if (request.opcode === Opcode.RC_RDMA_READ_REQUEST)
      return this.#mayAccess(QP_RIGHT_READ, RIGHT_REMOTE_READ, request.dmaBytes, cycle);
    if (request.remoteAddress % ATOMIC_BYTES !== 0) {
      this.#refusals.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return REFUSED;
    }
    return this.#mayAccess(QP_RIGHT_ATOMIC, RIGHT_REMOTE_ATOMIC, ATOMIC_BYTES, cycle);
  }

  /** Writes the packet's payload to memory, piece by piece. DONE: all of it, or the receive has failed. */
  place(cycle: Cycles): StepAnswer {
    const request = this.#request;
    const bytes = request.payloadBytes;
    const source = request.packet.offset + PACKET_PAYLOAD_OFFSET;
    while (request.placed < bytes && request.receiveSyndrome === 0) {
      const left = bytes - request.placed;
      const from = source + request.placed;
      const placed =
        request.kind === MESSAGE_WRITE
          ? this.#placeWrite(left, from, cycle)
          : this.#placeSend(left, from, cycle);
      if (placed !== DONE) return placed;
    }
    return DONE;
  }

  /** Whether QP and region give this right to so many bytes at the address that the header names. */
  #mayAccess(qpRight: number, right: number, bytes: number, cycle: Cycles): StepAnswer {
    const request = this.#request;
    const { pair } = request;
    if ((pair.remoteRights & qpRight) === 0) {
      // A function that this QP does not support: an invalid request, not an access error (table 60).
      this.#refusals.refuseForGood(NakCode.INVALID_REQUEST, EventType.WQ_INVAL_REQ_ERROR, cycle);
      return REFUSED;
    }
    if (bytes === 0) return DONE;
    const found = this.#translation.translate(
      request.remoteKey,
      pair.pd,
      request.remoteAddress,
      bytes,
      right,
    );
    if (found === PENDING) {
      this.#account.stall(cycle, STALL_TRANSLATION);
      return WAIT;
    }
    if (found < BAD_KEY) {
      // What is written is counted where it is written.
      if (right !== RIGHT_REMOTE_WRITE) this.#translation.used();
      return DONE;
    }
    const isWrite = right === RIGHT_REMOTE_READ ? 0 : 1;
    const { remoteKey: key, remoteAddress: address } = request;
    if (found === PAGE_FAULT && this.#refusals.askForPage(key, address, bytes, isWrite, cycle))
      return REFUSED;
    this.#refusals.refuseForGood(NakCode.REMOTE_ACCESS_ERROR, EventType.WQ_ACCESS_ERROR, cycle);
    return REFUSED;
  }

  #placeWrite(left: number, from: number, cycle: Cycles): StepAnswer {
    const request = this.#request;
    const { pair } = request;
    const { writeAddress } = pair;
    const found = this.#translateWrite(pair, left, cycle);
    if (found >= BAD_KEY) {
      this.#refuseWrite(found, cycle);
      return REFUSED;
    }
    const moved = this.#scatter.write(found, left, request.packet.rxBytes, from, cycle);
    if (moved === WAIT) return WAIT;
    request.placed += moved;
    pair.writeAddress = writeAddress + moved;
    pair.writeRemaining -= moved;
    return DONE;
  }

  /** The first piece of a message was translated when its rights were checked, unless it has waited since. */
  #translateWrite(pair: QueuePair, left: number, cycle: Cycles): number {
    const translation = this.#translation;
    if (this.#checkedCycle === cycle && pair.writeRemaining === pair.writeBytes) return TRANSLATED;
    return translation.translate(pair.writeKey, pair.pd, pair.writeAddress, left, RIGHT_REMOTE_WRITE);
  }

  /** What the packet has written so far is written again when it comes again. */
  #refuseWrite(found: number, cycle: Cycles): void {
    const { pair, placed } = this.#request;
    const address = pair.writeAddress;
    const bytes = pair.writeRemaining;
    if (found === PAGE_FAULT && this.#refusals.askForPage(pair.writeKey, address, bytes, 1, cycle)) {
      pair.writeAddress = address - placed;
      pair.writeRemaining = bytes + placed;
      return;
    }
    this.#refusals.refuseForGood(NakCode.REMOTE_ACCESS_ERROR, EventType.WQ_ACCESS_ERROR, cycle);
  }

  /** Into the segments of the receive WQE; what does not fit or may not be written fails the message at its end. */
  #placeSend(left: number, from: number, cycle: Cycles): StepAnswer {
    const request = this.#request;
    const { qp } = request;
    const moved = this.#scatter.place(qp, left, request.packet.rxBytes, from, cycle);
    if (moved === WAIT) return WAIT;
    if (moved === ABSENT) {
      this.#scatter.retreat(qp, request.placed);
      this.#refusals.refuseForNow(cycle);
      return REFUSED;
    }
    if (moved === FULL) request.receiveSyndrome = CqeSyndrome.LOCAL_LENGTH_ERR;
    else if (moved === REFUSED) request.receiveSyndrome = CqeSyndrome.LOCAL_PROT_ERR;
    else request.placed += moved;
    return DONE;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    this.#checkedCycle -= cycles;
  }
}

/**
 * The responder: executes inbound requests of connections. {@link Responder.process} leads a request through its steps:
 *
 *   checks ─> receive WQE ─> rights ─> payload to memory ─> key invalidated ─> completion, PSN, ACK
 *     └── request-checks.ts ──┘
 *
 * A packet is processed until it is finished; if something is not on chip (translation, receive WQE, DMA room) the
 * function returns WAIT and later resumes at the same step.
 *
 * An unreliable connection accepts SENDs and WRITEs only and is never answered: a message with a missing or illegal
 * packet is silently abandoned, and the next message uses its receive WQE (9.8.2).
 */

import { CqeSyndrome, EventType, ReceiveOpcode } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import type { BlockAccount, BlockState } from '../../../../sim/index.ts';
import {
  FLAG_ACK_REQUEST,
  FLAG_SOLICITED,
  NakCode,
  nakSyndrome,
  Opcode,
  PACKET_PAYLOAD_OFFSET,
  PSN_MASK,
  PSNS_OUTSTANDING_MAX,
  psnDistance,
  rnrNakSyndrome,
  WORD_IMMEDIATE,
} from '../../../../wire/index.ts';
import {
  ABSENT,
  DONE,
  DUPLICATE,
  EXECUTE,
  FULL,
  NONE_POSTED,
  REFUSED,
  type StepAnswer,
  UNREADABLE,
  WAIT,
} from '../../answers.ts';
import type { CompletionWriter } from '../../completion/index.ts';
import type { KeyUnit } from '../../keys/index.ts';
import {
  BAD_KEY,
  PAGE_FAULT,
  PORT_RECEIVER,
  RIGHT_REMOTE_WRITE,
  TRANSLATED,
  type TranslationPort,
  type Translator,
} from '../../memory/index.ts';
import type { QpSlot, QueuePair } from '../../objects/index.ts';
import { STALL_COMPLETION, STALL_KEYS } from '../../packets/index.ts';
import type { ReceiveScatter } from '../../receive-queue/index.ts';
import type { DiagnosticCounters } from '../../statistics/index.ts';
import {
  COMPLETES_RECEIVE_WQE,
  ENDS_MESSAGE,
  HAS_IMMEDIATE,
  HAS_INVALIDATE,
  MESSAGE_NONE,
  MESSAGE_SEND,
  MESSAGE_WRITE,
  TAKES_RECEIVE_WQE,
  type TransportCounters,
} from '../packets/index.ts';
import { InboundRequest, type InboundRequestSetup, type RefusedQps } from './inbound-request.ts';
import { RequestChecks, type RequestChecksSetup } from './request-checks.ts';
import type { ResponseEngine } from './response-engine.ts';

const NO_PSN = -1;
const STEP_CHECK = 0;
const STEP_RECEIVE_WQE = 1;
const STEP_RIGHTS = 2;
const STEP_PAYLOAD = 3;
const STEP_INVALIDATE = 4;
const STEP_FINISH = 5;

export interface ResponderPorts {
  readonly scatter: ReceiveScatter;
  readonly responses: ResponseEngine;
  readonly completions: CompletionWriter;
  readonly keys: KeyUnit;
  readonly errors: RefusedQps & {
    /** First packet on a QP in RTR. */
    communicationEstablished(qp: QpSlot, cycle: Cycles): void;
  };
}

/** Parts of the device that {@link Responder} uses. */
export interface ResponderSetup extends InboundRequestSetup, RequestChecksSetup {
  readonly translator: Translator;
  readonly transport: TransportCounters;
  readonly diagnostics: DiagnosticCounters;
}

export class Responder {
  readonly #transport: TransportCounters;
  readonly #diagnostics: DiagnosticCounters;
  readonly #account: BlockAccount;
  #scatter!: ReceiveScatter;
  #responses!: ResponseEngine;
  #completions!: CompletionWriter;
  #keys!: KeyUnit;
  #errors!: ResponderPorts['errors'];
  readonly #request: InboundRequest;
  readonly #checks: RequestChecks;
  readonly #translation: TranslationPort;
  #step = STEP_CHECK;

  /** @param account that of the receiver, whose stage works on requests */
  constructor(setup: ResponderSetup, account: BlockAccount) {
    this.#transport = setup.transport;
    this.#diagnostics = setup.diagnostics;
    this.#account = account;
    this.#request = new InboundRequest(setup);
    this.#checks = new RequestChecks(setup, this.#request, account);
    this.#translation = setup.translator.port(PORT_RECEIVER);
  }

  connect({ scatter, responses, completions, keys, errors }: ResponderPorts): void {
    this.#scatter = scatter;
    this.#responses = responses;
    this.#completions = completions;
    this.#keys = keys;
    this.#errors = errors;
    this.#request.connect({ responses, errors });
    this.#checks.connect({ responses });
  }

  /** Works on the request that the receiver has turned to, for a QP. Returns the payload bytes handled, or WAIT. */
  process(pair: QueuePair, cycle: Cycles): number {
    const request = this.#request;
    let step = this.#step;
    if (step === STEP_CHECK) {
      request.begin(pair);
      if (!this.#begin(cycle)) return request.placed;
      step = (request.traits & TAKES_RECEIVE_WQE) !== 0 ? STEP_RECEIVE_WQE : STEP_RIGHTS;
    }
    if (step === STEP_RECEIVE_WQE) {
      const taken = this.#takeReceiveWqe(cycle);
      if (taken !== DONE) return this.#stop(taken, STEP_RECEIVE_WQE);
      step = STEP_RIGHTS;
    }
    if (step === STEP_RIGHTS) {
      const allowed = this.#checks.checkRights(cycle);
      if (allowed !== DONE) return this.#stop(allowed, STEP_RIGHTS);
      step = STEP_PAYLOAD;
    }
    if (step === STEP_PAYLOAD) {
      const placed = this.#place(cycle);
      if (placed !== DONE) return this.#stop(placed, STEP_PAYLOAD);
      step = STEP_INVALIDATE;
    }
    if (step === STEP_INVALIDATE && !this.#invalidate(cycle)) return this.#stop(WAIT, STEP_INVALIDATE);
    if (!this.#finish(cycle)) return this.#stop(WAIT, STEP_FINISH);
    this.#step = STEP_CHECK;
    return request.placed;
  }

  reset(): void {
    this.#step = STEP_CHECK;
    this.#keys.abandonRemote();
  }

  inspect(): BlockState {
    return { step: this.#step };
  }

  /** Ends the work on the packet: it is finished, refused, or waits at `step` and resumes there. */
  #stop(answer: typeof WAIT | typeof REFUSED, step: number): 0 | typeof WAIT {
    this.#step = answer === WAIT ? step : STEP_CHECK;
    return answer === WAIT ? WAIT : 0;
  }

  /** False: the request is not to be executed. */
  #begin(cycle: Cycles): boolean {
    const { qp, pair } = this.#request;
    if (pair.hasCommunicated === 0) {
      pair.hasCommunicated = 1;
      this.#errors.communicationEstablished(qp, cycle);
    }
    const checked = this.#checks.check(cycle);
    if (checked === DUPLICATE) this.#repeat(cycle);
    return checked === EXECUTE;
  }

  /** Handles a duplicate (9.7.5.1.4): answers it again; only a READ is executed again. */
  #repeat(cycle: Cycles): void {
    const { qp, state, opcode, kind, psn } = this.#request;
    this.#transport.count('duplicateRequest');
    this.#diagnostics.count('rqDuplicate');
    if (opcode === Opcode.RC_RDMA_READ_REQUEST) {
      this.#responses.repeatRead(this.#request, cycle);
    } else if (kind === MESSAGE_NONE) {
      this.#responses.replayAtomic(qp, psn, cycle);
    } else {
      // An ACK up to a later READ or atomic would signal that its response is lost, though it is on its way.
      const isBeforeAnswered = state.answeredPsn !== NO_PSN && psnDistance(state.answeredPsn, psn) > 0;
      const acknowledged = isBeforeAnswered ? psn : (state.expectedPsn - 1) & PSN_MASK;
      this.#responses.acknowledgeAgain(qp, acknowledged, cycle);
    }
  }

  /** The receive WQE of a SEND's first packet, or of a WRITE with immediate's last one. */
  #takeReceiveWqe(cycle: Cycles): StepAnswer {
    const { qp, pair, packet } = this.#request;
    if (pair.hasReceiveWqe === 1) {
      // The receive WQE was left by an abandoned message of an unreliable connection.
      this.#scatter.rewind(qp);
      this.#takeInline();
      return DONE;
    }
    const taken = this.#scatter.take(qp, packet.arrivedCycle, cycle);
    if (taken === NONE_POSTED) {
      if (pair.opcodeBase !== 0) this.#transport.count('unreliableNoReceive');
      this.#request.refuse(rnrNakSyndrome(pair.minRnrNakCode), cycle);
      return REFUSED;
    }
    if (taken === UNREADABLE) {
      this.#request.refuseForGood(NakCode.REMOTE_OPERATIONAL_ERROR, EventType.WQ_CATAS_ERROR, cycle);
      return REFUSED;
    }
    if (taken === DONE) this.#takeInline();
    return taken;
  }

  /** Puts a SEND of one packet in its receive WQE, if allowed. */
  #takeInline(): void {
    const { pair, kind, traits, payloadBytes } = this.#request;
    if (kind === MESSAGE_SEND && (traits & ENDS_MESSAGE) !== 0) this.#scatter.takeInline(pair, payloadBytes);
  }

  /**
   * Writes the packet's payload to memory, piece by piece. Returns DONE if all of it is written, or the receive has
   * failed.
   */
  #place(cycle: Cycles): StepAnswer {
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

  /**
   * Translates the address of the next piece, unless it is already translated: the check of rights has translated the first
   * piece of a message, and that translation holds until the responder waits.
   */
  #translateWrite(pair: QueuePair, left: number, cycle: Cycles): number {
    if (this.#checks.isTranslated(cycle)) return TRANSLATED;
    const { writeKey: key, writeAddress: address, writeAddressTop: top } = pair;
    const { pd } = this.#request;
    return this.#translation.translate(key, pd, address, top, left, RIGHT_REMOTE_WRITE, pair);
  }

  /**
   * Refuses the WRITE. After a page fault, bytes that the packet has already placed are written again when it is
   * retransmitted.
   */
  #refuseWrite(found: number, cycle: Cycles): void {
    const { pair, placed } = this.#request;
    const { writeKey: key, writeAddress: address, writeAddressTop: addressTop } = pair;
    const { writeRemaining: lengthBytes } = pair;
    const wanted = { key, address, addressTop, lengthBytes, isWrite: true };
    if (found === PAGE_FAULT && this.#request.askForPage(wanted, cycle)) {
      pair.writeAddress = address - placed;
      pair.writeRemaining = lengthBytes + placed;
      return;
    }
    this.#request.refuseForGood(NakCode.REMOTE_ACCESS_ERROR, EventType.WQ_ACCESS_ERROR, cycle);
  }

  /**
   * Places payload in the segments of the receive WQE; payload that does not fit or may not be written fails the
   * message at its end.
   */
  #placeSend(left: number, from: number, cycle: Cycles): StepAnswer {
    const request = this.#request;
    const { qp } = request;
    const moved = this.#scatter.place(qp, left, request.packet.rxBytes, from, cycle);
    if (moved === WAIT) return WAIT;
    if (moved === ABSENT) {
      this.#scatter.retreat(qp, request.placed);
      this.#request.refuseForNow(cycle);
      return REFUSED;
    }
    if (moved === FULL) request.receiveSyndrome = CqeSyndrome.LOCAL_LENGTH_ERR;
    else if (moved === REFUSED) request.receiveSyndrome = CqeSyndrome.LOCAL_PROT_ERR;
    else request.placed += moved;
    return DONE;
  }

  /**
   * A SEND with Invalidate has invalidated its key when its receive work request completes (9.4.1.1.3). False: it has not yet. A key
   * that may not be invalidated fails the receive (class J of 9.9.3).
   */
  #invalidate(cycle: Cycles): boolean {
    const request = this.#request;
    if ((request.traits & HAS_INVALIDATE) === 0 || request.receiveSyndrome !== 0) return true;
    const key = request.packet.word(WORD_IMMEDIATE) >>> 0;
    const invalidated = this.#keys.invalidateFor(request.pair, request.pd, key, cycle);
    if (invalidated === WAIT) {
      this.#account.stall(cycle, STALL_KEYS);
      return false;
    }
    request.receiveSyndrome = invalidated;
    return true;
  }

  /** Completion, sequence and acknowledgement. False: there is no room for the CQE yet. */
  #finish(cycle: Cycles): boolean {
    const request = this.#request;
    const { pair, state, kind, traits } = request;
    const completes = request.receiveSyndrome !== 0 || (traits & COMPLETES_RECEIVE_WQE) !== 0;
    if (completes && this.#completions.isFull) {
      this.#account.stall(cycle, STALL_COMPLETION);
      return false;
    }
    if (request.receiveSyndrome !== 0) {
      this.#failReceive(cycle);
      return true;
    }
    const isEnd = (traits & ENDS_MESSAGE) !== 0;
    pair.messageKind = isEnd ? MESSAGE_NONE : kind;
    state.hasNakSent = 0;
    if (isEnd) state.msn = (state.msn + 1) & PSN_MASK;
    state.expectedPsn = (request.psn + 1) & PSN_MASK;
    // No duplicate of an earlier request can arrive any more.
    if (
      state.answeredPsn !== NO_PSN &&
      ((state.expectedPsn - state.answeredPsn) & PSN_MASK) > PSNS_OUTSTANDING_MAX
    )
      state.answeredPsn = NO_PSN;
    if (completes) this.#complete(cycle);
    if (kind === MESSAGE_NONE) this.#acceptSingle(cycle);
    else if (pair.opcodeBase === 0 && (request.packet.flags & FLAG_ACK_REQUEST) !== 0)
      this.#responses.acknowledge(request.qp, request.psn, cycle);
    return true;
  }

  #complete(cycle: Cycles): void {
    const request = this.#request;
    const { pair } = request;
    const isWrite = request.kind === MESSAGE_WRITE;
    const withImmediate = (request.traits & HAS_IMMEDIATE) !== 0;
    const withKey = (request.traits & HAS_INVALIDATE) !== 0;
    const plainOpcode = withKey ? ReceiveOpcode.SEND_INVAL : ReceiveOpcode.SEND;
    const sendOpcode = withImmediate ? ReceiveOpcode.SEND_IMM : plainOpcode;
    pair.hasReceiveWqe = 0;
    const completion = this.#completions.nextReceive(pair);
    completion.opcode = isWrite ? ReceiveOpcode.RDMA_WRITE_IMM : sendOpcode;
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.byteCount = isWrite ? pair.writeBytes : pair.messageBytes;
    completion.isInlined = pair.isInlined;
    if (withImmediate || withKey) completion.immediate = request.packet.word(WORD_IMMEDIATE);
    completion.isSolicited = (request.packet.flags & FLAG_SOLICITED) !== 0 ? 1 : 0;
    completion.sourceLid = request.packet.lids >>> 16;
    this.#completions.post(completion, cycle);
  }

  /**
   * Completes the receive WQE in error, notifies the sender, and fails the QP (9.9.3, class B and C). The sender is not
   * notified of a key that could not be invalidated (class J).
   */
  #failReceive(cycle: Cycles): void {
    const { qp, pair, state, receiveSyndrome: syndrome } = this.#request;
    const nak =
      syndrome === CqeSyndrome.LOCAL_LENGTH_ERR ? NakCode.INVALID_REQUEST : NakCode.REMOTE_OPERATIONAL_ERROR;
    pair.hasReceiveWqe = 0;
    const completion = this.#completions.nextReceive(pair);
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.syndrome = syndrome;
    this.#completions.post(completion, cycle);
    pair.messageKind = MESSAGE_NONE;
    const isAnswered = pair.opcodeBase === 0 && syndrome !== CqeSyndrome.REMOTE_INVAL_REQ_ERR;
    if (isAnswered) this.#responses.refuse(qp, state.expectedPsn, nakSyndrome(nak), cycle);
    this.#errors.refused(qp, 0, cycle);
  }

  /** A READ or an atomic: one packet, answered by the response engine. */
  #acceptSingle(cycle: Cycles): void {
    const request = this.#request;
    const { pair, state, psn } = request;
    state.answeredPsn = psn;
    // The last response may be so old that its PSN seems later than this one.
    if (psnDistance(psn, state.unansweredPsn) < 0) state.unansweredPsn = psn;
    if (request.opcode !== Opcode.RC_RDMA_READ_REQUEST) return this.#responses.addAtomic(request, cycle);
    const packets = Math.max(1, Math.ceil(request.dmaBytes / pair.mtuBytes));
    state.expectedPsn = (psn + packets) & PSN_MASK;
    this.#responses.addRead(request, cycle);
  }
}

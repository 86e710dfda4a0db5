/**
 * The responder: executes inbound requests of connections. The checks are made in the specification's order
 * (IBTA vol 1, 9.7.4.1.1 and figure 84), each in its place:
 *
 *   QP state ─> PSN ─> opcode sequence, length ─> resources ─> rights ─> payload to memory ─> completion ─> ACK
 *   receiver.ts   └────── request-checks.ts ──────┘            └── request-memory.ts ──┘
 *
 * A packet is worked on until it is finished; when something is not on chip (translation, receive WQE, DMA room) the
 * function returns WAIT and is entered again later, at the same step.
 *
 * An unreliable connection takes SENDs and WRITEs only and is never answered: a message of which a packet is missing or
 * breaks a rule is abandoned in silence, and the next one to begin takes its receive WQE (9.8.2).
 */

import { CqeSyndrome, ReceiveOpcode } from '../../../abi/cqe.ts';
import { EventType } from '../../../abi/eqe.ts';
import type { Cycles } from '../../../base/units.ts';
import type { BlockAccount, BlockState } from '../../../sim/index.ts';
import { NakCode, nakSyndrome, rnrNakSyndrome } from '../../../wire/aeth.ts';
import { Opcode } from '../../../wire/opcodes.ts';
import {
  FLAG_ACK_REQUEST,
  FLAG_SOLICITED,
  PACKET_PAYLOAD_OFFSET,
  WORD_IMMEDIATE,
} from '../../../wire/packet.ts';
import { PSN_MASK, psnDistance } from '../../../wire/psn.ts';
import {
  DONE,
  DUPLICATE,
  EXECUTE,
  NONE_POSTED,
  REFUSED,
  type StepAnswer,
  UNREADABLE,
  WAIT,
} from '../answers.ts';
import type { CompletionWriter } from '../completion/index.ts';
import type { HcaCore } from '../core.ts';
import type { QpSlot, QueuePair } from '../objects/index.ts';
import {
  COMPLETES_RECEIVE_WQE,
  ENDS_MESSAGE,
  HAS_IMMEDIATE,
  MESSAGE_NONE,
  MESSAGE_WRITE,
  STALL_COMPLETION,
  TAKES_RECEIVE_WQE,
} from '../packets/index.ts';
import type { ReceiveScatter } from '../receive-queue/index.ts';
import { InboundRequest } from './inbound-request.ts';
import { RequestChecks } from './request-checks.ts';
import { RequestMemory } from './request-memory.ts';
import { type RefusedQps, RequestRefusals } from './request-refusals.ts';
import type { ResponseEngine } from './response-engine.ts';

const STEP_CHECK = 0;
const STEP_RECEIVE_WQE = 1;
const STEP_RIGHTS = 2;
const STEP_PAYLOAD = 3;
const STEP_FINISH = 4;

export interface ResponderPorts {
  readonly scatter: ReceiveScatter;
  readonly responses: ResponseEngine;
  readonly completions: CompletionWriter;
  readonly errors: RefusedQps & {
    /** First packet on a QP in RTR. */
    communicationEstablished(qp: QpSlot, cycle: Cycles): void;
  };
}

export class Responder {
  readonly #core: HcaCore;
  readonly #account: BlockAccount;
  #scatter!: ReceiveScatter;
  #responses!: ResponseEngine;
  #completions!: CompletionWriter;
  #errors!: ResponderPorts['errors'];
  readonly #request: InboundRequest;
  readonly #refusals: RequestRefusals;
  readonly #checks: RequestChecks;
  readonly #memory: RequestMemory;
  #step = STEP_CHECK;

  /** @param account that of the receiver, whose stage works on requests */
  constructor(core: HcaCore, account: BlockAccount) {
    this.#core = core;
    this.#account = account;
    const request = new InboundRequest(core.received);
    this.#request = request;
    this.#refusals = new RequestRefusals(core, request);
    this.#checks = new RequestChecks(core, request, this.#refusals);
    this.#memory = new RequestMemory(core, request, this.#refusals, account);
  }

  connect({ scatter, responses, completions, errors }: ResponderPorts): void {
    this.#scatter = scatter;
    this.#responses = responses;
    this.#completions = completions;
    this.#errors = errors;
    this.#refusals.connect({ responses, errors });
    this.#checks.connect({ responses });
    this.#memory.connect({ scatter });
  }

  /** Works on the request that the receiver has turned to, for a QP. Returns the payload bytes handled, or WAIT. */
  process(pair: QueuePair, cycle: Cycles): number {
    const request = this.#request;
    let step = this.#step;
    if (step === STEP_CHECK) {
      request.begin(pair);
      if (!this.#begin(cycle)) return 0;
      step = (request.traits & TAKES_RECEIVE_WQE) !== 0 ? STEP_RECEIVE_WQE : STEP_RIGHTS;
    }
    if (step === STEP_RECEIVE_WQE) {
      const taken = this.#takeReceiveWqe(cycle);
      if (taken !== DONE) return this.#stop(taken, STEP_RECEIVE_WQE);
      step = STEP_RIGHTS;
    }
    if (step === STEP_RIGHTS) {
      const allowed = this.#memory.checkRights(cycle);
      if (allowed !== DONE) return this.#stop(allowed, STEP_RIGHTS);
      step = STEP_PAYLOAD;
    }
    if (step === STEP_PAYLOAD) {
      const placed = this.#memory.place(cycle);
      if (placed !== DONE) return this.#stop(placed, STEP_PAYLOAD);
    }
    if (!this.#finish(cycle)) return this.#stop(WAIT, STEP_FINISH);
    this.#step = STEP_CHECK;
    return request.placed;
  }

  reset(): void {
    this.#step = STEP_CHECK;
  }

  inspect(): BlockState {
    return { step: this.#step };
  }

  /** The packet is done with, refused, or waits at `step` and goes on there. */
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

  /** A duplicate (9.7.5.1.4): answered again, never executed again but for READ. */
  #repeat(cycle: Cycles): void {
    const { qp, pair, opcode, psn } = this.#request;
    this.#core.transport.count('duplicateRequest');
    if (opcode === Opcode.RC_RDMA_READ_REQUEST) {
      const { remoteAddress, remoteKey, dmaBytes } = this.#request;
      this.#responses.repeatRead(qp, psn, remoteAddress, remoteKey, dmaBytes, cycle);
    } else if (opcode === Opcode.RC_COMPARE_SWAP || opcode === Opcode.RC_FETCH_ADD) {
      this.#responses.replayAtomic(qp, psn, cycle);
    } else {
      // An ACK that names a later READ or atomic would say that their answers are lost, which are on their way.
      const isBeforeAnswered = pair.answeredPsn >= 0 && psnDistance(pair.answeredPsn, psn) > 0;
      const acknowledged = isBeforeAnswered ? psn : (pair.expectedPsn - 1) & PSN_MASK;
      this.#responses.acknowledgeAgain(qp, acknowledged, cycle);
    }
  }

  /** The receive WQE of a SEND's first packet, or of a WRITE with immediate's last one. */
  #takeReceiveWqe(cycle: Cycles): StepAnswer {
    const { qp, pair, packet } = this.#request;
    if (pair.hasReceiveWqe === 1) {
      // Left by a message of an unreliable connection that was abandoned.
      this.#scatter.rewind(qp);
      return DONE;
    }
    const taken = this.#scatter.take(qp, packet.arrivedCycle, cycle);
    if (taken === NONE_POSTED) {
      if (pair.opcodeBase !== 0) this.#core.transport.count('unreliableNoReceive');
      this.#refusals.refuse(rnrNakSyndrome(pair.minRnrNakCode), cycle);
      return REFUSED;
    }
    if (taken === UNREADABLE) {
      this.#refusals.refuseForGood(NakCode.REMOTE_OPERATIONAL_ERROR, EventType.WQ_CATAS_ERROR, cycle);
      return REFUSED;
    }
    return taken;
  }

  /** Completion, sequence and acknowledgement. False: there is no room for the CQE yet. */
  #finish(cycle: Cycles): boolean {
    const request = this.#request;
    const { pair, kind, traits } = request;
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
    pair.hasNakSent = 0;
    if (isEnd) pair.msn = (pair.msn + 1) & PSN_MASK;
    pair.expectedPsn = (request.psn + 1) & PSN_MASK;
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
    const sendOpcode = withImmediate ? ReceiveOpcode.SEND_IMM : ReceiveOpcode.SEND;
    pair.hasReceiveWqe = 0;
    const completion = this.#completions.next(pair.receiveCqn, request.qp);
    completion.opcode = isWrite ? ReceiveOpcode.RDMA_WRITE_IMM : sendOpcode;
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.byteCount = isWrite ? pair.writeBytes : pair.messageBytes;
    if (withImmediate) completion.immediate = request.packet.word(WORD_IMMEDIATE);
    completion.isSolicited = (request.packet.flags & FLAG_SOLICITED) !== 0 ? 1 : 0;
    completion.sourceLid = request.packet.lids >>> 16;
    this.#completions.post(completion, cycle);
  }

  /** The receive WQE completes in error, the sender learns of it, and the QP fails (9.9.3, class B and C). */
  #failReceive(cycle: Cycles): void {
    const { qp, pair, receiveSyndrome: syndrome } = this.#request;
    const nak =
      syndrome === CqeSyndrome.LOCAL_LENGTH_ERR ? NakCode.INVALID_REQUEST : NakCode.REMOTE_OPERATIONAL_ERROR;
    pair.hasReceiveWqe = 0;
    const completion = this.#completions.next(pair.receiveCqn, qp);
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.syndrome = syndrome;
    this.#completions.post(completion, cycle);
    pair.messageKind = MESSAGE_NONE;
    if (pair.opcodeBase === 0) this.#responses.refuse(qp, pair.expectedPsn, nakSyndrome(nak), cycle);
    this.#errors.refused(qp, 0, cycle);
  }

  /** A READ or an atomic: one packet, answered by the response engine. */
  #acceptSingle(cycle: Cycles): void {
    const request = this.#request;
    const { pair, psn } = request;
    pair.answeredPsn = psn;
    if (request.opcode !== Opcode.RC_RDMA_READ_REQUEST) return this.#acceptAtomic(cycle);
    const packets = Math.max(1, Math.ceil(request.dmaBytes / pair.mtuBytes));
    pair.expectedPsn = (psn + packets) & PSN_MASK;
    const { qp, remoteAddress, remoteKey, dmaBytes } = request;
    this.#responses.addRead(qp, psn, remoteAddress, remoteKey, dmaBytes, cycle);
  }

  #acceptAtomic(cycle: Cycles): void {
    const { qp, psn, opcode, remoteAddress, remoteKey, packet } = this.#request;
    const operands = (packet.offset + PACKET_PAYLOAD_OFFSET) >> 2;
    this.#responses.addAtomic(qp, psn, opcode, remoteAddress, remoteKey, packet.rxWords, operands, cycle);
  }
}

/**
 * The acknowledgement side of the requester with selective repeat: what {@link Acknowledgements} is with go-back-N.
 *
 * Records complete in their order here, too. Packets are told apart one by one (SendWindow):
 *
 *     ACK            accepts all up to its PSN
 *     sequence NAK   accepts all before its PSN, and names a later request that the peer holds instead of the MSN
 *     RNR NAK        accepts all before its PSN, whose request is sent again after the delay, alone
 *     response       is placed at its place in the READ, whatever was placed before
 *
 * A READ is complete when all its responses are placed, and all before it are complete. NAKs for a gap cost no retry, since
 * each packet is sent again once for them; timeouts do. Source: IRN, 3.1.
 */
import { CqeSyndrome, QpState, WqeOpcode } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import type { BlockAccount, BlockState, LogicalProcess } from '../../../../sim/index.ts';
import {
  AethKind,
  endsMessage,
  NakCode,
  Opcode,
  PSN_MASK,
  psnAdd,
  psnDistance,
  startsMessage,
  syndromeKind,
  syndromeValue,
  WORD_AETH,
} from '../../../../wire/index.ts';
import { ABSENT, DONE, type MemoryAnswer, WAIT } from '../../answers.ts';
import { ATOMIC_BYTES } from '../../atomics/index.ts';
import {
  ENDED_BY_ANSWER,
  ENDED_BY_RNR_DELAY,
  ENDED_BY_TIMEOUT,
  endAttempts,
  NO_ATTEMPT,
  noRecord,
  type QpSlot,
  type QpTable,
  type QueuePair,
  type SendRecord,
} from '../../objects/index.ts';
import type { PayloadWriter } from '../../receive-queue/index.ts';
import type { RequestCompletion } from '../../requester/index.ts';
import { PARKED_PAGE_FAULT, PARKED_RETRY_DELAY, type SendScheduler } from '../../send-queue/index.ts';
import type { ReactionPoint } from '../congestion/index.ts';
import type { ReceivedPackets, TransportCounters } from '../packets/index.ts';
import type { IbtaStates } from '../state/index.ts';
import {
  type AcknowledgementPorts,
  type AcknowledgementsSetup,
  type AnswerSide,
  RNR_RETRY_FOREVER,
  syndromeOfNak,
} from './acknowledgements.ts';
import { AnswerEffects } from './answer-effects.ts';
import { ResponsePlacement } from './response-placement.ts';
import type { RetryTimers } from './retry-timers.ts';
import { NOTHING_LOST, type SelectiveRepeat } from './selective-repeat.ts';
import { HELD, PLACED, type SendWindow } from './send-window.ts';

const { ERR } = QpState;
const { RC_ACKNOWLEDGE, RC_ATOMIC_ACKNOWLEDGE } = Opcode;
const { BAD_RESP_ERR, LOCAL_PROT_ERR, RNR_RETRY_EXC_ERR, TRANSPORT_RETRY_EXC_ERR } = CqeSyndrome;

/** Steps of a response. */
const STEP_BEGIN = 0;
const STEP_PLACE = 1;
const STEP_SETTLE = 2;

/** Parts of the device that {@link SelectiveAcknowledgements} uses. */
export interface SelectiveAcknowledgementsSetup extends AcknowledgementsSetup {
  readonly selectiveRepeat: SelectiveRepeat;
}

export class SelectiveAcknowledgements implements AnswerSide {
  readonly #lp: LogicalProcess;
  readonly #qps: QpTable;
  readonly #states: IbtaStates;
  readonly #repeat: SelectiveRepeat;
  readonly #transport: TransportCounters;
  readonly #effects: AnswerEffects;
  readonly #packet: ReceivedPackets;
  readonly #placement: ResponsePlacement;
  readonly #reactionPoint: ReactionPoint;
  #writer!: PayloadWriter;
  #completion!: RequestCompletion;
  #scheduler!: SendScheduler;
  #timers!: RetryTimers;
  #ends!: AcknowledgementPorts['ends'];
  /** The response being worked on: its step, its request, and its number among the responses of that. */
  #step = STEP_BEGIN;
  #request: SendRecord = noRecord;
  #index = 0;

  /** @param account that of the receiver, whose stage works on answers */
  constructor(setup: SelectiveAcknowledgementsSetup, account: BlockAccount) {
    this.#lp = setup.lp;
    this.#qps = setup.qps;
    this.#states = setup.states;
    this.#repeat = setup.selectiveRepeat;
    this.#transport = setup.transport;
    this.#effects = new AnswerEffects(setup, account);
    this.#packet = setup.received;
    this.#placement = new ResponsePlacement(setup, account);
    this.#reactionPoint = setup.reactionPoint;
  }

  connect({ completion, scheduler, timers, writer, ends }: AcknowledgementPorts): void {
    this.#completion = completion;
    this.#scheduler = scheduler;
    this.#timers = timers;
    this.#writer = writer;
    this.#ends = ends;
    this.#effects.connect({ completion, scheduler, timers });
    this.#placement.connect({ writer });
  }

  reset(): void {
    this.#step = STEP_BEGIN;
    this.#request = noRecord;
  }

  inspect(): BlockState {
    return { step: this.#step };
  }

  process(pair: QueuePair, cycle: Cycles): number {
    const { opcode, psn } = this.#packet;
    if (this.#step !== STEP_BEGIN) return this.#continue(pair, cycle);
    const { nextPsn, lastAckedPsn } = this.#states.rows[pair.slot]!;
    const newest = psnDistance(psn, psnAdd(nextPsn, -1));
    const oldest = psnDistance(psn, lastAckedPsn);
    if (pair.recordHead === noRecord || newest > 0 || oldest <= 0)
      return this.#effects.refuse(opcode === RC_ACKNOWLEDGE, oldest <= 0 && newest <= 0);
    if (opcode !== RC_ACKNOWLEDGE) return this.#beginResponse(pair, opcode, psn, cycle);
    const aeth = this.#packet.word(WORD_AETH);
    const syndrome = aeth >>> 24;
    const isAck = syndromeKind(syndrome) === AethKind.ACK;
    const window = this.#repeat.windowOf(pair);
    window.accepted(isAck ? psn : psnAdd(psn, -1));
    this.#answered(pair, window, isAck ? psnAdd(psn, 1) : psn);
    if (!this.#settle(pair, cycle)) return WAIT;
    if (isAck) {
      this.#effects.takeCredits(pair, cycle);
      this.#resume(pair, cycle);
      return 0;
    }
    const taken =
      pair.recordHead === noRecord || pair.state === ERR ? 0 : this.#takeNak(pair, psn, aeth, cycle);
    if (taken === WAIT) return WAIT;
    this.#effects.countNak();
    this.#resume(pair, cycle);
    return 0;
  }

  /** Handles a timeout without progress while packets are outstanding. Each time of the QP's own costs a retry. */
  ackTimedOut(qp: QpSlot, cycle: Cycles): void {
    const pair = this.#qps.rows[qp]!;
    if (pair.state === ERR || pair.recordHead === noRecord) return;
    if (this.#effects.isPostponed(pair)) return;
    const { nowPs } = this.#lp;
    const window = this.#repeat.windowOf(pair);
    if (nowPs - window.chargedPs >= this.#timers.ackTimeoutPsOf(pair)) {
      if (pair.retriesLeft === 0) return this.#fail(pair, pair.recordHead, TRANSPORT_RETRY_EXC_ERR, cycle);
      pair.retriesLeft--;
      window.chargedPs = nowPs;
    }
    pair.lastProgressPs = nowPs;
    this.#repeat.timedOut(pair);
    this.#endAttempt(pair, cycle, ENDED_BY_TIMEOUT);
    this.#resume(pair, cycle);
  }

  /** An answer ends the back-off of the timeout. */
  #answered(pair: QueuePair, window: SendWindow, psn: number): void {
    window.answered(psn);
    if (window.timeoutCount === 0) return;
    window.timeoutCount = 0;
    this.#timers.restart(pair);
  }

  /** The RNR delay of a QP is over. */
  rnrWaitOver(pair: QueuePair, cycle: Cycles): void {
    endAttempts(pair.recordHead, cycle, ENDED_BY_RNR_DELAY);
    if (pair.parkedFor === PARKED_RETRY_DELAY) this.#scheduler.unpark(pair, cycle + 1);
    // A timer that expired during the delay is gone, and nothing may be left to be sent, which would set another.
    if (pair.recordHead !== noRecord) this.#timers.sent(pair, this.#lp.nowPs);
  }

  // ---- acknowledgements ----

  /**
   * Completes the records that are accepted and answered, and moves the PSN up to which all is. False: waits for room for a
   * CQE, and may be called again.
   */
  #settle(pair: QueuePair, cycle: Cycles): boolean {
    for (let head = pair.recordHead; head !== noRecord; head = pair.recordHead) {
      if (head.packetCount === 0 || head.syndrome !== 0) {
        if (!this.#completion.completeLocally(pair, cycle)) return this.#effects.waitForCompletion(cycle);
        if (pair.recordHead === head || pair.state === ERR) return true;
        continue;
      }
      const lastPsn = this.#states.lastPsnOf(head);
      const donePsn =
        head.isReadOrAtomic === 1 ? this.#answeredPsn(pair, head) : this.#acceptedPsn(pair, head);
      if (donePsn === lastPsn && !this.#complete(pair, head, cycle)) return false;
      this.#advance(pair, donePsn, cycle);
      if (donePsn !== lastPsn) return true;
    }
    return true;
  }

  #complete(pair: QueuePair, head: SendRecord, cycle: Cycles): boolean {
    const { earlier, transmittedCycle } = head;
    if (!this.#completion.completeHead(pair, cycle)) return this.#effects.waitForCompletion(cycle);
    if (head.isReadOrAtomic === 1) pair.fenceWriteCount = this.#writer.requestedCount;
    else if (this.#reactionPoint.isOn && earlier.endCycle === NO_ATTEMPT)
      this.#reactionPoint.acknowledged(pair, transmittedCycle, cycle);
    return true;
  }

  /** PSN up to which the peer has accepted a WRITE or SEND. */
  #acceptedPsn(pair: QueuePair, head: SendRecord): number {
    const { cumulativePsn } = this.#repeat.windowOf(pair);
    const lastPsn = this.#states.lastPsnOf(head);
    return psnDistance(cumulativePsn, lastPsn) > 0 ? lastPsn : cumulativePsn;
  }

  /** PSN up to which the responses of a READ or atomic are placed. */
  #answeredPsn(pair: QueuePair, head: SendRecord): number {
    const window = this.#repeat.windowOf(pair);
    const firstPsn = this.#states.firstPsnOf(head);
    const { lastAckedPsn } = this.#states.rows[pair.slot]!;
    let count = Math.max(0, psnDistance(lastAckedPsn, firstPsn) + 1);
    while (count < head.packetCount && window.has(psnAdd(firstPsn, count), PLACED)) count++;
    head.responsesReceived = count;
    return psnAdd(firstPsn, count - 1);
  }

  #advance(pair: QueuePair, psn: number, cycle: Cycles): void {
    if (psnDistance(psn, this.#states.rows[pair.slot]!.lastAckedPsn) <= 0) return;
    this.#repeat.acknowledged(pair, psn);
    this.#effects.progress(pair, cycle);
  }

  /** Sends again what the answer has shown to be lost. */
  #resume(pair: QueuePair, cycle: Cycles): void {
    if (pair.state === ERR || this.#repeat.nextLost(pair) === NOTHING_LOST) return;
    const { parkedFor } = pair;
    if (parkedFor === PARKED_RETRY_DELAY || parkedFor === PARKED_PAGE_FAULT) return;
    this.#scheduler.unpark(pair, cycle + 1);
    this.#scheduler.makeReady(pair, cycle + 1);
  }

  /** The attempt of the oldest request ends. */
  #endAttempt(pair: QueuePair, cycle: Cycles, endedBy: number): void {
    if (pair.recordHead !== noRecord) pair.recordHead.earlier.add(pair.recordHead, cycle, endedBy);
  }

  // ---- refusals ----

  #takeNak(pair: QueuePair, psn: number, aeth: number, cycle: Cycles): 0 | typeof WAIT {
    const syndrome = aeth >>> 24;
    const code = syndromeValue(syndrome);
    const isRnr = syndromeKind(syndrome) === AethKind.RNR_NAK;
    if (!isRnr && code === NakCode.PSN_SEQUENCE_ERROR) {
      this.#takeGap(pair, psn, aeth & PSN_MASK, cycle);
      return 0;
    }
    const { recordHead } = pair;
    // Responses before the refused request are lost: it is sent again with their requests, and refused again.
    const isBehind = psnDistance(psn, this.#states.lastPsnOf(recordHead)) > 0;
    if (isRnr && (isBehind || pair.rnrRetryCountMax === RNR_RETRY_FOREVER || pair.rnrRetriesLeft > 0)) {
      const window = this.#repeat.windowOf(pair);
      window.clear(psn, 1);
      window.requests.lose(psn);
      if (!isBehind) this.#waitRnr(pair, code, cycle);
      return 0;
    }
    if (isBehind) return 0;
    return this.#effects.failOrWait(pair, isRnr ? RNR_RETRY_EXC_ERR : syndromeOfNak(code), cycle);
  }

  /**
   * The peer lacks `psn`, and holds the request `heldPsn`, which is later. A peer without selective repeat has its MSN
   * in that field: then no packet is taken as held.
   */
  #takeGap(pair: QueuePair, psn: number, heldPsn: number, cycle: Cycles): void {
    const window = this.#repeat.windowOf(pair);
    const { lastAckedPsn } = this.#states.rows[pair.slot]!;
    this.#endAttempt(pair, cycle, ENDED_BY_ANSWER);
    const isInFlight =
      psnDistance(heldPsn, psn) > 0 &&
      psnDistance(heldPsn, window.madePsn) < 0 &&
      psnDistance(heldPsn, lastAckedPsn) <= window.size;
    if (!isInFlight) return window.requests.sentBefore(psnAdd(psn, 1));
    window.set(heldPsn, HELD);
    window.requests.sentBefore(heldPsn);
  }

  #waitRnr(pair: QueuePair, timerCode: number, cycle: Cycles): void {
    if (pair.rnrRetryCountMax !== RNR_RETRY_FOREVER) pair.rnrRetriesLeft--;
    this.#endAttempt(pair, cycle, ENDED_BY_ANSWER);
    this.#scheduler.park(pair, PARKED_RETRY_DELAY);
    this.#timers.waitRnr(pair, timerCode, cycle);
  }

  /** A request has failed: it completes in error once all before it are complete. */
  #fail(pair: QueuePair, request: SendRecord, syndrome: number, cycle: Cycles): void {
    request.syndrome = syndrome;
    if (pair.recordHead === request) this.#ends.completeLocally(pair, cycle);
  }

  // ---- responses ----

  /** A READ response or an atomic's result: the peer has accepted its request and all before. */
  #beginResponse(pair: QueuePair, opcode: number, psn: number, cycle: Cycles): number {
    const window = this.#repeat.windowOf(pair);
    const request = this.#requestOf(pair, psn);
    const isAwaited = request.isReadOrAtomic === 1 && request.syndrome === 0;
    window.accepted(isAwaited ? this.#states.lastPsnOf(request) : psnAdd(psn, -1));
    this.#answered(pair, window, psn);
    const { lastAckedPsn } = this.#states.rows[pair.slot]!;
    const isBeyond = psnDistance(psn, lastAckedPsn) > window.size;
    if (!isAwaited || isBeyond || window.has(psn, PLACED)) {
      this.#transport.count('unexpectedResponse');
      if (isBeyond) window.responses.sentBefore(psnAdd(psn, 1));
      return this.#settled(pair, 0, cycle);
    }
    this.#request = request;
    this.#index = psnDistance(psn, this.#states.firstPsnOf(request));
    if (!this.#isAsExpected(pair, request, opcode)) {
      this.#fail(pair, request, BAD_RESP_ERR, cycle);
      return 0;
    }
    this.#step = STEP_PLACE;
    this.#placement.begin();
    return this.#continue(pair, cycle);
  }

  /** The request to whose packets or responses the PSN belongs; {@link noRecord} if none has it. */
  #requestOf(pair: QueuePair, psn: number): SendRecord {
    let request = pair.recordHead;
    while (
      request !== noRecord &&
      (request.packetCount === 0 || psnDistance(psn, this.#states.lastPsnOf(request)) > 0)
    )
      request = request.next;
    return request;
  }

  /** Places the response, and completes what it completes. Returns its payload bytes, or WAIT. */
  #continue(pair: QueuePair, cycle: Cycles): number {
    const { opcode, psn } = this.#packet;
    const isAtomic = opcode === RC_ATOMIC_ACKNOWLEDGE;
    const bytes = isAtomic ? ATOMIC_BYTES : this.#packet.payloadBytes;
    if (this.#step === STEP_PLACE) {
      const from = this.#index * pair.mtuBytes;
      const placed = this.#placement.place(this.#packet.offset, pair, this.#request, from, bytes, cycle);
      if (placed === WAIT) return WAIT;
      if (placed !== DONE) return this.#notPlaced(placed, pair, psn, cycle);
      this.#repeat.windowOf(pair).set(psn, PLACED);
      if (isAtomic || endsMessage(opcode)) this.#effects.takeCredits(pair, cycle);
      this.#step = STEP_SETTLE;
    }
    return this.#settled(pair, bytes, cycle);
  }

  /** Ends the work on a response, once there is room for the CQEs of what it completes. */
  #settled(pair: QueuePair, bytes: number, cycle: Cycles): number {
    this.#step = STEP_SETTLE;
    if (!this.#settle(pair, cycle)) return WAIT;
    this.#step = STEP_BEGIN;
    this.#resume(pair, cycle);
    return bytes;
  }

  /** The request is not answered: it fails, or requests the response again once the page for it is present. */
  #notPlaced(placed: Exclude<MemoryAnswer, typeof DONE>, pair: QueuePair, psn: number, cycle: Cycles): 0 {
    this.#step = STEP_BEGIN;
    if (placed !== ABSENT) {
      this.#fail(pair, this.#request, LOCAL_PROT_ERR, cycle);
      return 0;
    }
    this.#repeat.windowOf(pair).responses.lose(psn);
    if (pair.isWaitingRnr === 0) this.#scheduler.park(pair, PARKED_PAGE_FAULT);
    return 0;
  }

  /**
   * True if a response matches the request's kind; otherwise it is a bad response (9.9.2.4.1). All of a READ but the last
   * fill this end's MTU. A part that was requested again has a FIRST and a LAST of its own, or is an ONLY.
   */
  #isAsExpected(pair: QueuePair, request: SendRecord, opcode: number): boolean {
    const isAtomic = opcode === RC_ATOMIC_ACKNOWLEDGE;
    if (isAtomic || request.opcode !== WqeOpcode.RDMA_READ)
      return isAtomic && request.opcode !== WqeOpcode.RDMA_READ;
    const restBytes = request.messageBytes - this.#index * pair.mtuBytes;
    if (this.#index === 0 && !startsMessage(opcode)) return false;
    if (this.#index === request.packetCount - 1 && !endsMessage(opcode)) return false;
    return this.#packet.payloadBytes === Math.min(restBytes, pair.mtuBytes);
  }
}

/**
 * The acknowledgement side of the requester with go-back-N: it receives ACKs, NAKs, READ responses and atomic results, completes the
 * send work requests to which they belong, and rewinds the requester when packets must be retransmitted.
 *
 * Records of a QP complete strictly in their order (request-completion.ts): an acknowledgement for a later PSN
 * completes all before it, but never passes a READ or atomic whose own response is still missing (IBTA vol 1, 9.7.5.1,
 * 9.7.6, 10.8.3).
 *
 * A response for a later PSN than the oldest READ or atomic waits for is an implied NAK (9.9.2.1.1, 9.9.2.3): the
 * missing response is requested again, once, at the cost of one retry. Further responses of the old series are dropped;
 * if the response to the repeated request is lost as well, the ACK timeout requests it again.
 *
 * The same holds when a later request is refused, even by an RNR NAK: the missing response is requested at once, the
 * refused request is retransmitted after it, and is refused again if the cause persists. Neither the delay of the RNR
 * NAK nor an RNR retry is spent on it; Linux' requesters do the same (drivers/infiniband/hw/hfi1/rc.c, do_rc_ack;
 * drivers/infiniband/sw/rxe/rxe_comp.c, check_psn). On-demand paging relies on this: a response to a READ or atomic
 * that finds no page at the requester is dropped and requested again as soon as the page is present. A later request
 * that meanwhile got an RNR NAK, for a page at the responder, is retransmitted with it.
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
  syndromeKind,
  syndromeValue,
  WORD_AETH,
} from '../../../../wire/index.ts';
import { ABSENT, DONE, type MemoryAnswer, WAIT } from '../../answers.ts';
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
import { STALL_COMPLETION } from '../../packets/index.ts';
import type { PayloadWriter } from '../../receive-queue/index.ts';
import type { RequestCompletion } from '../../requester/index.ts';
import { PARKED_PAGE_FAULT, PARKED_RETRY_DELAY, type SendScheduler } from '../../send-queue/index.ts';
import type { ReactionPoint } from '../congestion/index.ts';
import type { ReceivedPackets, TransportCounters } from '../packets/index.ts';
import type { IbtaStates } from '../state/index.ts';
import { AnswerEffects, type AnswerEffectsSetup } from './answer-effects.ts';
import { ResponsePlacement, type ResponsePlacementSetup } from './response-placement.ts';
import type { RetryTimers } from './retry-timers.ts';

const { ACK } = AethKind;
const { ERR } = QpState;
const { RC_ACKNOWLEDGE } = Opcode;
const { TRANSPORT_RETRY_EXC_ERR } = CqeSyndrome;

export const RNR_RETRY_FOREVER = 7;
const NO_PSN = -1;

export interface AcknowledgementPorts {
  readonly completion: RequestCompletion;
  readonly scheduler: SendScheduler;
  readonly timers: RetryTimers;
  readonly writer: PayloadWriter;
  readonly ends: {
    /** The head record completes without an answer, but there is no room for its CQE yet. */
    waits(pair: QueuePair): void;
    /** Completes the head record, which has an error found on this side; waits if there is no room for its CQE. */
    completeLocally(pair: QueuePair, cycle: Cycles): void;
  };
}

/** The acknowledgement side, whatever is sent again after a loss. */
export interface AnswerSide {
  connect(ports: AcknowledgementPorts): void;
  /** Works on the response that the receiver has turned to, for a QP. Returns the payload bytes handled, or WAIT. */
  process(pair: QueuePair, cycle: Cycles): number;
  /** Handles a whole timeout without progress while packets are outstanding. */
  ackTimedOut(qp: QpSlot, cycle: Cycles): void;
  /** The RNR delay of a QP is over. */
  rnrWaitOver(pair: QueuePair, cycle: Cycles): void;
  reset(): void;
  inspect(): BlockState;
}

/** Parts of the device that {@link Acknowledgements} uses. */
export interface AcknowledgementsSetup extends ResponsePlacementSetup, AnswerEffectsSetup {
  readonly qps: QpTable;
  readonly reactionPoint: ReactionPoint;
}

export class Acknowledgements implements AnswerSide {
  readonly #lp: LogicalProcess;
  readonly #qps: QpTable;
  readonly #states: IbtaStates;
  readonly #transport: TransportCounters;
  readonly #effects: AnswerEffects;
  readonly #packet: ReceivedPackets;
  readonly #placement: ResponsePlacement;
  readonly #reactionPoint: ReactionPoint;
  readonly #account: BlockAccount;
  #writer!: PayloadWriter;
  #completion!: RequestCompletion;
  #scheduler!: SendScheduler;
  #timers!: RetryTimers;
  #ends!: AcknowledgementPorts['ends'];
  /** The payload of the packet being worked on is being placed. */
  #isPlacing = false;

  /** @param account that of the receiver, whose stage works on answers */
  constructor(setup: AcknowledgementsSetup, account: BlockAccount) {
    this.#lp = setup.lp;
    this.#qps = setup.qps;
    this.#states = setup.states;
    this.#transport = setup.transport;
    this.#effects = new AnswerEffects(setup, account);
    this.#packet = setup.received;
    this.#placement = new ResponsePlacement(setup, account);
    this.#reactionPoint = setup.reactionPoint;
    this.#account = account;
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

  process(pair: QueuePair, cycle: Cycles): number {
    const { opcode, psn } = this.#packet;
    const { nextPsn, lastAckedPsn } = this.#states.rows[pair.slot]!;
    const newest = psnDistance(psn, (nextPsn - 1) & PSN_MASK);
    const oldest = psnDistance(psn, lastAckedPsn);
    if (pair.recordHead === noRecord || newest > 0 || oldest <= 0)
      return this.#effects.refuse(opcode === RC_ACKNOWLEDGE, oldest <= 0 && newest <= 0);
    if (opcode !== RC_ACKNOWLEDGE) return this.#processData(pair, opcode, psn, cycle);
    const aeth = this.#packet.word(WORD_AETH);
    const syndrome = aeth >>> 24;
    if (syndromeKind(syndrome) === ACK) {
      if (!this.#completeThrough(pair, psn, cycle)) return WAIT;
      this.#effects.takeCredits(pair, cycle);
      return 0;
    }
    // A NAK acknowledges everything before the PSN it names.
    if (!this.#completeThrough(pair, (psn - 1) & PSN_MASK, cycle)) return WAIT;
    // A NAK or RNR NAK after a missing response: the request that it refuses is retransmitted with the request of that
    // response (see above).
    const head = pair.recordHead;
    const isBehind = head.isReadOrAtomic === 1 && head.packetCount > 0 && this.#isAfter(psn, head);
    const isOver = head === noRecord || pair.state === ERR || isBehind;
    const taken = isOver ? 0 : this.#takeNak(pair, psn, syndrome, cycle);
    if (taken !== WAIT) this.#effects.countNak();
    return taken;
  }

  #isAfter(psn: number, request: SendRecord): boolean {
    return psnDistance(psn, this.#states.lastPsnOf(request)) > 0;
  }

  /** PSN of the response that a READ or atomic waits for. */
  #missingPsnOf(request: SendRecord): number {
    return (this.#states.firstPsnOf(request) + request.responsesReceived) & PSN_MASK;
  }

  ackTimedOut(qp: QpSlot, cycle: Cycles): void {
    const pair = this.#qps.rows[qp]!;
    if (pair.state === ERR || pair.recordHead === noRecord) return;
    if (this.#effects.isPostponed(pair)) return;
    const { nowPs } = this.#lp;
    if (pair.retriesLeft === 0) {
      pair.recordHead.syndrome = TRANSPORT_RETRY_EXC_ERR;
      this.#ends.completeLocally(pair, cycle);
      return;
    }
    pair.retriesLeft--;
    pair.lastProgressPs = nowPs;
    this.#goBack(pair, psnAdd(this.#states.rows[qp]!.lastAckedPsn, 1), cycle, ENDED_BY_TIMEOUT);
  }

  rnrWaitOver(pair: QueuePair, cycle: Cycles): void {
    endAttempts(pair.recordCursor, cycle, ENDED_BY_RNR_DELAY);
    if (pair.parkedFor === PARKED_RETRY_DELAY) this.#scheduler.unpark(pair, cycle + 1);
  }

  /**
   * Retransmits from `psn` on: invalidates everything queued and not yet on the wire (9.7.6.1). `endedBy` gives the
   * reason (ENDED_BY_).
   */
  #goBack(pair: QueuePair, psn: number, cycle: Cycles, endedBy = ENDED_BY_ANSWER): void {
    let request = pair.recordHead;
    while (request !== noRecord && (request.packetCount === 0 || this.#isAfter(psn, request)))
      request = request.next;
    if (request === noRecord) return;
    endAttempts(request, cycle, endedBy);
    pair.sendGeneration++;
    pair.recordCursor = request;
    pair.packetCursor =
      request.opcode === WqeOpcode.RDMA_READ
        ? request.responsesReceived
        : Math.max(0, psnDistance(psn, this.#states.firstPsnOf(request)));
    // The next WQE may wait for the very response that is requested again, so it is checked again afterwards.
    const reason = pair.parkedFor;
    if (reason !== PARKED_RETRY_DELAY && reason !== PARKED_PAGE_FAULT)
      this.#scheduler.unpark(pair, cycle + 1);
    this.#scheduler.makeReady(pair, cycle + 1);
  }

  reset(): void {
    this.#isPlacing = false;
  }

  inspect(): BlockState {
    return { isPlacing: this.#isPlacing };
  }

  /** Completes all records whose last PSN lies at or before `psn`. False: waits for room for a CQE. */
  #completeThrough(pair: QueuePair, psn: number, cycle: Cycles): boolean {
    const completion = this.#completion;
    let head = pair.recordHead;
    let isMissing = false;
    for (; head !== noRecord; head = pair.recordHead) {
      if (head.packetCount === 0) {
        if (!completion.completeLocally(pair, cycle)) return this.#effects.waitForCompletion(cycle);
        if (pair.recordHead === head) break;
        if (pair.state === ERR) return true;
        continue;
      }
      if (psnDistance(this.#states.lastPsnOf(head), psn) > 0) break;
      // A later packet was acknowledged: the response of this request is lost.
      isMissing = head.isReadOrAtomic === 1;
      if (isMissing) break;
      const { earlier, transmittedCycle } = head;
      if (!completion.completeHead(pair, cycle)) return this.#effects.waitForCompletion(cycle);
      // A message that was sent again gives no round trip: the answer may be to either attempt (Karn).
      if (this.#reactionPoint.isOn && earlier.endCycle === NO_ATTEMPT)
        this.#reactionPoint.acknowledged(pair, transmittedCycle, cycle);
    }
    const acknowledged = head === noRecord ? psn : this.#acknowledgedBy(head, psn);
    if (psnDistance(acknowledged, this.#states.rows[pair.slot]!.lastAckedPsn) > 0)
      this.#advance(pair, acknowledged, cycle);
    if (isMissing) return this.#askAgain(pair, this.#missingPsnOf(head), cycle);
    if (head !== noRecord && !completion.completeLocally(pair, cycle)) this.#ends.waits(pair);
    return true;
  }

  /** All up to `psn` is acknowledged. */
  #advance(pair: QueuePair, psn: number, cycle: Cycles): void {
    this.#states.rows[pair.slot]!.lastAckedPsn = psn;
    this.#effects.progress(pair, cycle);
  }

  /**
   * Requests the lost response for `psn`, the oldest one for which the QP waits, again; once per gap: packets that
   * arrive before it belong to the old series. False: waits for room for a CQE.
   */
  #askAgain(pair: QueuePair, psn: number, cycle: Cycles): boolean {
    const state = this.#states.rows[pair.slot]!;
    if (psn === state.missingPsn) return true;
    if (pair.retriesLeft === 0)
      return this.#effects.failOrWait(pair, TRANSPORT_RETRY_EXC_ERR, cycle) !== WAIT;
    this.#transport.count('missingResponse');
    pair.retriesLeft--;
    state.missingPsn = psn;
    this.#goBack(pair, psn, cycle);
    return true;
  }

  #takeNak(pair: QueuePair, psn: number, syndrome: number, cycle: Cycles): number {
    if (syndromeKind(syndrome) === AethKind.RNR_NAK)
      return this.#takeRnrNak(pair, psn, syndromeValue(syndrome), cycle);
    const code = syndromeValue(syndrome);
    if (code === NakCode.PSN_SEQUENCE_ERROR) {
      if (pair.retriesLeft === 0) return this.#effects.failOrWait(pair, TRANSPORT_RETRY_EXC_ERR, cycle);
      pair.retriesLeft--;
      this.#goBack(pair, psn, cycle);
      return 0;
    }
    return this.#effects.failOrWait(pair, syndromeOfNak(code), cycle);
  }

  #takeRnrNak(pair: QueuePair, psn: number, timerCode: number, cycle: Cycles): number {
    if (pair.rnrRetryCountMax !== RNR_RETRY_FOREVER) {
      if (pair.rnrRetriesLeft === 0)
        return this.#effects.failOrWait(pair, CqeSyndrome.RNR_RETRY_EXC_ERR, cycle);
      pair.rnrRetriesLeft--;
    }
    this.#goBack(pair, psn, cycle);
    this.#scheduler.park(pair, PARKED_RETRY_DELAY);
    this.#timers.waitRnr(pair, timerCode, cycle);
    return 0;
  }

  /** A READ response or an atomic's result: belongs to the oldest READ or atomic, and acknowledges all before it. */
  #processData(pair: QueuePair, opcode: number, psn: number, cycle: Cycles): number {
    if (!this.#isPlacing) {
      if (!this.#completeThrough(pair, (psn - 1) & PSN_MASK, cycle)) return WAIT;
      const request = pair.recordHead;
      if (request === noRecord || pair.state === ERR) return 0;
      const expected = this.#missingPsnOf(request);
      if (request.isReadOrAtomic === 1 && psnDistance(psn, expected) > 0) {
        if (expected === this.#states.rows[pair.slot]!.missingPsn)
          this.#transport.count('unexpectedResponse');
        return this.#askAgain(pair, expected, cycle) ? 0 : WAIT;
      }
      if (request.isReadOrAtomic === 0 || expected !== psn) {
        this.#transport.count('unexpectedResponse');
        return 0;
      }
      if (!this.#isAsExpected(pair, request, opcode))
        return this.#effects.failOrWait(pair, CqeSyndrome.BAD_RESP_ERR, cycle);
      this.#isPlacing = true;
      this.#placement.begin();
    }
    const request = pair.recordHead;
    const isAtomic = opcode === Opcode.RC_ATOMIC_ACKNOWLEDGE;
    const bytes = isAtomic ? 8 : this.#packet.payloadBytes;
    const received = request.responsesReceived * pair.mtuBytes;
    const placed = this.#placement.place(this.#packet.offset, pair, request, received, bytes, cycle);
    if (placed !== DONE) return this.#notPlaced(placed, pair, psn, cycle);
    // Other QPs may have taken the room while the payload waited: it is checked before anything changes.
    if (this.#completion.isFull) {
      this.#account.stall(cycle, STALL_COMPLETION);
      return WAIT;
    }
    request.responsesReceived++;
    this.#states.rows[pair.slot]!.missingPsn = NO_PSN;
    this.#advance(pair, psn, cycle);
    this.#isPlacing = false;
    if (!isAtomic && !endsMessage(opcode)) return bytes;
    pair.fenceWriteCount = this.#writer.requestedCount;
    this.#effects.takeCredits(pair, cycle);
    if (request.responsesReceived !== request.packetCount)
      return this.#effects.failOrWait(pair, CqeSyndrome.BAD_RESP_ERR, cycle);
    this.#completion.completeHead(pair, cycle);
    if (!this.#completion.completeLocally(pair, cycle)) this.#ends.waits(pair);
    return bytes;
  }

  /**
   * True if a response at the expected PSN matches the request's kind; otherwise it is a bad response (9.9.2.4.1). The
   * first packet of a READ response is FIRST or ONLY, all but the last fill this end's MTU, and the last brings the
   * rest (9.7.5.1): the peer may use another MTU.
   */
  #isAsExpected(pair: QueuePair, request: SendRecord, opcode: number): boolean {
    const isAtomic = opcode === Opcode.RC_ATOMIC_ACKNOWLEDGE;
    if (isAtomic || request.opcode !== WqeOpcode.RDMA_READ)
      return isAtomic && request.opcode !== WqeOpcode.RDMA_READ;
    const { responsesReceived, packetCount, messageBytes } = request;
    const isFollowing =
      opcode === Opcode.RC_RDMA_READ_RESPONSE_MIDDLE || opcode === Opcode.RC_RDMA_READ_RESPONSE_LAST;
    if (responsesReceived === 0 && isFollowing) return false;
    const isLast = responsesReceived === packetCount - 1;
    const expectedBytes = isLast ? messageBytes - responsesReceived * pair.mtuBytes : pair.mtuBytes;
    return this.#packet.payloadBytes === expectedBytes && endsMessage(opcode) === isLast;
  }

  #notPlaced(
    placed: Exclude<MemoryAnswer, typeof DONE>,
    pair: QueuePair,
    psn: number,
    cycle: Cycles,
  ): number {
    if (placed === WAIT) return WAIT;
    if (placed !== ABSENT)
      return this.#endPlacing(this.#effects.failOrWait(pair, CqeSyndrome.LOCAL_PROT_ERR, cycle));
    // The response is dropped with those that follow it. It is requested again when the page is present and no RNR
    // delay is pending.
    this.#isPlacing = false;
    this.#states.rows[pair.slot]!.missingPsn = psn;
    if (pair.isWaitingRnr === 0) this.#scheduler.park(pair, PARKED_PAGE_FAULT);
    this.#goBack(pair, psn, cycle);
    return 0;
  }

  #endPlacing(result: 0 | typeof WAIT): 0 | typeof WAIT {
    if (result !== WAIT) this.#isPlacing = false;
    return result;
  }

  /**
   * Returns the PSN up to which a response for `psn` acknowledges: not beyond the oldest request if that is a READ or
   * atomic without its own response.
   */
  #acknowledgedBy(oldest: SendRecord, psn: number): number {
    if (oldest.packetCount === 0 || oldest.isReadOrAtomic === 0) return psn;
    const answered = (this.#missingPsnOf(oldest) - 1) & PSN_MASK;
    return psnDistance(psn, answered) > 0 ? answered : psn;
  }
}

/** CQE syndrome of a request that was refused for good, by the code of the NAK (9.7.5.2.2). */
export function syndromeOfNak(code: number): number {
  if (code === NakCode.REMOTE_ACCESS_ERROR) return CqeSyndrome.REMOTE_ACCESS_ERR;
  return code === NakCode.REMOTE_OPERATIONAL_ERROR
    ? CqeSyndrome.REMOTE_OP_ERR
    : CqeSyndrome.REMOTE_INVAL_REQ_ERR;
}

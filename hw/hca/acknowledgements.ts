/**
 * The acknowledgement side of the requester: takes ACKs, NAKs, READ responses and atomic results, completes send work
 * requests in order, and sends the requester back when packets have to be repeated.
 *
 * Records of a QP complete strictly in their order: an acknowledgement for a later PSN completes all before it, but
 * never passes a READ or atomic whose own response is still missing (IBTA vol 1, 9.7.5.1, 9.7.6, 10.7.3.3).
 */
import { CqeSyndrome } from '../../abi/cqe.ts';
import { QpState } from '../../abi/qpc.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import type { BlockAccount } from '../../sim/index.ts';
import * as aethConstants from '../../wire/aeth.ts';
import {
  AethKind,
  creditCountByCode,
  NakCode,
  rnrTimerPsByCode,
  syndromeKind,
  syndromeValue,
} from '../../wire/aeth.ts';
import { endsMessage, Opcode } from '../../wire/opcodes.ts';
import * as packet from '../../wire/packet.ts';
import * as psnConstants from '../../wire/psn.ts';
import { psnDistance } from '../../wire/psn.ts';
import type { CompletionWriter } from './completion-writer.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import * as pageFaults from './page-faults.ts';
import type { PayloadWriter } from './payload-writer.ts';
import * as qpTable from './qp-table.ts';
import * as receivePipeline from './receive-pipeline.ts';
import type { ReceivedPackets } from './received-packets.ts';
import type { RetryTimers } from './retry-timers.ts';
import type { SendRecords } from './send-records.ts';
import * as sendRecords from './send-records.ts';
import type { SendScheduler } from './send-scheduler.ts';
import * as sendScheduler from './send-scheduler.ts';
import * as translationCache from './translation-cache.ts';
import * as translatorConstants from './translator.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { CREDIT_CODE_INVALID } = aethConstants;
const { PACKET_PAYLOAD_OFFSET, WORD_AETH, WORD_OPCODE, WORD_PAYLOAD_BYTES, WORD_PSN } = packet;
const { PSN_MASK } = psnConstants;
const { PORT_RECEIVER } = coreConstants;
const { SEGMENTS_MAX } = qpTable;
const { STALL_COMPLETION, STALL_DMA, STALL_TRANSLATION, WAIT } = receivePipeline;
const { MILESTONE_ACKNOWLEDGED } = sendRecords;
const { PARKED_CREDITS, PARKED_FENCE, PARKED_PAGE_FAULT, PARKED_READ_LIMIT, PARKED_RNR, PARKED_WINDOW } =
  sendScheduler;
const { RIGHT_LOCAL_WRITE } = translationCache;
const { BAD_KEY, PAGE_FAULT, PENDING } = translatorConstants;
const { SIDE_REQUESTER } = pageFaults;

const RNR_RETRY_FOREVER = 7;
/** Of placing an answer: its page has been asked for. */
const ABSENT = 2;

export interface AcknowledgementListener {
  /** The QP's oldest work request has completed in error: the QP goes to error and flushes the rest. */
  qpFailed(qp: number, cycle: number): void;
  /** A record completed without a CQE. */
  recordCompletedSilently(record: number, cycle: number): void;
  /** The head record completes without an answer, but there is no room for its CQE yet. */
  localCompletionWaits(qp: number): void;
}

export class Acknowledgements {
  readonly #core: HcaCore;
  readonly #port: ReceivedPackets;
  readonly #writer: PayloadWriter;
  readonly #records: SendRecords;
  readonly #completions: CompletionWriter;
  readonly #scheduler: SendScheduler;
  readonly #timers: RetryTimers;
  readonly #account: BlockAccount;
  readonly #listener: AcknowledgementListener;
  /** Payload bytes of the READ response being worked on that are on their way. */
  #placed = 0;
  #isPlacing = false;

  constructor(
    core: HcaCore,
    port: ReceivedPackets,
    writer: PayloadWriter,
    records: SendRecords,
    completions: CompletionWriter,
    scheduler: SendScheduler,
    timers: RetryTimers,
    account: BlockAccount,
    listener: AcknowledgementListener,
  ) {
    this.#core = core;
    this.#port = port;
    this.#writer = writer;
    this.#records = records;
    this.#completions = completions;
    this.#scheduler = scheduler;
    this.#timers = timers;
    this.#account = account;
    this.#listener = listener;
  }

  /** Works on the response at `offset` for `qp`. Returns the payload bytes handled, or WAIT. */
  process(offset: number, qp: number, cycle: number): number {
    const { qps } = this.#core;
    const words = this.#port.rxWords;
    const word = offset >> 2;
    const opcode = words[word + WORD_OPCODE]!;
    const psn = words[word + WORD_PSN]!;
    const newest = psnDistance(psn, (qps.nextPsn[qp]! - 1) & PSN_MASK);
    const oldest = psnDistance(psn, qps.lastAckedPsn[qp]!);
    if (qps.recordHead[qp] === -1 || newest > 0 || oldest <= 0) {
      if (oldest > 0 || newest > 0 || opcode !== Opcode.RC_ACKNOWLEDGE)
        this.#core.violations.count('responseUnexpected');
      return 0;
    }
    if (opcode !== Opcode.RC_ACKNOWLEDGE) return this.#processData(offset, qp, opcode, psn, cycle);
    const aeth = words[word + WORD_AETH]!;
    const syndrome = aeth >>> 24;
    if (syndromeKind(syndrome) === AethKind.ACK) {
      if (!this.#completeThrough(qp, psn, cycle)) return WAIT;
      this.#takeCredits(qp, syndromeValue(syndrome), aeth & PSN_MASK, cycle);
      return 0;
    }
    // A NAK acknowledges everything before the PSN it names.
    if (!this.#completeThrough(qp, (psn - 1) & PSN_MASK, cycle)) return WAIT;
    if (qps.recordHead[qp] === -1 || qps.state[qp] === QpState.ERR) return 0;
    return this.#takeNak(qp, psn, syndrome, cycle);
  }

  /**
   * Completes what needs no answer: the head record with an error of this side, a NOP, or a message of an unreliable service
   * that has been sent. False: no room for the CQE.
   */
  completeLocally(qp: number, cycle: number): boolean {
    const { qps } = this.#core;
    for (;;) {
      const record = qps.recordHead[qp]!;
      if (record === -1) return true;
      const syndrome = this.#records.syndrome[record]!;
      const isDoneAlone =
        this.#records.opcode[record] === WqeOpcode.NOP || this.#records.isDone[record] === 1;
      if (syndrome === 0 && !isDoneAlone) return true;
      if (syndrome !== 0) return this.fail(qp, syndrome, cycle);
      if (!this.#completeHead(qp, cycle)) return false;
    }
  }

  /** Completes the head record with `syndrome` and fails the QP. False: no room for the CQE. */
  fail(qp: number, syndrome: number, cycle: number): boolean {
    if (this.#completions.isFull) return false;
    const record = this.#unlinkHead(qp);
    this.#post(qp, record, syndrome, cycle);
    this.#listener.qpFailed(qp, cycle);
    return true;
  }

  /** Completes the head record of a QP in error as flushed. The caller has checked the room. */
  flushHead(qp: number, cycle: number): void {
    this.#post(qp, this.#unlinkHead(qp), CqeSyndrome.WR_FLUSH_ERR, cycle);
  }

  /** Drops all records of a QP without completions (2RST). */
  dropAll(qp: number): void {
    while (this.#core.qps.recordHead[qp] !== -1) this.#records.release(this.#unlinkHead(qp));
  }

  /** Sends again from `psn` on: everything queued and not yet on the wire is void (9.7.6.1). */
  goBack(qp: number, psn: number, cycle: number): void {
    const { qps } = this.#core;
    const records = this.#records;
    let record = qps.recordHead[qp]!;
    while (
      record !== -1 &&
      (records.psnCount[record] === 0 || psnDistance(psn, records.lastPsn(record)) > 0)
    ) {
      record = records.next[record]!;
    }
    if (record === -1) return;
    qps.epoch[qp] = qps.epoch[qp]! + 1;
    qps.recordCursor[qp] = record;
    const isRead = records.opcode[record] === WqeOpcode.RDMA_READ;
    qps.packetCursor[qp] = isRead
      ? records.responsesReceived[record]!
      : Math.max(0, psnDistance(psn, records.firstPsn[record]!));
    // What the next WQE waits for may be the very answer that is asked for again: it is judged anew behind it.
    const reason = qps.parkedFor[qp]!;
    if (reason !== PARKED_RNR && reason !== PARKED_PAGE_FAULT) this.#scheduler.unpark(qp, cycle + 1);
    this.#scheduler.makeReady(qp, cycle + 1);
  }

  reset(): void {
    this.#isPlacing = false;
  }

  #word(offset: number, word: number): number {
    return this.#port.rxWords[(offset >> 2) + word]!;
  }

  /** Completes all records whose last PSN lies at or before `psn`. False: waits for room for a CQE. */
  #completeThrough(qp: number, psn: number, cycle: number): boolean {
    const { qps } = this.#core;
    const records = this.#records;
    for (;;) {
      const record = qps.recordHead[qp]!;
      if (record === -1) break;
      if (records.psnCount[record] === 0) {
        if (!this.completeLocally(qp, cycle)) return this.#waitForCompletion(cycle);
        if (qps.recordHead[qp] === record) break;
        if (qps.state[qp] === QpState.ERR) return true;
        continue;
      }
      if (psnDistance(records.lastPsn(record), psn) > 0) break;
      if (records.isReadOrAtomic[record] === 1) {
        // Its response was lost: what came later was answered, so it is asked for again.
        const expected = (records.firstPsn[record]! + records.responsesReceived[record]!) & PSN_MASK;
        if (expected !== this.#core.pageFaults.awaitedPsn[qp]) this.goBack(qp, expected, cycle);
        return true;
      }
      if (!this.#completeHead(qp, cycle)) return this.#waitForCompletion(cycle);
    }
    const acknowledged = this.#acknowledgedBy(qp, psn);
    if (psnDistance(acknowledged, qps.lastAckedPsn[qp]!) > 0) {
      qps.lastAckedPsn[qp] = acknowledged;
      this.#timers.progress(qp);
    }
    if (!this.completeLocally(qp, cycle)) this.#listener.localCompletionWaits(qp);
    return true;
  }

  /** A later answer says nothing of a READ or atomic whose own answer has not come. */
  #acknowledgedBy(qp: number, psn: number): number {
    const record = this.#core.qps.recordHead[qp]!;
    const records = this.#records;
    if (record === -1 || records.psnCount[record] === 0 || records.isReadOrAtomic[record] === 0) return psn;
    const answered = (records.firstPsn[record]! + records.responsesReceived[record]! - 1) & PSN_MASK;
    return psnDistance(psn, answered) > 0 ? answered : psn;
  }

  #waitForCompletion(cycle: number): boolean {
    this.#account.stall(cycle, STALL_COMPLETION);
    return false;
  }

  /** Completes the head record successfully. False: no room for its CQE. */
  #completeHead(qp: number, cycle: number): boolean {
    const record = this.#core.qps.recordHead[qp]!;
    if (this.#records.isSignalled[record] === 1) {
      if (this.#completions.isFull) return false;
      this.#unlinkHead(qp);
      this.#post(qp, record, 0, cycle);
    } else {
      this.#unlinkHead(qp);
      this.#records.setMilestone(record, MILESTONE_ACKNOWLEDGED, cycle);
      this.#listener.recordCompletedSilently(record, cycle);
    }
    this.#unparkAfterCompletion(qp, cycle);
    return true;
  }

  #unlinkHead(qp: number): number {
    const { qps } = this.#core;
    const record = qps.recordHead[qp]!;
    const next = this.#records.next[record]!;
    qps.recordHead[qp] = next;
    if (next === -1) qps.recordTail[qp] = -1;
    if (qps.recordCursor[qp] === record) {
      qps.recordCursor[qp] = next;
      qps.packetCursor[qp] = 0;
    }
    qps.recordCount[qp] = qps.recordCount[qp]! - 1;
    if (this.#records.psnCount[record]! > 0 && this.#records.isReadOrAtomic[record] === 1) {
      qps.readsOutstanding[qp] = qps.readsOutstanding[qp]! - 1;
    }
    return record;
  }

  #post(qp: number, record: number, syndrome: number, cycle: number): void {
    const { qps } = this.#core;
    const records = this.#records;
    records.setMilestone(record, MILESTONE_ACKNOWLEDGED, cycle);
    records.syndrome[record] = syndrome;
    const opcode = records.opcode[record]!;
    const bytes = records.isReadOrAtomic[record] === 1 ? records.messageBytes[record]! : 0;
    this.#completions.post(
      qps.sendCqn[qp]!,
      qp,
      record,
      1,
      opcode,
      records.wqeCounter[record]!,
      bytes,
      0,
      0,
      syndrome,
      0,
      cycle,
    );
  }

  #unparkAfterCompletion(qp: number, cycle: number): void {
    const { qps } = this.#core;
    const reason = qps.parkedFor[qp]!;
    const isOver =
      reason === PARKED_WINDOW ||
      reason === PARKED_READ_LIMIT ||
      (reason === PARKED_FENCE && qps.readsOutstanding[qp] === 0) ||
      (reason === PARKED_CREDITS && qps.recordCount[qp] === 0);
    if (isOver) this.#scheduler.unpark(qp, cycle + 1);
  }

  /** Limit on sends from the credits of an ACK: its MSN plus what the code promises (9.7.7.2). */
  #takeCredits(qp: number, code: number, msn: number, cycle: number): void {
    const { qps } = this.#core;
    if (code === CREDIT_CODE_INVALID) {
      qps.ssnLimit[qp] = -1;
    } else {
      qps.ssnLimit[qp] = (msn + creditCountByCode[code]!) & PSN_MASK;
    }
    if (qps.parkedFor[qp] === PARKED_CREDITS) this.#scheduler.unpark(qp, cycle + 1);
  }

  #takeNak(qp: number, psn: number, syndrome: number, cycle: number): number {
    const { qps } = this.#core;
    if (syndromeKind(syndrome) === AethKind.RNR_NAK)
      return this.#takeRnrNak(qp, psn, syndromeValue(syndrome), cycle);
    const code = syndromeValue(syndrome);
    if (code === NakCode.PSN_SEQUENCE_ERROR) {
      if (qps.retriesLeft[qp] === 0) return this.#failOrWait(qp, CqeSyndrome.TRANSPORT_RETRY_EXC_ERR, cycle);
      qps.retriesLeft[qp] = qps.retriesLeft[qp]! - 1;
      this.goBack(qp, psn, cycle);
      return 0;
    }
    const error =
      code === NakCode.REMOTE_ACCESS_ERROR
        ? CqeSyndrome.REMOTE_ACCESS_ERR
        : code === NakCode.REMOTE_OPERATIONAL_ERROR
          ? CqeSyndrome.REMOTE_OP_ERR
          : CqeSyndrome.REMOTE_INVAL_REQ_ERR;
    return this.#failOrWait(qp, error, cycle);
  }

  #takeRnrNak(qp: number, psn: number, timerCode: number, cycle: number): number {
    const { qps } = this.#core;
    if (qps.rnrRetryCountMax[qp] !== RNR_RETRY_FOREVER) {
      if (qps.rnrRetriesLeft[qp] === 0) return this.#failOrWait(qp, CqeSyndrome.RNR_RETRY_EXC_ERR, cycle);
      qps.rnrRetriesLeft[qp] = qps.rnrRetriesLeft[qp]! - 1;
    }
    this.goBack(qp, psn, cycle);
    this.#scheduler.park(qp, PARKED_RNR);
    this.#timers.waitRnr(qp, rnrTimerPsByCode[timerCode]!, cycle);
    return 0;
  }

  #failOrWait(qp: number, syndrome: number, cycle: number): number {
    if (this.fail(qp, syndrome, cycle)) return 0;
    this.#account.stall(cycle, STALL_COMPLETION);
    return WAIT;
  }

  /** A READ response or an atomic's result: belongs to the oldest READ or atomic, and acknowledges all before it. */
  #processData(offset: number, qp: number, opcode: number, psn: number, cycle: number): number {
    const { qps } = this.#core;
    const records = this.#records;
    if (!this.#isPlacing) {
      if (!this.#completeThrough(qp, (psn - 1) & PSN_MASK, cycle)) return WAIT;
      const record = qps.recordHead[qp]!;
      if (record === -1 || qps.state[qp] === QpState.ERR) return 0;
      const expected = (records.firstPsn[record]! + records.responsesReceived[record]!) & PSN_MASK;
      if (records.isReadOrAtomic[record] === 0 || expected !== psn) {
        if (expected === this.#core.pageFaults.awaitedPsn[qp]) return 0;
        this.#core.violations.count('responseUnexpected');
        if (records.isReadOrAtomic[record] === 1 && psnDistance(psn, expected) > 0)
          this.goBack(qp, expected, cycle);
        return 0;
      }
      this.#isPlacing = true;
      this.#placed = 0;
    }
    const record = qps.recordHead[qp]!;
    const isAtomic = opcode === Opcode.RC_ATOMIC_ACKNOWLEDGE;
    const bytes = isAtomic ? 8 : this.#word(offset, WORD_PAYLOAD_BYTES);
    const placed = this.#place(offset, qp, record, bytes, cycle);
    if (placed !== 1) return this.#notPlaced(placed, qp, psn, cycle);
    // Other QPs may have taken the room while the payload waited: make sure of it before anything changes.
    if (this.#completions.isFull) {
      this.#account.stall(cycle, STALL_COMPLETION);
      return WAIT;
    }
    records.responsesReceived[record] = records.responsesReceived[record]! + 1;
    qps.lastAckedPsn[qp] = psn;
    this.#timers.progress(qp);
    this.#isPlacing = false;
    if (!isAtomic && !endsMessage(opcode)) return bytes;
    this.#takeCredits(
      qp,
      syndromeValue(this.#word(offset, WORD_AETH) >>> 24),
      this.#word(offset, WORD_AETH) & PSN_MASK,
      cycle,
    );
    if (records.responsesReceived[record] !== records.psnCount[record])
      return this.#failOrWait(qp, CqeSyndrome.BAD_RESP_ERR, cycle);
    this.#completeHead(qp, cycle);
    if (!this.completeLocally(qp, cycle)) this.#listener.localCompletionWaits(qp);
    return bytes;
  }

  #notPlaced(placed: number, qp: number, psn: number, cycle: number): number {
    if (placed === WAIT) return WAIT;
    if (placed !== ABSENT) return this.#endPlacing(this.#failOrWait(qp, CqeSyndrome.LOCAL_PROT_ERR, cycle));
    // Dropped, with what is on its way behind it; asked for again when the page is there.
    this.#isPlacing = false;
    this.#core.pageFaults.awaitedPsn[qp] = psn;
    this.#scheduler.park(qp, PARKED_PAGE_FAULT);
    this.goBack(qp, psn, cycle);
    return 0;
  }

  #endPlacing(result: number): number {
    if (result !== WAIT) this.#isPlacing = false;
    return result;
  }

  /** Scatters response payload into the record's segments. 1, 0 (a segment is refused), ABSENT or WAIT. */
  #place(offset: number, qp: number, record: number, bytes: number, cycle: number): number {
    const { qps, translator } = this.#core;
    const records = this.#records;
    const received = records.responsesReceived[record]! * qps.mtuBytes[qp]!;
    while (this.#placed < bytes) {
      let position = received + this.#placed;
      let segment = 0;
      const count = records.segmentCount[record]!;
      while (segment < count && position >= records.segmentBytes[record * SEGMENTS_MAX + segment]!) {
        position -= records.segmentBytes[record * SEGMENTS_MAX + segment]!;
        segment++;
      }
      if (segment === count) return 0;
      const index = record * SEGMENTS_MAX + segment;
      const wanted = Math.min(bytes - this.#placed, records.segmentBytes[index]! - position);
      const address = records.segmentAddress[index]! + position;
      const found = translator.translate(
        PORT_RECEIVER,
        records.segmentKey[index]!,
        qps.pd[qp]!,
        address,
        wanted,
        RIGHT_LOCAL_WRITE,
      );
      if (found === PENDING) {
        this.#account.stall(cycle, STALL_TRANSLATION);
        return WAIT;
      }
      if (found >= BAD_KEY) {
        const { pageFaults: faults } = this.#core;
        const rest = records.segmentBytes[index]! - position;
        const key = records.segmentKey[index]!;
        const isAsked = found === PAGE_FAULT && faults.meet(qp, SIDE_REQUESTER, key, address, rest, 1, cycle);
        return isAsked ? ABSENT : 0;
      }
      if (!this.#writer.canWrite) {
        this.#account.stall(cycle, STALL_DMA);
        return WAIT;
      }
      const part = Math.min(wanted, translator.contiguousBytes);
      this.#writer.write(
        translator.physicalAddress,
        part,
        this.#port.rxBytes,
        offset + PACKET_PAYLOAD_OFFSET + this.#placed,
      );
      this.#placed += part;
    }
    return 1;
  }
}

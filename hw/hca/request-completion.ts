/**
 * Completes send work requests, strictly in their order: the oldest record of a QP leaves its list with a CQE, or silently
 * when none was asked for, and what was parked for want of it goes on (IBTA vol 1, 10.7.3.3, 10.8.3).
 */
import { CqeSyndrome } from '../../abi/cqe.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import type { CompletionWriter } from './completion-writer.ts';
import type { HcaCore } from './core.ts';
import type { QueuePair } from './queue-pair.ts';
import type { SendRecords } from './send-records.ts';
import * as sendRecords from './send-records.ts';
import type { SendScheduler } from './send-scheduler.ts';
import * as sendScheduler from './send-scheduler.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { MILESTONE_ACKNOWLEDGED } = sendRecords;
const { NOT_PARKED, PARKED_CREDITS, PARKED_FENCE, PARKED_READ_LIMIT, PARKED_WINDOW } = sendScheduler;

export interface RequestCompletionListener {
  /** The QP's oldest work request has completed in error: the QP goes to error and flushes the rest. */
  qpFailed(qp: number, cycle: number): void;
  /** A record completed without a CQE. */
  recordCompletedSilently(record: number, cycle: number): void;
}

export class RequestCompletion {
  readonly #core: HcaCore;
  readonly #records: SendRecords;
  readonly #completions: CompletionWriter;
  readonly #scheduler: SendScheduler;
  readonly #listener: RequestCompletionListener;

  constructor(
    core: HcaCore,
    records: SendRecords,
    completions: CompletionWriter,
    scheduler: SendScheduler,
    listener: RequestCompletionListener,
  ) {
    this.#core = core;
    this.#records = records;
    this.#completions = completions;
    this.#scheduler = scheduler;
    this.#listener = listener;
  }

  /** True when there is no room for another CQE. */
  get isFull(): boolean {
    return this.#completions.isFull;
  }

  /**
   * Completes what needs no answer: the head record with an error of this side, a NOP, or a message of an unreliable service
   * that has been sent. False: no room for the CQE.
   */
  completeLocally(qp: number, cycle: number): boolean {
    const pair = this.#core.qps.rows[qp]!;
    for (;;) {
      const record = pair.recordHead;
      if (record === -1) return true;
      const request = this.#records.rows[record]!;
      const { syndrome } = request;
      if (syndrome !== 0) return this.fail(qp, syndrome, cycle);
      if (request.opcode !== WqeOpcode.NOP && request.isDone === 0) return true;
      if (!this.completeHead(qp, pair, cycle)) return false;
    }
  }

  /** Completes the head record with `syndrome` and fails the QP. False: no room for the CQE. */
  fail(qp: number, syndrome: number, cycle: number): boolean {
    if (this.#completions.isFull) return false;
    const pair = this.#core.qps.rows[qp]!;
    this.#post(qp, pair, this.#unlinkHead(pair), syndrome, cycle);
    this.#listener.qpFailed(qp, cycle);
    return true;
  }

  /** Completes the head record of a QP in error as flushed. The caller has checked the room. */
  flushHead(qp: number, cycle: number): void {
    const pair = this.#core.qps.rows[qp]!;
    this.#post(qp, pair, this.#unlinkHead(pair), CqeSyndrome.WR_FLUSH_ERR, cycle);
  }

  /** Drops all records of a QP without completions (2RST). */
  dropAll(qp: number): void {
    const pair = this.#core.qps.rows[qp]!;
    while (pair.recordHead !== -1) this.#records.release(this.#unlinkHead(pair));
  }

  /** Completes the head record successfully. False: no room for its CQE. */
  completeHead(qp: number, pair: QueuePair, cycle: number): boolean {
    const record = pair.recordHead;
    const request = this.#records.rows[record]!;
    if (request.isSignalled === 1) {
      if (this.#completions.isFull) return false;
      this.#post(qp, pair, this.#unlinkHead(pair), 0, cycle);
    } else {
      this.#unlinkHead(pair);
      this.#records.setMilestone(record, MILESTONE_ACKNOWLEDGED, cycle);
      this.#listener.recordCompletedSilently(record, cycle);
    }
    if (pair.parkedFor !== NOT_PARKED) this.#unparkAfterCompletion(qp, pair, cycle);
    return true;
  }

  #unlinkHead(pair: QueuePair): number {
    const record = pair.recordHead;
    const request = this.#records.rows[record]!;
    const { next } = request;
    pair.recordHead = next;
    if (next === -1) pair.recordTail = -1;
    if (pair.recordCursor === record) {
      pair.recordCursor = next;
      pair.packetCursor = 0;
    }
    pair.recordCount--;
    if (request.psnCount > 0 && request.isReadOrAtomic === 1) pair.readsOutstanding--;
    return record;
  }

  #post(qp: number, pair: QueuePair, record: number, syndrome: number, cycle: number): void {
    const records = this.#records;
    records.setMilestone(record, MILESTONE_ACKNOWLEDGED, cycle);
    const request = records.rows[record]!;
    request.syndrome = syndrome;
    const { opcode } = request;
    const bytes = request.isReadOrAtomic === 1 ? request.messageBytes : 0;
    this.#completions.post(
      pair.sendCqn,
      qp,
      record,
      1,
      opcode,
      request.wqeCounter,
      bytes,
      0,
      0,
      syndrome,
      0,
      cycle,
    );
  }

  #unparkAfterCompletion(qp: number, pair: QueuePair, cycle: number): void {
    const reason = pair.parkedFor;
    const isOver =
      reason === PARKED_WINDOW ||
      reason === PARKED_READ_LIMIT ||
      (reason === PARKED_FENCE && pair.readsOutstanding === 0) ||
      (reason === PARKED_CREDITS && pair.recordCount === 0);
    if (isOver) this.#scheduler.unpark(qp, cycle + 1);
  }
}

/**
 * Completes send work requests, strictly in their order: the oldest record of a QP leaves its list with a CQE, or
 * silently if it is unsignalled, and QPs parked for lack of a record resume (IBTA vol 1, 10.7.3.1, 10.8.3).
 */

import { CqeSyndrome, WqeOpcode } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { CompletionWriter } from '../completion/index.ts';

import {
  noRecord,
  type QpSlot,
  type QueuePair,
  type SendRecord,
  type SendRecords,
} from '../objects/index.ts';
import {
  NOT_PARKED,
  PARKED_CREDITS,
  PARKED_FENCE,
  PARKED_ORDER,
  PARKED_READ_LIMIT,
  PARKED_WINDOW,
  type SendScheduler,
} from '../send-queue/index.ts';

const { NOP } = WqeOpcode;

export interface RequestCompletionPorts {
  readonly completions: CompletionWriter;
  readonly scheduler: SendScheduler;
  readonly errors: {
    /** The QP's oldest work request has completed in error: the QP goes to error and flushes the rest. */
    sendFailed(qp: QpSlot, cycle: Cycles): void;
  };
  readonly ends: {
    /** A record completed without a CQE. */
    completedSilently(request: SendRecord, cycle: Cycles): void;
  };
}

export class RequestCompletion {
  readonly #records: SendRecords;
  #completions!: CompletionWriter;
  #ports!: RequestCompletionPorts;

  constructor(records: SendRecords) {
    this.#records = records;
  }

  connect(ports: RequestCompletionPorts): void {
    this.#ports = ports;
    this.#completions = ports.completions;
  }

  /** True when there is no room for another CQE. */
  get isFull(): boolean {
    return this.#completions.isFull;
  }

  /**
   * Completes head records that need no response: those with an error of this side, NOPs, completed operations on keys,
   * and sent messages of an unreliable service. Returns false if there is no room for the CQE.
   */
  completeLocally(pair: QueuePair, cycle: Cycles): boolean {
    for (;;) {
      const request = pair.recordHead;
      if (request === noRecord) return true;
      const { syndrome } = request;
      if (syndrome !== 0) return this.fail(pair, syndrome, cycle);
      if (request.opcode !== NOP && request.isDone === 0) return true;
      if (!this.completeHead(pair, cycle)) return false;
    }
  }

  /** Completes the head record with `syndrome` and fails the QP. False: no room for the CQE. */
  fail(pair: QueuePair, syndrome: number, cycle: Cycles): boolean {
    if (this.#completions.isFull) return false;
    this.#post(pair, this.#unlinkHead(pair), syndrome, cycle);
    this.#ports.errors.sendFailed(pair.slot, cycle);
    return true;
  }

  /** Completes the head record of a QP in error as flushed. The caller has checked the room. */
  flushHead(pair: QueuePair, cycle: Cycles): void {
    this.#post(pair, this.#unlinkHead(pair), CqeSyndrome.WR_FLUSH_ERR, cycle);
  }

  /** Drops all records of a QP without completions (2RST). */
  dropAll(pair: QueuePair): void {
    while (pair.recordHead !== noRecord) this.#records.release(this.#unlinkHead(pair));
  }

  /** Completes the head record successfully. False: no room for its CQE. */
  completeHead(pair: QueuePair, cycle: Cycles): boolean {
    const request = pair.recordHead;
    if (request.isSignalled === 1) {
      if (this.#completions.isFull) return false;
      this.#post(pair, this.#unlinkHead(pair), 0, cycle);
    } else {
      this.#unlinkHead(pair);
      request.acknowledgedCycle = cycle;
      this.#ports.ends.completedSilently(request, cycle);
    }
    if (pair.parkedFor !== NOT_PARKED) this.#unparkAfterCompletion(pair, cycle);
    return true;
  }

  /** Unlinks the ended request, some time before its CQE leaves, and invalidates its packets that have not left. */
  #unlinkHead(pair: QueuePair): SendRecord {
    const request = pair.recordHead;
    const { next } = request;
    request.generation = (request.generation + 1) | 0;
    pair.recordHead = next;
    if (next === noRecord) pair.recordTail = noRecord;
    if (pair.recordCursor === request) {
      pair.recordCursor = next;
      pair.packetCursor = 0;
    }
    pair.recordCount--;
    if (request.isReadOrAtomic === 1 && request.packetCount > 0) pair.readsOutstanding--;
    return request;
  }

  #post(pair: QueuePair, request: SendRecord, syndrome: number, cycle: Cycles): void {
    request.acknowledgedCycle = cycle;
    request.syndrome = syndrome;
    const completion = this.#completions.next(pair.sendCqn, pair.slot);
    completion.record = request.number;
    completion.isSend = true;
    completion.opcode = request.opcode;
    completion.wqeCounter = request.wqeCounter;
    if (request.isReadOrAtomic === 1) completion.byteCount = request.messageBytes;
    completion.syndrome = syndrome;
    this.#completions.post(completion, cycle);
  }

  #unparkAfterCompletion(pair: QueuePair, cycle: Cycles): void {
    const reason = pair.parkedFor;
    const isOver =
      reason === PARKED_WINDOW ||
      reason === PARKED_READ_LIMIT ||
      (reason === PARKED_FENCE && pair.readsOutstanding === 0) ||
      ((reason === PARKED_CREDITS || reason === PARKED_ORDER) && pair.recordCount === 0);
    if (isOver) this.#ports.scheduler.unpark(pair, cycle + 1);
  }
}

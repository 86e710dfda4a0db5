/**
 * Errors of queue pairs and their consequences: refusals by either side, unusable work queues and CQs, unreadable
 * payload. All end in {@link QueuePairErrors.fail}, the error state of the QP (IBTA vol 1, 10.3.1). Some errors first
 * fail one work request, whose completion takes the QP to error, or only the send queue if the service is unreliable.
 */

import { CqErrorSyndrome, CqeSyndrome, EventType, QpState } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { AsyncEvents } from '../events/index.ts';
import {
  type CqSlot,
  type CqTable,
  noRecord,
  type QpSlot,
  type QpTable,
  type QueuePair,
  type SendRecord,
  UC_OPCODE_BASE,
  UD_OPCODE_BASE,
  XRC_SERVICE,
} from '../objects/index.ts';
import { PARKED_ERROR, type SendScheduler } from '../send-queue/index.ts';
import type { DiagnosticCounters } from '../statistics/index.ts';
import type { RequestLifecycle } from '../transport/index.ts';
import type { Flusher } from './flusher.ts';
import type { RequestEnds } from './request-ends.ts';

export interface QueuePairErrorPorts {
  readonly scheduler: SendScheduler;
  readonly requestTransport: RequestLifecycle;
  readonly flusher: Flusher;
  readonly ends: RequestEnds;
  readonly asyncEvents: AsyncEvents;
}

/** Parts of the device that {@link QueuePairErrors} uses. */
export interface QueuePairErrorsSetup {
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly diagnostics: DiagnosticCounters;
}

export class QueuePairErrors {
  readonly #qps: QpTable;
  readonly #cqs: CqTable;
  readonly #diagnostics: DiagnosticCounters;
  #ports!: QueuePairErrorPorts;

  constructor(setup: QueuePairErrorsSetup) {
    this.#qps = setup.qps;
    this.#cqs = setup.cqs;
    this.#diagnostics = setup.diagnostics;
  }

  connect(ports: QueuePairErrorPorts): void {
    this.#ports = ports;
  }

  /**
   * Moves the QP to error. It still sends responses to requests accepted before, which the peer counts as done when it
   * receives the NAK after them, and nothing else. Both queues are flushed.
   */
  fail(qp: QpSlot, cycle: Cycles): void {
    const pair = this.#qps.rows[qp]!;
    if (pair.state === QpState.ERR) return;
    this.#stopSending(pair, QpState.ERR);
    if (pair.srqn !== -1 && pair.serviceBits !== XRC_SERVICE)
      this.#ports.asyncEvents.post(EventType.SRQ_QP_LAST_WQE, this.#qps.numberOf[qp]!, 0, cycle);
    this.#ports.flusher.begin(qp, cycle);
  }

  /**
   * Handles a send work request that completed in error. The send queue of an unreliable QP goes to its own error
   * state, is flushed, and can be restored; the QP continues to receive (IBTA vol 1, 10.3.1).
   */
  sendFailed(qp: QpSlot, cycle: Cycles): void {
    const pair = this.#qps.rows[qp]!;
    const { opcodeBase } = pair;
    if (opcodeBase !== UC_OPCODE_BASE && opcodeBase !== UD_OPCODE_BASE) return this.fail(qp, cycle);
    if (pair.state === QpState.ERR || pair.state === QpState.SQER) return;
    this.#stopSending(pair, QpState.SQER);
    this.#ports.flusher.begin(qp, cycle);
  }

  refused(qp: QpSlot, eventType: number, cycle: Cycles): void {
    if (eventType !== 0) this.#ports.asyncEvents.post(eventType, this.#qps.numberOf[qp]!, 0, cycle);
    this.fail(qp, cycle);
  }

  communicationEstablished(qp: QpSlot, cycle: Cycles): void {
    if (this.#qps.rows[qp]!.state === QpState.RTR)
      this.#ports.asyncEvents.post(EventType.COMM_EST, this.#qps.numberOf[qp]!, 0, cycle);
  }

  cqFailed(cq: CqSlot, syndrome: number, cycle: Cycles): void {
    const cqn = this.#cqs.numberOf[cq]!;
    if (syndrome === CqErrorSyndrome.OVERRUN) this.#diagnostics.count('cqOverflow');
    this.#ports.asyncEvents.post(EventType.CQ_ERROR, cqn, syndrome, cycle);
    for (const qp of this.#qps.liveSlots()) {
      const pair = this.#qps.rows[qp]!;
      if (pair.sendCqn === cqn || pair.receiveCqn === cqn) this.fail(qp, cycle);
    }
  }

  /** Handles unreadable WQEs: the whole queue is unusable (event 0x05). */
  queueFailed(qp: QpSlot, cycle: Cycles): void {
    const pair = this.#qps.rows[qp]!;
    pair.wqeLine.mayHaveMore = 0;
    if (pair.state === QpState.ERR) this.#ports.flusher.resume(qp, cycle);
    else this.refused(qp, EventType.WQ_CATAS_ERROR, cycle);
    pair.hasDoorbell = 0;
  }

  /** The payload of a packet could not be read from host memory. */
  payloadFailed(request: SendRecord, pair: QueuePair, cycle: Cycles): void {
    request.syndrome = CqeSyndrome.LOCAL_PROT_ERR;
    pair.sendGeneration++;
    pair.recordCursor = noRecord;
    this.#ports.scheduler.park(pair, PARKED_ERROR);
    if (pair.recordHead === request) this.#ports.ends.completeLocally(pair, cycle);
  }

  #stopSending(pair: QueuePair, state: number): void {
    pair.state = state;
    pair.sendGeneration++;
    this.#ports.scheduler.remove(pair);
    this.#ports.requestTransport.forget(pair.slot);
  }
}

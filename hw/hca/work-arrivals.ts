/** News that a QP has send work: to the scheduler, or to the flusher when the QP is in error. */
import { QpState } from '../../abi/qpc.ts';
import type { DataPathParts } from './data-path-parts.ts';
import { NOT_PARKED } from './send-scheduler.ts';

export class WorkArrivals {
  readonly #parts: DataPathParts;

  constructor(parts: DataPathParts) {
    this.#parts = parts;
  }

  sendRequested(qp: number, cycle: number): void {
    if (this.#parts.core.qps.rows[qp]!.state === QpState.ERR) this.#parts.flusher.goOn(qp, cycle);
    else this.#parts.scheduler.makeReady(qp, cycle + this.#parts.core.config.scheduleCycles);
  }

  wqesFetched(qp: number, cycle: number): void {
    const { qps } = this.#parts.core;
    const pair = qps.rows[qp]!;
    if (pair.parkedFor !== NOT_PARKED) this.#parts.wqeFetch.release(qp, cycle);
    if (pair.state === QpState.ERR) this.#parts.flusher.goOn(qp, cycle);
    else this.#parts.scheduler.makeReady(qp, cycle + 1);
  }
}

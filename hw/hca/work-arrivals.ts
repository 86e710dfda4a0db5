/** News that a QP has send work: to the scheduler, or to the flusher when the QP is in error. */
import { QpState } from '../../abi/qpc.ts';
import type { DataPathParts } from './data-path-parts.ts';
import type { QueuePair } from './queue-pair.ts';
import * as sendScheduler from './send-scheduler.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { NOT_PARKED } = sendScheduler;
const { ERR } = QpState;

export class WorkArrivals {
  readonly #parts: DataPathParts;

  constructor(parts: DataPathParts) {
    this.#parts = parts;
  }

  sendRequested(pair: QueuePair, cycle: number): void {
    const { flusher, scheduler, core } = this.#parts;
    if (pair.state === ERR) flusher.goOn(pair.slot, cycle);
    else scheduler.makeReady(pair, cycle + core.config.scheduleCycles);
  }

  wqesFetched(pair: QueuePair, cycle: number): void {
    const { flusher, scheduler, wqeFetch } = this.#parts;
    if (pair.parkedFor !== NOT_PARKED) wqeFetch.release(pair, cycle);
    if (pair.state === ERR) flusher.goOn(pair.slot, cycle);
    else scheduler.makeReady(pair, cycle + 1);
  }
}

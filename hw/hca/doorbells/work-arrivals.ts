/** News that a QP has send work: to the scheduler, or to the flusher when the QP or its send queue is in error. */
import { QpState } from '../../../abi/qpc.ts';
import type { DataPathParts } from '../data-path-parts.ts';
import type { QueuePair } from '../objects/index.ts';
import { NOT_PARKED } from '../send-queue/index.ts';

const { ERR, SQER } = QpState;

export class WorkArrivals {
  readonly #parts: DataPathParts;

  constructor(parts: DataPathParts) {
    this.#parts = parts;
  }

  sendRequested(pair: QueuePair, cycle: number): void {
    const { flusher, scheduler, core } = this.#parts;
    if (isFlushed(pair)) flusher.goOn(pair.slot, cycle);
    else scheduler.makeReady(pair, cycle + core.config.scheduleCycles);
  }

  wqesFetched(pair: QueuePair, cycle: number): void {
    const { flusher, scheduler, wqeFetch } = this.#parts;
    if (pair.parkedFor !== NOT_PARKED) wqeFetch.release(pair, cycle);
    if (isFlushed(pair)) flusher.goOn(pair.slot, cycle);
    else scheduler.makeReady(pair, cycle + 1);
  }
}

/** What is posted to its send queue completes as flushed. */
function isFlushed({ state }: QueuePair): boolean {
  return state === ERR || state === SQER;
}

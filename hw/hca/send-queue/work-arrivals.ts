/** News that a QP has send work: to the scheduler, or to the flusher when the QP or its send queue is in error. */

import { QpState } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { QpSlot, QueuePair } from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';
import { NOT_PARKED, type SendScheduler } from './send-scheduler.ts';
import type { WqeFetch } from './wqe-fetch.ts';

const { ERR, SQER } = QpState;

export interface WorkArrivalPorts {
  readonly scheduler: SendScheduler;
  readonly wqeFetch: WqeFetch;
  readonly flusher: { resume(qp: QpSlot, cycle: Cycles): void };
}

export class WorkArrivals {
  readonly #scheduleCycles: number;
  #ports!: WorkArrivalPorts;

  constructor({ scheduleCycles }: Pick<HcaConfig, 'scheduleCycles'>) {
    this.#scheduleCycles = scheduleCycles;
  }

  connect(ports: WorkArrivalPorts): void {
    this.#ports = ports;
  }

  sendRequested(pair: QueuePair, cycle: Cycles): void {
    if (isFlushed(pair)) this.#ports.flusher.resume(pair.slot, cycle);
    else this.#ports.scheduler.makeReady(pair, cycle + this.#scheduleCycles);
  }

  wqesFetched(pair: QueuePair, cycle: Cycles): void {
    const { flusher, scheduler, wqeFetch } = this.#ports;
    if (pair.parkedFor !== NOT_PARKED) wqeFetch.release(pair, cycle);
    if (isFlushed(pair)) flusher.resume(pair.slot, cycle);
    else scheduler.makeReady(pair, cycle + 1);
  }
}

/** True if WQEs posted to the QP's send queue complete as flushed. */
function isFlushed({ state }: QueuePair): boolean {
  return state === ERR || state === SQER;
}

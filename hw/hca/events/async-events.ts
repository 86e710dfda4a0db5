/**
 * Asynchronous events of the data path on their way to the event writer: a bounded fifo, so that a block that finds an
 * error never waits for it. When software lets the event queues fill up for so long that the fifo is full, the event
 * is lost and counted, as on hardware.
 */

import { EventType } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, Fifo, stallReasons } from '../../../sim/index.ts';
import type { Cqn, Qpn } from '../objects/index.ts';

export interface AsyncEventSink {
  canPost(): boolean;
  postQpEvent(type: number, qpn: Qpn, cycle: Cycles): void;
  postSrqEvent(type: number, srqn: number, cycle: Cycles): void;
  postCqError(cqn: Cqn, syndrome: number, cycle: Cycles): void;
}

const DEPTH = 1024;
const stalls = stallReasons('events');
const { events: STALL_EVENTS } = stalls;
const whenFull = 'the event is lost and counted';

export class AsyncEvents {
  readonly account = new BlockAccount('asyncEvents', stalls);
  lostCount = 0;
  readonly #domain: ClockDomain;
  #sink!: AsyncEventSink;
  readonly #stage: number;
  readonly #types = new Fifo({ name: 'asynchronous events: types', capacity: DEPTH, whenFull });
  readonly #numbers = new Fifo({ name: 'asynchronous events: numbers', capacity: DEPTH, whenFull });
  readonly #syndromes = new Fifo({ name: 'asynchronous events: syndromes', capacity: DEPTH, whenFull });

  constructor({ domain }: { readonly domain: ClockDomain }) {
    this.#domain = domain;
    this.#stage = domain.addStage(this.#run, this);
  }

  connect({ eventQueues }: { readonly eventQueues: AsyncEventSink }): void {
    this.#sink = eventQueues;
  }

  /** See EventPoster. */
  eventSpace(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Queues an event of a QP, CQ or SRQ; the syndrome is that of a CQ error. */
  post(type: number, objectNumber: number, syndrome: number, cycle: Cycles): void {
    if (this.#types.isFull) {
      this.lostCount++;
      return;
    }
    this.#types.push(type, cycle + 1);
    this.#numbers.push(objectNumber, cycle + 1);
    this.#syndromes.push(syndrome, cycle + 1);
    this.#domain.wake(this.#stage, cycle + 1);
  }

  /** Events that wait for the event writer. */
  get heldCount(): number {
    return this.#types.count;
  }

  /** True when all events have been handed to the event writer. */
  get isEmpty(): boolean {
    return this.#types.isEmpty;
  }

  reset(): void {
    this.#types.clear();
    this.#numbers.clear();
    this.#syndromes.clear();
  }

  #run(cycle: Cycles): void {
    if (this.#types.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#types.isEmpty) this.#domain.wake(this.#stage, this.#types.headCycle);
      return;
    }
    if (!this.#sink.canPost()) return this.account.stall(cycle, STALL_EVENTS);
    const type = this.#types.pop();
    const objectNumber = this.#numbers.pop();
    const syndrome = this.#syndromes.pop();
    if (type === EventType.CQ_ERROR) this.#sink.postCqError(objectNumber, syndrome, cycle);
    else if (type === EventType.SRQ_LIMIT || type === EventType.SRQ_CATAS_ERROR)
      this.#sink.postSrqEvent(type, objectNumber, cycle);
    else this.#sink.postQpEvent(type, objectNumber, cycle);
    this.account.serve(cycle, 1);
    if (!this.#types.isEmpty) this.#domain.wake(this.#stage, cycle + 1);
  }

  get fifos(): readonly Fifo[] {
    return [this.#types];
  }

  inspect(): BlockState {
    return { types: this.#types.values, numbers: this.#numbers.values };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const fifo of [this.#types, this.#numbers, this.#syndromes]) fifo.rebase(cycles);
  }
}

/**
 * Reports when DMA requests that were made before a certain edge have ended: bytes read have come, bytes written have been
 * handed to the link, which nothing that the device sends afterwards can overtake.
 *
 *     begin: per requester, how many requests have been made     passed: so many have ended, of every requester fenced
 *
 * A command that takes memory from the device makes it forget what leads there, begins the fence, and ends when it is
 * passed. Requesters end their requests in order, so two counts each are enough and nothing is added to the requests.
 */
import type { DmaReads, DmaRequester, DmaWrites } from './dma-ports.ts';

export class DmaFence {
  readonly #engines: readonly (DmaReads | DmaWrites)[];
  readonly #trafficClasses: readonly number[];
  #requesters: DmaRequester[] = [];
  /** Requests that must have ended, by requester. */
  #requests: number[] = [];

  /** @param trafficClasses of the requests that are waited for */
  constructor(reads: DmaReads, writes: DmaWrites, trafficClasses: readonly number[]) {
    this.#engines = [reads, writes];
    this.#trafficClasses = trafficClasses;
  }

  /** All requests made until now are to end. */
  begin(): void {
    this.#requesters = this.#engines
      .flatMap(({ requesters }) => requesters)
      .filter(({ trafficClass, count }) => count > 0 && this.#trafficClasses.includes(trafficClass));
    this.#requests = this.#requesters.map(({ counters }) => counters.requests);
  }

  /** True when they have ended. */
  get isPassed(): boolean {
    return this.#requesters.every(
      ({ count, counters }, index) => counters.requests - count >= this.#requests[index]!,
    );
  }
}

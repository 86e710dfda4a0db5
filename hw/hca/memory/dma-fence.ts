/**
 * Reports when DMA requests that were made before a certain edge have ended: read data have arrived, and written data
 * have been handed to the link, where no later packet of the device can overtake them.
 *
 *     begin: per requester, how many requests have been made     passed: so many have ended, of every requester fenced
 *
 * A command that takes memory from the device drops the translations to it, begins the fence, and ends when it is
 * passed. Requesters end their requests in order, so two counters each are enough and nothing is added to the requests.
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

  /** Begins to wait for the end of all requests made until now. */
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

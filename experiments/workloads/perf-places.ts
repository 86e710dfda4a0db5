/**
 * Source and destination of a test's messages: places in a region of the requested size, so that address caches have
 * more than one entry to hold. They are the same at both ends, unless the local buffer has one place.
 *
 *     sequential  place 0, 1, 2, … and again from 0; each QP separately
 *     random      any place, drawn for each message
 *     zipf        a few places often, most of them seldom (exponent 0.99, like YCSB), scattered over the region
 *     stride      places a fixed number of bytes apart, and again from 0
 */
import type { Random } from '../../sim/index.ts';
import type { PerfRegion } from './perf-plan.ts';
import { ZipfRanks } from './zipf-ranks.ts';

export const strideDefaultBytes = 4096;

export class Places {
  readonly #count: number;
  readonly #take: () => number;

  /** @param placeBytes size of a place; the region holds at least one */
  constructor({ bytes, pattern, strideBytes }: PerfRegion, placeBytes: number, random: Random) {
    this.#count = Math.floor(bytes / placeBytes);
    if (pattern === 'random') this.#take = () => random.below(this.#count);
    else if (pattern === 'zipf') this.#take = this.#scattered(new ZipfRanks(this.#count, random));
    else if (pattern === 'sequential') this.#take = this.#walk(1);
    else this.#take = this.#walk(Math.max(1, Math.round((strideBytes ?? strideDefaultBytes) / placeBytes)));
  }

  /** Number of the place of the next message. */
  take(): number {
    return this.#take();
  }

  #walk(step: number): () => number {
    let next = 0;
    return () => {
      const place = next;
      next = (next + step) % this.#count;
      return place;
    };
  }

  /** Consecutive ranks lie far apart: a multiplicative hash, like that of YCSB's scrambled Zipf. */
  #scattered(ranks: ZipfRanks): () => number {
    return () => (Math.imul(ranks.next(), 0x9e3779b1) >>> 0) % this.#count;
  }
}

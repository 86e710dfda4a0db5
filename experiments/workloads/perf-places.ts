/**
 * Where the messages of a test come from and go to: places of a region as large as asked for, the same at both ends, so that
 * what caches addresses has more than one to keep.
 *
 *     sequential  place 0, 1, 2, … and from the beginning again; each QP for itself
 *     random      any place, drawn again for each message
 *     zipf        a few places often, most of them seldom (exponent 0.99, as YCSB has it), scattered over the region
 *     stride      places so many bytes apart, and from the beginning again
 */
import type { Random } from '../../sim/index.ts';
import type { PerfRegion } from './perf-plan.ts';
import { ZipfRanks } from './zipf-ranks.ts';

export const strideDefaultBytes = 4096;

export class Places {
  readonly #count: number;
  readonly #take: () => number;

  /** @param placeBytes of a place, of which the region holds at least one */
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

  /** Ranks that follow each other lie far from each other: a multiplicative hash, as YCSB's scrambled Zipf has one. */
  #scattered(ranks: ZipfRanks): () => number {
    return () => (Math.imul(ranks.next(), 0x9e3779b1) >>> 0) % this.#count;
  }
}

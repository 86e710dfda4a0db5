/**
 * Where the messages of a test come from and go to: places of a region as large as asked for, the same at both ends, so that
 * what caches addresses has more than one to keep.
 *
 *     next      place 0, 1, 2, … and from the beginning again; each QP for itself
 *     random    any place, drawn anew for each message
 */
import type { Random } from '../../sim/index.ts';
import type { PerfPattern } from './perf-plan.ts';

export class Places {
  readonly #count: number;
  readonly #strideBytes: number;
  readonly #random: Random | undefined;
  #next = 0;

  /** @param strideBytes of a place, of which the region holds at least one */
  constructor(regionBytes: number, strideBytes: number, pattern: PerfPattern, random: Random) {
    this.#count = Math.floor(regionBytes / strideBytes);
    this.#strideBytes = strideBytes;
    this.#random = pattern === 'random' ? random : undefined;
  }

  /** Offset of the place of the next message. */
  take(): number {
    const place = this.#random === undefined ? this.#next : this.#random.below(this.#count);
    this.#next = this.#next + 1 === this.#count ? 0 : this.#next + 1;
    return place * this.#strideBytes;
  }
}

/**
 * Ranks from 1 to n, rank k with a probability in proportion to k^-0.99: rejection-inversion, which needs neither a
 * table nor a sum over n. The exponent is that of YCSB. Source: Hörmann and Derflinger, algorithm RI.
 */
import type { Random } from '../../sim/index.ts';

const exponent = 0.99;

/** The integral of x^-exponent, and its inverse. */
const integral = (x: number): number => x ** (1 - exponent) / (1 - exponent);
const inverse = (y: number): number => (y * (1 - exponent)) ** (1 / (1 - exponent));

export class ZipfRanks {
  readonly #count: number;
  readonly #random: Random;
  readonly #low: number;
  readonly #high: number;

  constructor(count: number, random: Random) {
    this.#count = count;
    this.#random = random;
    this.#low = integral(1.5) - 1;
    this.#high = integral(count + 0.5);
  }

  next(): number {
    for (;;) {
      const drawn = this.#low + this.#random.unit() * (this.#high - this.#low);
      const rank = Math.min(this.#count, Math.max(1, Math.round(inverse(drawn))));
      if (drawn >= integral(rank + 0.5) - rank ** -exponent) return rank;
    }
  }
}

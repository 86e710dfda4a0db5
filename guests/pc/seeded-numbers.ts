/** Random numbers of 32 bits from a seed (xorshift32: G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8, 2003). */
export class SeededNumbers {
  /** Never 0. */
  state: number;

  /** @param seed any integer */
  constructor(seed: number) {
    this.state = (Math.imul(seed | 0, 0x9e37_79b1) ^ 0x5bd1_e995) | 0 || 1;
  }

  /** The next number, from 0 to 2^32 - 1. */
  next(): number {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x;
    return x >>> 0;
  }
}

/**
 * Seeded random numbers: sfc32 (Chris Doty-Humphrey's Small Fast Counter, PractRand 0.93), 128 bits of state,
 * period at least 2^32, about 2 ns a number. The same seed gives the same numbers on any machine.
 *
 * A seed is a whole number; streams with different names under one seed are independent, so that a new user of random numbers
 * does not shift the numbers of earlier users.
 */
import { ConfigurationError } from '../base/index.ts';

const WARM_UP_COUNT = 15;

export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /**
   * @param seed a whole number from 0 to 2^53 - 1
   * @param stream name of the numbers' user, like `wire.loss`
   */
  constructor(seed: number, stream = '') {
    if (!Number.isSafeInteger(seed) || seed < 0) {
      throw new ConfigurationError('seed', seed, 'a whole number from 0 to 2^53 - 1');
    }
    this.#a = hashOf(stream);
    this.#b = seed | 0;
    this.#c = Math.floor(seed / 2 ** 32) | 0;
    for (let count = 0; count < WARM_UP_COUNT; count++) this.uint32();
  }

  /** A whole number from 0 to 2^32 - 1. */
  uint32(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** A number from 0 up to but not including 1, of 32 bits: for `shuffle` parameters. */
  readonly unit = (): number => this.uint32() / 2 ** 32;

  /** A whole number from 0 up to but not including `count` (1 to 2^32), each equally likely: no modulo bias. */
  below(count: number): number {
    const unbiased = 2 ** 32 - (2 ** 32 % count);
    for (;;) {
      const value = this.uint32();
      if (value < unbiased) return value % count;
    }
  }

  /** A whole number from `minimum` to `maximum`, both included. */
  between(minimum: number, maximum: number): number {
    return minimum + this.below(maximum - minimum + 1);
  }

  /** True with the given probability, to within 2^-32. */
  chance(probability: number): boolean {
    return this.unit() < probability;
  }
}

/** FNV-1a of the name's UTF-16 code units. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < name.length; index++)
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  return hash;
}

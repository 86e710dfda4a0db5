/**
 * The lanes as a serialiser: how long bytes take, exactly. Generation, lanes, encoding and SKP ordered sets
 * give a ratio of picoseconds per byte; the remainder of every packet is carried into the next, so that a
 * million packets end on the right picosecond.
 *
 * An instant is reported rounded up to a whole picosecond: nothing arrives early.
 */
import { assertInvariant } from '../../base/assert.ts';
import type { LinkConfig } from './link-parameters.ts';

/** Megatransfers per second and lane, by generation (index 0 unused). */
const MEGATRANSFERS = [0, 2_500, 5_000, 8_000, 16_000, 32_000] as const;
const SKP_SYMBOLS = 4;
const PS_PER_MEGAHERTZ_PERIOD = 1_000_000;

/** Time per byte as a reduced ratio. */
export interface LinkRate {
  /** Picoseconds that `denominatorBytes` take. */
  readonly numeratorPs: number;
  readonly denominatorBytes: number;
  /** Gigabits per second that the lanes can carry in packets: encoding and SKP taken off. */
  readonly gigabitsPerSecond: number;
}

export function linkRateOf(config: LinkConfig): LinkRate {
  const megatransfers = MEGATRANSFERS[config.generation]! * config.lanes;
  // Useful bits over bits sent: the encoding's, then what SKP ordered sets leave.
  const isBlockCoded = config.generation >= 3;
  const usefulBits = isBlockCoded ? 128 : 8;
  const sentBits = isBlockCoded ? 130 : 10;
  const interval = isBlockCoded ? config.skpIntervalBlocks : config.skpIntervalSymbols;
  const usefulOfInterval = interval - (isBlockCoded ? 1 : SKP_SYMBOLS);
  const numerator = 8 * PS_PER_MEGAHERTZ_PERIOD * sentBits * interval;
  const denominator = megatransfers * usefulBits * usefulOfInterval;
  const divisor = greatestCommonDivisor(numerator, denominator);
  return {
    numeratorPs: numerator / divisor,
    denominatorBytes: denominator / divisor,
    gigabitsPerSecond: (8_000 * denominator) / numerator,
  };
}

export class LinkSerializer {
  readonly #numerator: number;
  readonly #denominator: number;
  readonly #alignmentMask: number;
  readonly #dllpBytes: number;
  /** The lanes are taken until #freePs + #remainder / #denominator. */
  #freePs = 0;
  #remainder = 0;
  /** Bytes of the gap behind the last TLP, up to the next aligned start. */
  #gapBytes = 0;
  /** Bytes of gaps that passed unused while the next packet was already waiting. */
  paddingBytes = 0;

  constructor(rate: LinkRate, alignmentBytes: number, dllpBytes: number) {
    assertInvariant(
      rate.numeratorPs * 8192 < Number.MAX_SAFE_INTEGER,
      'a TLP serialises in exact arithmetic',
    );
    this.#numerator = rate.numeratorPs;
    this.#denominator = rate.denominatorBytes;
    this.#alignmentMask = alignmentBytes - 1;
    this.#dllpBytes = dllpBytes;
  }

  /** First instant, rounded up, at which a packet handed over now would find the lanes free. */
  get freePs(): number {
    return this.#remainder === 0 ? this.#freePs : this.#freePs + 1;
  }

  /** Puts a TLP of `bytes` on the lanes at `nowPs` or as soon as they are free. Returns when its last byte is out. */
  sendTlp(nowPs: number, bytes: number): number {
    this.#begin(nowPs);
    this.paddingBytes += this.#gapBytes;
    this.#occupy(bytes);
    const endPs = this.freePs;
    this.#gapBytes = -bytes & this.#alignmentMask;
    if (this.#gapBytes > 0) this.#occupy(this.#gapBytes);
    return endPs;
  }

  /** Likewise a DLLP. It takes no time of its own when the gap behind the last TLP holds it. */
  sendDllp(nowPs: number): number {
    this.#begin(nowPs);
    if (this.#gapBytes >= this.#dllpBytes) {
      this.#gapBytes -= this.#dllpBytes;
      return this.freePs;
    }
    this.#occupy(this.#dllpBytes);
    return this.freePs;
  }

  #begin(nowPs: number): void {
    if (nowPs < this.freePs) return;
    if (nowPs === this.#freePs && this.#remainder === 0) return;
    this.#freePs = nowPs;
    this.#remainder = 0;
    this.#gapBytes = 0;
  }

  #occupy(bytes: number): void {
    const remainder = this.#remainder + bytes * this.#numerator;
    const wholePs = Math.floor(remainder / this.#denominator);
    this.#freePs += wholePs;
    this.#remainder = remainder - wholePs * this.#denominator;
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

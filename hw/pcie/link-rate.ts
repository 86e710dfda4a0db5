/**
 * The lanes as a serialiser: how long bytes take, exactly. Generation, lanes, encoding and SKP ordered sets
 * give a ratio of picoseconds per byte. Bytes are counted from the instant at which the lanes were last idle, so
 * that a million packets end on the right picosecond.
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

/** Bytes that a packet and the gap behind it never reach. */
const PACKET_BYTES_LIMIT = 8192;

export class LinkSerializer {
  readonly #numerator: number;
  readonly #denominator: number;
  readonly #alignmentMask: number;
  readonly #dllpBytes: number;
  /** The lanes have been busy since #originPs, for #busyBytes: fewer than #denominator and a packet. */
  #originPs = 0;
  #busyBytes = 0;
  /** Bytes of the gap behind the last TLP, up to the next aligned start. */
  #gapBytes = 0;
  /** Bytes of gaps that passed unused while the next packet was already waiting. */
  paddingBytes = 0;

  constructor(rate: LinkRate, alignmentBytes: number, dllpBytes: number) {
    assertInvariant(
      rate.numeratorPs * (rate.denominatorBytes + PACKET_BYTES_LIMIT) < 2 ** 52,
      'a stream serialises in exact arithmetic',
    );
    this.#numerator = rate.numeratorPs;
    this.#denominator = rate.denominatorBytes;
    this.#alignmentMask = alignmentBytes - 1;
    this.#dllpBytes = dllpBytes;
  }

  /** First instant, rounded up, at which a packet handed over now would find the lanes free. */
  get freePs(): number {
    return this.#originPs + Math.ceil((this.#busyBytes * this.#numerator) / this.#denominator);
  }

  /** Puts a TLP of `bytes` on the lanes at `nowPs` or as soon as they are free. Returns when its last byte is out. */
  sendTlp(nowPs: number, bytes: number): number {
    if (this.#areIdle(nowPs)) this.#begin(nowPs);
    else this.paddingBytes += this.#gapBytes;
    const gapBytes = -bytes & this.#alignmentMask;
    this.#gapBytes = gapBytes;
    const endBytes = this.#busyBytes + bytes;
    const endPs = this.#originPs + Math.ceil((endBytes * this.#numerator) / this.#denominator);
    this.#occupyTo(endBytes + gapBytes);
    return endPs;
  }

  /** Likewise a DLLP. It takes no time of its own when the gap behind the last TLP holds it. */
  sendDllp(nowPs: number): number {
    if (this.#areIdle(nowPs)) this.#begin(nowPs);
    if (this.#gapBytes >= this.#dllpBytes) this.#gapBytes -= this.#dllpBytes;
    else this.#occupyTo(this.#busyBytes + this.#dllpBytes);
    return this.freePs;
  }

  /** Whether the last byte was out before `nowPs`. Products are compared, for they cost less than a quotient; those of the bytes are exact. */
  #areIdle(nowPs: number): boolean {
    return (nowPs - this.#originPs) * this.#denominator > this.#busyBytes * this.#numerator;
  }

  /** The lanes have been idle: a new stream begins. */
  #begin(nowPs: number): void {
    this.#originPs = nowPs;
    this.#busyBytes = 0;
    this.#gapBytes = 0;
  }

  #occupyTo(busyBytes: number): void {
    this.#busyBytes = busyBytes;
    if (busyBytes >= this.#denominator) this.#rebase();
  }

  /** #denominator bytes take whole picoseconds: counted from their end, nothing is rounded. */
  #rebase(): void {
    const wholes = Math.floor(this.#busyBytes / this.#denominator);
    this.#busyBytes = (this.#busyBytes - wholes * this.#denominator) | 0;
    this.#originPs += wholes * this.#numerator;
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

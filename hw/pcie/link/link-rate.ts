/**
 * The lanes as a serialiser: the exact duration of bytes. Generation, lanes and framing (link-framing.ts) give a ratio of
 * picoseconds per byte. Bytes are counted from the instant at which the lanes were last idle, so that a million packets end on
 * the right picosecond.
 *
 * Reported instants are rounded up to whole picoseconds: nothing arrives early.
 */

import { assertInvariant, type Picoseconds, type Wide } from '../../../base/index.ts';
import type { LinkFraming } from './link-framing.ts';
import { framingOf } from './link-framings.ts';
import type { LinkConfig } from './link-parameters.ts';

const PS_PER_MEGAHERTZ_PERIOD = 1_000_000;

/** Time per byte as a reduced ratio. */
export interface LinkRate {
  /** Picoseconds for `denominatorBytes`. */
  readonly numeratorPs: Picoseconds;
  readonly denominatorBytes: number;
  /** Packet capacity of the lanes in gigabits per second: without encoding and SKP. */
  readonly gigabitsPerSecond: number;
}

/** @param framing of the configured generation; specs may pass that of an unlisted specification */
export function linkRateOf(
  config: LinkConfig,
  framing: LinkFraming = framingOf(config.generation),
): LinkRate {
  const megatransfers = framing.megatransfers.get(config.generation)! * config.lanes;
  const { code } = framing;
  const skip = framing.skipShare(config);
  const numerator = 8 * PS_PER_MEGAHERTZ_PERIOD * code.sent * skip.sent;
  const denominator = megatransfers * code.useful * skip.useful;
  const divisor = greatestCommonDivisor(numerator, denominator);
  return {
    numeratorPs: numerator / divisor,
    denominatorBytes: denominator / divisor,
    gigabitsPerSecond: (8_000 * denominator) / numerator,
  };
}

/** Exclusive upper bound of the bytes of a packet and the gap after it. */
const PACKET_BYTES_LIMIT = 8192;

export class LinkSerializer {
  readonly #numerator: number;
  readonly #denominator: number;
  readonly #alignmentMask: number;
  readonly #dllpBytes: number;
  /**
   * Start of the lanes' busy time, which lasts #busyUnits since then. The unit is a fraction of a picosecond such that
   * each byte takes a whole number of units.
   */
  #originPs = 0;
  #busyUnits: Wide = 0;
  /** Units of #denominator bytes: they last whole picoseconds. */
  readonly #blockUnits: number;
  /** Bytes of the gap after the last TLP, up to the next aligned start. */
  #gapBytes = 0;
  /** Bytes of unused gaps while the next packet was already waiting. */
  paddingBytes = 0;

  constructor(rate: LinkRate, alignmentBytes: number, dllpBytes: number) {
    assertInvariant(
      rate.numeratorPs * (rate.denominatorBytes + PACKET_BYTES_LIMIT) < 2 ** 52,
      'a stream serialises in exact arithmetic',
    );
    this.#numerator = rate.numeratorPs;
    this.#denominator = rate.denominatorBytes;
    this.#blockUnits = rate.numeratorPs * rate.denominatorBytes;
    this.#alignmentMask = alignmentBytes - 1;
    this.#dllpBytes = dllpBytes;
  }

  /** First instant, rounded up, at which a packet handed over now would find the lanes free. */
  get freePs(): Picoseconds {
    return this.#originPs + Math.ceil(this.#busyUnits / this.#denominator);
  }

  /** Puts a TLP of `bytes` on the lanes at `nowPs` or as soon as they are free. Returns when its last byte is out. */
  sendTlp(nowPs: Picoseconds, bytes: number): number {
    if (this.#areIdle(nowPs)) this.#begin(nowPs);
    else this.paddingBytes += this.#gapBytes;
    const gapBytes = -bytes & this.#alignmentMask;
    this.#gapBytes = gapBytes;
    const endUnits = this.#busyUnits + bytes * this.#numerator;
    const endPs = this.#originPs + Math.ceil(endUnits / this.#denominator);
    this.#occupyTo(endUnits + gapBytes * this.#numerator);
    return endPs;
  }

  /** The same for a DLLP. */
  sendDllp(nowPs: Picoseconds): number {
    this.passDllp(nowPs);
    return this.freePs;
  }

  /** {@link sendDllp} for callers that do not need its end. It needs no time of its own if it fits the gap after the last TLP. */
  passDllp(nowPs: Picoseconds): void {
    if (this.#areIdle(nowPs)) this.#begin(nowPs);
    if (this.#gapBytes >= this.#dllpBytes) this.#gapBytes -= this.#dllpBytes;
    else this.#occupyTo(this.#busyUnits + this.#dllpBytes * this.#numerator);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#originPs -= ps;
  }

  /** Whether the last byte was out before `nowPs`. Compares products, which are cheaper than quotients; units are exact. */
  #areIdle(nowPs: Picoseconds): boolean {
    return (nowPs - this.#originPs) * this.#denominator > this.#busyUnits;
  }

  /** The lanes have been idle: a new stream begins. */
  #begin(nowPs: Picoseconds): void {
    this.#originPs = nowPs;
    this.#busyUnits = 0;
    this.#gapBytes = 0;
  }

  #occupyTo(busyUnits: number): void {
    this.#busyUnits = busyUnits;
    if (busyUnits >= this.#blockUnits) this.#moveOrigin();
  }

  /** Counted from the end of whole blocks, which last whole picoseconds: nothing is rounded. */
  #moveOrigin(): void {
    const blocks = Math.floor(this.#busyUnits / this.#blockUnits);
    this.#busyUnits -= blocks * this.#blockUnits;
    this.#originPs += blocks * this.#numerator;
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/**
 * A clock whose period is an exact ratio of picoseconds, so that edges never drift: edge n lies at
 * floor(n × 10^6 / MHz) picoseconds, whatever n.
 */
export class Clock {
  readonly frequencyMHz: number;
  readonly #numeratorPs: number;
  readonly #denominator: number;
  readonly #reciprocal: number;
  /** Recent whole multiple of the denominator, and its exact picosecond: keeps products small. */
  #baseCycle = 0;
  #basePs = 0;

  /**
   * @param frequencyMHz a whole number of megahertz, 1 to 100,000
   * @throws RangeError for any other frequency
   */
  constructor(frequencyMHz: number) {
    if (!Number.isInteger(frequencyMHz) || frequencyMHz < 1 || frequencyMHz > 100_000) {
      throw new RangeError(`frequencyMHz ${frequencyMHz} is not a whole number from 1 to 100000`);
    }
    this.frequencyMHz = frequencyMHz;
    const divisor = greatestCommonDivisor(1_000_000, frequencyMHz);
    this.#numeratorPs = 1_000_000 / divisor;
    this.#denominator = frequencyMHz / divisor;
    this.#reciprocal = 1 / this.#denominator;
  }

  /** Picosecond of edge `cycle`: floor of the exact instant. */
  edgePs(cycle: number): number {
    const product = (cycle - this.#baseCycle) * this.#numeratorPs;
    if (product < 0 || product > 4e15) return this.#rebased(cycle);
    // A product with the reciprocal is cheaper than a quotient; it misses by one at most, as the remainder shows.
    const quotient = Math.floor(product * this.#reciprocal);
    const remainder = product - quotient * this.#denominator;
    if (remainder < 0) return this.#basePs + quotient - 1;
    return this.#basePs + (remainder < this.#denominator ? quotient : quotient + 1);
  }

  /** The first edge at or after `ps`. */
  cycleAtOrAfter(ps: number): number {
    let offset = ps - this.#basePs;
    if (offset < 0 || offset * this.#denominator > 4e15) {
      this.#rebaseTo(Math.floor(ps / this.#numeratorPs));
      offset = ps - this.#basePs;
    }
    return this.#baseCycle + Math.ceil((offset * this.#denominator) / this.#numeratorPs);
  }

  /** The first edge strictly after `ps`. */
  cycleAfter(ps: number): number {
    return this.cycleAtOrAfter(ps + 1);
  }

  /** Whole cycles that begin in [0, ps). */
  cyclesElapsed(ps: number): number {
    return this.cycleAtOrAfter(ps);
  }

  /** Duration of `cycles`, rounded up to a whole picosecond. */
  durationPs(cycles: number): number {
    return Math.ceil((cycles * this.#numeratorPs) / this.#denominator);
  }

  #rebased(cycle: number): number {
    this.#rebaseTo(Math.floor(cycle / this.#denominator));
    return this.edgePs(cycle);
  }

  #rebaseTo(wholeBlocks: number): void {
    this.#baseCycle = wholeBlocks * this.#denominator;
    this.#basePs = wholeBlocks * this.#numeratorPs;
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

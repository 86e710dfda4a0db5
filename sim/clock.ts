/** A clock whose period is an exact ratio of picoseconds, so that edges never drift: edge n lies at floor(n × 10^6 / MHz) picoseconds, for any n. */
import { type Cycles, type Picoseconds, psPerUs } from '../base/index.ts';

/**
 * Cycles for which one product of floats suffices. Exact instants are whole multiples of one step, and so are exact cycles of
 * instants. After three roundings, a product of at most 2^30 cycles and 10^6 steps is wrong by less than half a step; with half
 * a step added, it lies on the correct side of every whole number.
 */
const REACH_CYCLES = 2 ** 30;

export class Clock {
  readonly frequencyMHz: number;
  readonly #numeratorPs: Picoseconds;
  readonly #denominator: number;
  readonly #periodPs: Picoseconds = 0;
  readonly #cyclesPerPs: Picoseconds;
  /** Half of the least step between exact instants in picoseconds, and the complement of that to one between exact cycles. */
  readonly #halfStepPs: Picoseconds;
  readonly #roundUpCycles: number;

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
    this.#periodPs = this.#numeratorPs / this.#denominator;
    this.#cyclesPerPs = this.#denominator / this.#numeratorPs;
    this.#halfStepPs = 0.5 / this.#denominator;
    this.#roundUpCycles = 1 - 0.5 / this.#numeratorPs;
  }

  /** Picosecond of edge `cycle`, also in an earlier epoch (then it is negative): floor of the exact instant. */
  edgePs(cycle: Cycles): Picoseconds {
    if (cycle > REACH_CYCLES || cycle < -REACH_CYCLES) return this.#farEdgePs(cycle);
    return Math.floor(cycle * this.#periodPs + this.#halfStepPs);
  }

  /** {@link edgePs} of an edge in any epoch, exact also at 2^53 ps and more. */
  exactEdgePs(cycle: Cycles): bigint {
    const product = BigInt(cycle) * BigInt(psPerUs);
    const divisor = BigInt(this.frequencyMHz);
    const quotient = product / divisor;
    return product % divisor < 0n ? quotient - 1n : quotient;
  }

  /** The first edge at or after `ps`, also in an earlier epoch (then it may be negative). */
  cycleAtOrAfter(ps: Picoseconds): Cycles {
    const cycles = ps * this.#cyclesPerPs;
    if (cycles > REACH_CYCLES || cycles < 0) return this.#farCycleAtOrAfter(ps);
    return (cycles + this.#roundUpCycles) | 0;
  }

  /** The first edge strictly after `ps`. */
  cycleAfter(ps: Picoseconds): Cycles {
    return this.cycleAtOrAfter(ps + 1);
  }

  /** Whole cycles that begin in [0, ps). */
  cyclesElapsed(ps: Picoseconds): Cycles {
    return this.cycleAtOrAfter(ps);
  }

  /** Duration of `cycles`, rounded up to a whole picosecond. */
  durationPs(cycles: Cycles): Picoseconds {
    return Math.ceil((cycles * this.#numeratorPs) / this.#denominator);
  }

  /** Cycles of `ps`, a whole number of microseconds: exact. */
  cyclesOf(ps: Picoseconds): Cycles {
    return (ps / psPerUs) * this.frequencyMHz;
  }

  /** Counts from a whole multiple of the denominator, whose picosecond is exact. */
  #farEdgePs(cycle: Cycles): Picoseconds {
    const blocks = Math.floor(cycle / this.#denominator);
    return blocks * this.#numeratorPs + this.edgePs(cycle - blocks * this.#denominator);
  }

  #farCycleAtOrAfter(ps: Picoseconds): Cycles {
    const blocks = Math.floor(ps / this.#numeratorPs);
    return blocks * this.#denominator + this.cycleAtOrAfter(ps - blocks * this.#numeratorPs);
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

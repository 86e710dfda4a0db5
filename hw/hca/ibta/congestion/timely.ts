/**
 * TIMELY: the rate of one QP by the trend of its round trips. Source: TIMELY, algorithm 1.
 *
 *     d ← (1 - a) d + a (rtt - previous),  gradient = d / minRTT
 *     rtt < T_low      R += δ
 *     rtt > T_high     R ×= 1 - β (1 - T_high / rtt)
 *     gradient ≤ 0     R += δ, from the fifth time in a row 5 δ
 *     gradient > 0     R ×= 1 - β gradient
 *
 * A round trip is that of a message: from the last packet leaving the port to its acknowledgement, with what the receiver waits
 * before it acknowledges. READs have none. The rate changes once per round trip: a message that was sent before the last change
 * says nothing of the new rate (as in HPCC's simulator, rdma-hw.cc, HandleAckTimely).
 */
import { type Picoseconds, psPerUs } from '../../../../base/index.ts';
import type { TimelyConfig } from './parameters.ts';
import type { RateControl } from './rate-control.ts';

/** Increases in a row with a gradient of at most 0 from which each adds this many times as much. */
const HYPERACTIVE_FROM = 5;
const HYPERACTIVE_STEPS = 5;

export class Timely implements RateControl {
  readonly #config: TimelyConfig;
  readonly #lineRateMbps: number;
  #currentMbps: number;
  /** The last round trip, and the smoothed difference of two. */
  #roundTripPs: Picoseconds = 0;
  #differencePs: Picoseconds = 0;
  #isFirst = true;
  /** Instant of the last change. */
  #changedPs = Number.NEGATIVE_INFINITY;
  /** Increases in a row by the trend. */
  #increases = 0;

  constructor(config: TimelyConfig, lineRateMbps: number) {
    this.#config = config;
    this.#lineRateMbps = lineRateMbps;
    this.#currentMbps = lineRateMbps;
  }

  /** A round trip. */
  onFeedback(atPs: Picoseconds, roundTripPs: Picoseconds): void {
    if (atPs - roundTripPs < this.#changedPs) return;
    this.#changedPs = atPs;
    const { minRateMbps } = this.#config;
    const gradient = this.#gradientWith(roundTripPs);
    const rateMbps = this.#next(roundTripPs, gradient);
    this.#currentMbps = Math.min(this.#lineRateMbps, Math.max(minRateMbps, rateMbps));
  }

  onSent(): void {}

  rateMbps(): number {
    return this.#currentMbps;
  }

  #gradientWith(roundTripPs: Picoseconds): number {
    const { weightPer1000, minRoundTripUs } = this.#config;
    const weight = weightPer1000 / 1000;
    const difference = this.#isFirst ? 0 : roundTripPs - this.#roundTripPs;
    this.#isFirst = false;
    this.#roundTripPs = roundTripPs;
    this.#differencePs = (1 - weight) * this.#differencePs + weight * difference;
    return this.#differencePs / (minRoundTripUs * psPerUs);
  }

  #next(roundTripPs: Picoseconds, gradient: number): number {
    const { lowUs, highUs, decreasePer1000, additiveIncreaseMbps } = this.#config;
    const decrease = decreasePer1000 / 1000;
    const highPs = highUs * psPerUs;
    const isByTrend = roundTripPs >= lowUs * psPerUs && roundTripPs <= highPs && gradient <= 0;
    this.#increases = isByTrend ? this.#increases + 1 : 0;
    if (roundTripPs < lowUs * psPerUs) return this.#currentMbps + additiveIncreaseMbps;
    if (roundTripPs > highPs) return this.#currentMbps * (1 - decrease * (1 - highPs / roundTripPs));
    if (gradient > 0) return this.#currentMbps * (1 - decrease * gradient);
    const steps = this.#increases >= HYPERACTIVE_FROM ? HYPERACTIVE_STEPS : 1;
    return this.#currentMbps + steps * additiveIncreaseMbps;
  }

  rebase(ps: Picoseconds): void {
    this.#changedPs -= ps;
  }
}

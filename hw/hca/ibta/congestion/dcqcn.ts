/**
 * DCQCN's reaction point: the rate of one QP. The names in capitals are those of the paper. Source: DCQCN.
 *
 *     CNP            R_T ← R_C,  R_C ← R_C (1 - α/2),  α ← (1 - g) α + g;  T, BC and both timers begin again
 *     alpha timer    α ← (1 - g) α
 *     T or BC + 1    max(T, BC) < F   fast recovery                                  R_C ← (R_T + R_C) / 2
 *                    min(T, BC) > F   hyper increase     R_T += R_HAI (min(T, BC) - F),   and the same
 *                    else             additive increase  R_T += R_AI,                     and the same
 *
 * R_T is at most the line rate. A rate within {@link RESOLUTION_MBPS} of it is the line rate: the QP is not limited any more, and T and
 * BC rest until the next CNP, while alpha still decreases.
 *
 * Known difference: in cards from the ConnectX-4 on a CNP sets a flag, and the rate is reduced at most once per
 * rp_rate_reduce_monitor_period (NVIDIA's page on DCQCN parameters).
 */
import { type Picoseconds, psPerUs } from '../../../../base/index.ts';
import type { DcqcnConfig } from './parameters.ts';
import type { RateControl } from './rate-control.ts';

/** Registers of mlx5 hold rates in Mb/s. */
const RESOLUTION_MBPS = 1;
/** An alpha below it reduces no rate: 1 - alpha / 2 is 1. */
const ALPHA_MIN = 2 ** -53;

export class Dcqcn implements RateControl {
  readonly #config: DcqcnConfig;
  readonly #lineRateMbps: number;
  readonly #gain: number;
  /** R_C and R_T. */
  #currentMbps: number;
  #targetMbps: number;
  #alpha: number;
  /** Last instants at which alpha changed, and at which the timer of the rate expired or began. */
  #alphaChangedPs: Picoseconds;
  #timerBegunPs: Picoseconds;
  /** T and BC: expiries of the timer and of the byte counter since the last CNP; and bytes since the latter. */
  #timerSteps = 0;
  #byteSteps = 0;
  #bytes = 0;

  /** @param atPs the present */
  constructor(config: DcqcnConfig, lineRateMbps: number, atPs: Picoseconds) {
    this.#config = config;
    this.#lineRateMbps = lineRateMbps;
    this.#gain = config.gainPer1024 / 1024;
    this.#currentMbps = lineRateMbps;
    this.#targetMbps = lineRateMbps;
    this.#alpha = config.initialAlphaPer1024 / 1024;
    this.#alphaChangedPs = atPs;
    this.#timerBegunPs = atPs;
  }

  /** Alpha, between 0 and 1, as the next CNP would find it. */
  alphaAt(atPs: Picoseconds): number {
    this.#decreaseAlpha(atPs);
    return this.#alpha;
  }

  /** A CNP. */
  onFeedback(atPs: Picoseconds): void {
    this.#advance(atPs);
    this.#decreaseAlpha(atPs);
    const { minRateMbps } = this.#config;
    this.#targetMbps = this.#currentMbps;
    const reducedMbps = Math.max(minRateMbps, this.#currentMbps * (1 - this.#alpha / 2));
    this.#currentMbps = Math.min(this.#lineRateMbps, reducedMbps);
    this.#alpha = (1 - this.#gain) * this.#alpha + this.#gain;
    this.#alphaChangedPs = atPs;
    this.#timerBegunPs = atPs;
    this.#timerSteps = 0;
    this.#byteSteps = 0;
    this.#bytes = 0;
  }

  onSent(bytes: number, atPs: Picoseconds): void {
    this.#advance(atPs);
    if (!this.#isLimited) return;
    this.#bytes += bytes;
    const { byteCounter } = this.#config;
    for (; this.#bytes >= byteCounter; this.#bytes -= byteCounter) {
      this.#byteSteps++;
      this.#increase();
    }
  }

  rateMbps(atPs: Picoseconds): number {
    this.#advance(atPs);
    return this.#currentMbps;
  }

  get #isLimited(): boolean {
    return this.#currentMbps < this.#lineRateMbps;
  }

  /** Expiries of the timer up to `atPs`. */
  #advance(atPs: Picoseconds): void {
    const periodPs = this.#config.timerUs * psPerUs;
    while (this.#isLimited && atPs - this.#timerBegunPs >= periodPs) {
      this.#timerBegunPs += periodPs;
      this.#timerSteps++;
      this.#increase();
    }
  }

  #increase(): void {
    const { fastRecoverySteps: threshold, additiveIncreaseMbps, hyperIncreaseMbps } = this.#config;
    const most = Math.max(this.#timerSteps, this.#byteSteps);
    const least = Math.min(this.#timerSteps, this.#byteSteps);
    if (least > threshold) this.#targetMbps += hyperIncreaseMbps * (least - threshold);
    else if (most >= threshold) this.#targetMbps += additiveIncreaseMbps;
    this.#targetMbps = Math.min(this.#targetMbps, this.#lineRateMbps);
    const rateMbps = (this.#targetMbps + this.#currentMbps) / 2;
    this.#currentMbps = rateMbps > this.#lineRateMbps - RESOLUTION_MBPS ? this.#lineRateMbps : rateMbps;
  }

  /** Periods of the alpha timer up to `atPs`. */
  #decreaseAlpha(atPs: Picoseconds): void {
    const periodPs = this.#config.alphaPeriodUs * psPerUs;
    const periods = Math.floor((atPs - this.#alphaChangedPs) / periodPs);
    for (let left = periods; left > 0 && this.#alpha > 0; left--) {
      this.#alpha *= 1 - this.#gain;
      if (this.#alpha < ALPHA_MIN) this.#alpha = 0;
    }
    this.#alphaChangedPs += periods * periodPs;
  }

  rebase(ps: Picoseconds): void {
    this.#alphaChangedPs -= ps;
    this.#timerBegunPs -= ps;
  }
}

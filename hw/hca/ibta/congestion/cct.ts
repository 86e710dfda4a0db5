/**
 * The congestion control annex of InfiniBand: the injection rate of one QP by its index into the congestion control table. Sources:
 * IBTA vol 1, annex A10; Linux 6.1 drivers/infiniband/hw/hfi1/init.c (set_link_ipg, cca_timer_fn).
 *
 *     BECN          CCTI ← min(CCTI + CCTI_Increase, CCTI_Limit)
 *     CCTI_Timer    CCTI ← CCTI - 1, down to CCTI_Min; it runs while CCTI is above that
 *     packet        then a pause of its own time × multiplier / 2^shift, both of the table's entry CCTI
 *
 * The table rises linearly: entry i has the multiplier i × {@link CctConfig.multiplierStep}, at most {@link MULTIPLIER_MAX}.
 *
 * Known differences: each QP has an index and a timer of its own (QP-based control), whereas hfi1 has one for each service level;
 * the table is not software's to write.
 */
import type { Picoseconds } from '../../../../base/index.ts';
import type { CctConfig } from './parameters.ts';
import type { RateControl } from './rate-control.ts';

/** CCTI_Timer counts 1.024 us. */
const TIMER_UNIT_PS = 1_024_000;
/** CCT_Multiplier has 14 bits. */
const MULTIPLIER_MAX = 0x3fff;

export class Cct implements RateControl {
  readonly #config: CctConfig;
  readonly #lineRateMbps: number;
  /** CCTI, and the last instant at which its timer began or expired. */
  #index: number;
  #timerBegunPs: Picoseconds = 0;

  constructor(config: CctConfig, lineRateMbps: number) {
    this.#config = config;
    this.#lineRateMbps = lineRateMbps;
    this.#index = config.min;
  }

  /** CCTI. */
  indexAt(atPs: Picoseconds): number {
    this.#advance(atPs);
    return this.#index;
  }

  /** A BECN. */
  onFeedback(atPs: Picoseconds): void {
    this.#advance(atPs);
    const { increase, limit, min } = this.#config;
    if (this.#index === min) this.#timerBegunPs = atPs;
    this.#index = Math.min(this.#index + increase, limit);
  }

  onSent(): void {}

  /** A packet and the pause after it take 1 + multiplier / 2^shift times as long as the packet alone. */
  rateMbps(atPs: Picoseconds): number {
    this.#advance(atPs);
    const { multiplierStep, shift } = this.#config;
    const multiplier = Math.min(this.#index * multiplierStep, MULTIPLIER_MAX);
    return this.#lineRateMbps / (1 + multiplier / 2 ** shift);
  }

  /** Expiries of the timer up to `atPs`. */
  #advance(atPs: Picoseconds): void {
    const { timer, min } = this.#config;
    const above = this.#index - min;
    if (above === 0) return;
    const periodPs = timer * TIMER_UNIT_PS;
    const expiries = Math.min(Math.floor((atPs - this.#timerBegunPs) / periodPs), above);
    this.#index -= expiries;
    this.#timerBegunPs += expiries * periodPs;
  }

  rebase(ps: Picoseconds): void {
    this.#timerBegunPs -= ps;
  }
}

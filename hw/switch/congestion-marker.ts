/**
 * Marks of congestion by RED on the present length of an output's queue (RFC 3168, 5; Floyd and Jacobson 1993, without the average):
 *
 *     probability 0 below Kmin, Pmax (q - Kmin) / (Kmax - Kmin) up to Kmax, 1 above
 *
 * Only frames whose sender supports it are marked; no other frame is dropped for it. Chance depends on the machine's seed alone.
 */
import { Random } from '../../sim/index.ts';
import { markCongestion, takesCongestionMark } from '../../wire/index.ts';
import type { EthernetSwitchConfig } from './ethernet-parameters.ts';

export class CongestionMarker {
  readonly #config: Pick<
    EthernetSwitchConfig,
    'marksCongestion' | 'ecnMinBytes' | 'ecnMaxBytes' | 'ecnProbabilityPercent'
  >;
  readonly #random: Random;
  /** Frames marked so far, and the shortest queue in which one was. */
  markedCount = 0;
  shortestBytes = Number.POSITIVE_INFINITY;

  /** @param stream names the output, so that each draws independent numbers */
  constructor(config: EthernetSwitchConfig, seed: number, stream: string) {
    this.#config = config;
    this.#random = new Random(seed, `ecn.${stream}`);
  }

  /** Probability of a mark in a queue of this length. */
  probabilityIn(queueBytes: number): number {
    const { ecnMinBytes, ecnMaxBytes, ecnProbabilityPercent } = this.#config;
    if (queueBytes > ecnMaxBytes) return 1;
    if (queueBytes <= ecnMinBytes) return 0;
    return ((ecnProbabilityPercent / 100) * (queueBytes - ecnMinBytes)) / (ecnMaxBytes - ecnMinBytes);
  }

  /** Decides about a frame that joins a queue of this length, and marks it. */
  passes(frame: Uint8Array, frameBytes: number, queueBytes: number): void {
    if (!this.#config.marksCongestion) return;
    const probability = this.probabilityIn(queueBytes);
    if (probability === 0 || !takesCongestionMark(frame, 0, frameBytes)) return;
    if (probability < 1 && !this.#random.chance(probability)) return;
    markCongestion(frame, 0, frameBytes);
    this.markedCount++;
    this.shortestBytes = Math.min(this.shortestBytes, queueBytes);
  }
}

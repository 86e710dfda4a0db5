/**
 * Faults of an Ethernet cable: by frame number (frames count from 1 as they leave this port, so that a fault means the
 * same frame in every run), and by chance under a seed.
 */

import { assertRange, type Picoseconds } from '../base/index.ts';
import { Random } from '../sim/index.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';
import { FaultRanges } from './fault-ranges.ts';
import { FAULT_DELAY_PS_MAX } from './wire-faults.ts';

/** Outcome of a frame on the cable. */
export const OUTCOME_ARRIVES = 0;
export const OUTCOME_LOST = 1;
export const OUTCOME_CORRUPTED = 2;

const MILLION = 1_000_000;

export class EthernetFaults {
  /** The next frame with a planned fault, or Infinity. */
  nextFrame = Number.POSITIVE_INFINITY;
  readonly #lost = new FaultRanges();
  readonly #corrupted = new FaultRanges();
  readonly #delaysPs = new FaultRanges();
  readonly #random: Random;
  readonly #lossPerMillion: number;
  readonly #corruptionPerMillion: number;
  /** Whether chance has a say; without it no lots are drawn. */
  readonly #isChancy: boolean;

  /** @param stream names the port, so that the two directions draw their own lots */
  constructor(config: EthernetConfig, seed: number, stream: string) {
    this.#random = new Random(seed, `ethernet.${stream}`);
    this.#lossPerMillion = config.lossPerMillion;
    this.#corruptionPerMillion = config.corruptionPerMillion;
    this.#isChancy = config.lossPerMillion > 0 || config.corruptionPerMillion > 0;
  }

  /** The frames from `first` to `last` vanish. */
  dropFrames(first: number, last = first): void {
    this.#lost.add(first, last, 1);
    this.#findNext();
  }

  /** The frames from `first` to `last` arrive with a wrong frame check sequence. */
  corruptFrames(first: number, last = first): void {
    this.#corrupted.add(first, last, 1);
    this.#findNext();
  }

  /** Holds the link before each of these frames, and so everything behind it: a link keeps the order of frames. */
  delayFrames(delayPs: Picoseconds, first: number, last = first): void {
    this.#delaysPs.add(first, last, assertRange('delayPs', delayPs, 0, FAULT_DELAY_PS_MAX));
    this.#findNext();
  }

  delayPs(frame: number): number {
    return this.#delaysPs.valueOf(frame);
  }

  /** Outcome of this frame; asked once for each, in their order. */
  outcomeOf(frame: number): number {
    let outcome = OUTCOME_ARRIVES;
    if (this.#isChancy) {
      const lot = this.#random.below(MILLION);
      if (lot < this.#lossPerMillion) outcome = OUTCOME_LOST;
      else if (this.#random.below(MILLION) < this.#corruptionPerMillion) outcome = OUTCOME_CORRUPTED;
    }
    if (frame < this.nextFrame) return outcome;
    if (this.#corrupted.valueOf(frame) !== 0) outcome = OUTCOME_CORRUPTED;
    if (this.#lost.valueOf(frame) !== 0) outcome = OUTCOME_LOST;
    this.#passed(frame);
    return outcome;
  }

  #passed(frame: number): void {
    this.#lost.passed(frame);
    this.#corrupted.passed(frame);
    this.#delaysPs.passed(frame);
    this.#findNext();
  }

  #findNext(): void {
    this.nextFrame = Math.min(this.#lost.next, this.#corrupted.next, this.#delaysPs.next);
  }
}

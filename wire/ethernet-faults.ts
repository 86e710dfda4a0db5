/**
 * Faults of an Ethernet cable: by frame number (frames count from 1 as they leave this port, so that a fault means the
 * same frame in every run), and by chance under a seed.
 */
import { assertRange } from '../base/assert.ts';
import { Random } from '../sim/random.ts';
import type { EthernetConfig } from './ethernet-parameters.ts';

/** What becomes of a frame on the cable. */
export const FATE_ARRIVES = 0;
export const FATE_LOST = 1;
export const FATE_CORRUPTED = 2;

const NEVER = Number.POSITIVE_INFINITY;
const MILLION = 1_000_000;

export class EthernetFaults {
  /** The next frame with a planned fault, or Infinity. */
  nextFrame = NEVER;
  readonly #lost = new Set<number>();
  readonly #corrupted = new Set<number>();
  readonly #delaysPs = new Map<number, number>();
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

  /** The nth frame vanishes. */
  dropFrame(nth: number): void {
    this.#lost.add(assertRange('dropFrame nth', nth, 1, Number.MAX_SAFE_INTEGER));
    this.#findNext(0);
  }

  /** The nth frame arrives with a wrong frame check sequence. */
  corruptFrame(nth: number): void {
    this.#corrupted.add(assertRange('corruptFrame nth', nth, 1, Number.MAX_SAFE_INTEGER));
    this.#findNext(0);
  }

  /** Holds the link before the nth frame, and so everything behind it: a link keeps the order of frames. */
  delayFrame(nth: number, delayPs: number): void {
    assertRange('delayFrame nth', nth, 1, Number.MAX_SAFE_INTEGER);
    this.#delaysPs.set(nth, assertRange('delayPs', delayPs, 0, 1e15));
    this.#findNext(0);
  }

  delayPs(frame: number): number {
    return this.#delaysPs.get(frame) ?? 0;
  }

  /** What becomes of this frame; asked once for each, in their order. */
  fateOf(frame: number): number {
    let fate = FATE_ARRIVES;
    if (this.#isChancy) {
      const lot = this.#random.below(MILLION);
      if (lot < this.#lossPerMillion) fate = FATE_LOST;
      else if (this.#random.below(MILLION) < this.#corruptionPerMillion) fate = FATE_CORRUPTED;
    }
    if (frame !== this.nextFrame) return fate;
    if (this.#corrupted.has(frame)) fate = FATE_CORRUPTED;
    if (this.#lost.has(frame)) fate = FATE_LOST;
    this.#forget(frame);
    return fate;
  }

  #forget(frame: number): void {
    this.#lost.delete(frame);
    this.#corrupted.delete(frame);
    this.#delaysPs.delete(frame);
    this.#findNext(frame);
  }

  #findNext(passedFrame: number): void {
    this.nextFrame = NEVER;
    for (const frame of [...this.#lost, ...this.#corrupted, ...this.#delaysPs.keys()]) {
      if (frame > passedFrame && frame < this.nextFrame) this.nextFrame = frame;
    }
  }
}

/**
 * CUBIC (RFC 9438): after a loss the window is 0.7 of its former size, grows fast towards that, slowly around it, and
 * fast again beyond it. Where NewReno would be faster, it grows as NewReno does.
 *
 *     W(t) = 0.4 · (t − K)³ + W_max in segments, K = ∛((W_max − W_after) / 0.4) in seconds
 */
import { psPerSecond } from '../../base/index.ts';
import type { WindowGrowth } from './congestion.ts';

/** RFC 9438, 4.6, 4.1, 4.3 and 4.7. */
const BETA = 0.7;
const GROWTH = 0.4;
const RENO_GROWTH = (3 * (1 - BETA)) / (1 + BETA);
const FAST_CONVERGENCE = (1 + BETA) / 2;
/** The target is at most this much above the window (RFC 9438, 4.2). */
const TARGET_MAX = 1.5;
const LEAST_SEGMENTS = 2;

export class Cubic implements WindowGrowth {
  readonly #segmentBytes: number;
  /** Windows in segments: at the last loss, and what NewReno would have now. */
  #lossWindow = 0;
  #renoWindow = 0;
  #priorWindow = 0;
  /** Beginning of congestion avoidance; before it −1. */
  #epochPs = -1;
  #inflectionSeconds = 0;

  constructor(segmentBytes: number) {
    this.#segmentBytes = segmentBytes;
  }

  /** A new epoch of the simulated time begins `ps` later: see TimeKeeper. */
  rebase(ps: number): void {
    if (this.#epochPs !== -1) this.#epochPs -= ps;
  }

  grow(windowBytes: number, ackedBytes: number, nowPs: number, roundTripPs: number): number {
    const window = windowBytes / this.#segmentBytes;
    if (this.#epochPs === -1) this.#beginEpoch(window, nowPs);
    const seconds = (nowPs - this.#epochPs) / psPerSecond;
    const acked = ackedBytes / this.#segmentBytes;
    const growth = this.#renoWindow >= this.#priorWindow ? 1 : RENO_GROWTH;
    this.#renoWindow += (growth * acked) / window;
    const present = this.#windowAt(seconds);
    if (present < this.#renoWindow)
      return Math.max(windowBytes, Math.floor(this.#renoWindow * this.#segmentBytes));
    const target = this.#windowAt(seconds + roundTripPs / psPerSecond);
    const bounded = Math.min(Math.max(target, window), TARGET_MAX * window);
    return windowBytes + Math.floor(((bounded - window) / window) * ackedBytes);
  }

  afterLoss(_flightBytes: number, windowBytes: number): number {
    const window = windowBytes / this.#segmentBytes;
    this.#priorWindow = window;
    // Fast convergence: a window that has not reached the last one leaves room to others.
    this.#lossWindow = window < this.#lossWindow ? window * FAST_CONVERGENCE : window;
    this.#epochPs = -1;
    return Math.max(Math.floor(windowBytes * BETA), LEAST_SEGMENTS * this.#segmentBytes);
  }

  /** RFC 9438, 4.8: the next growth begins at its own window. */
  afterTimeout(flightBytes: number, windowBytes: number): number {
    const threshold = this.afterLoss(flightBytes, windowBytes);
    this.#lossWindow = 0;
    return threshold;
  }

  #beginEpoch(window: number, nowPs: number): void {
    this.#epochPs = nowPs;
    this.#renoWindow = window;
    if (this.#lossWindow < window) this.#lossWindow = window;
    this.#inflectionSeconds = Math.cbrt((this.#lossWindow - window) / GROWTH);
  }

  #windowAt(seconds: number): number {
    return GROWTH * (seconds - this.#inflectionSeconds) ** 3 + this.#lossWindow;
  }
}

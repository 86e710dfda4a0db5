/**
 * Checks the rings at intervals: memory only, outside of any thread, so that it costs nothing without a fault.
 *
 *     every interval ─┬─ a frame waited at the last check and still does, and no thread polls ──► a lost interrupt: poll
 *                     └─ frames to be sent, none sent for some checks ──► the ring is hung: reset the adapter
 *
 * After some checks without a finding it stops until the device is used again, so that a machine whose threads all wait in vain
 * ends with a DeadlockError. Source: Linux dev_watchdog (transmit); e1000e's watchdog task raises the interrupt itself (ICS).
 */
import { usToPs } from '../../base/index.ts';
import type { NetDriverConfig } from '../parameters.ts';
import type { NetPlatform } from '../platform.ts';

/** Ring state that the watchdog checks. */
export interface Watched {
  /** Position of the oldest frame on a ring that waits to be removed; -1 if the ring is empty or a thread is polling. */
  readonly waitingMark: number;
  /** Frames given to the device and not sent yet, and a number that changes whenever a frame is sent. */
  readonly unsentFrames: number;
  readonly sentMark: number;
  interruptLost(): void;
  transmitHung(): void;
}

export class Watchdog {
  readonly #platform: NetPlatform;
  readonly #config: NetDriverConfig;
  readonly #watched: Watched;
  #isRunning = false;
  #isStopped = true;
  #activity = 0;
  #seenActivity = 0;
  #idleTicks = 0;
  #lastWaiting = -1;
  #lastSent = 0;
  #hungTicks = 0;

  constructor(platform: NetPlatform, config: NetDriverConfig, watched: Watched) {
    this.#platform = platform;
    this.#config = config;
    this.#watched = watched;
  }

  start(): void {
    this.#isStopped = false;
    this.used();
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** The device was used: resumes the checks if they had stopped. */
  used(): void {
    this.#activity++;
    if (!this.#isRunning && !this.#isStopped) this.#arm();
  }

  #arm(): void {
    this.#isRunning = true;
    this.#platform.startTimer(usToPs(this.#config.watchdogIntervalUs), () => this.#due());
  }

  #due(): void {
    this.#isRunning = false;
    if (this.#isStopped) return;
    this.#check();
    const isIdle = this.#activity === this.#seenActivity && this.#watched.unsentFrames === 0;
    this.#idleTicks = isIdle ? this.#idleTicks + 1 : 0;
    this.#seenActivity = this.#activity;
    if (this.#idleTicks < this.#config.watchdogIdleTicks) this.#arm();
  }

  #check(): void {
    const { waitingMark, unsentFrames, sentMark } = this.#watched;
    if (waitingMark >= 0 && waitingMark === this.#lastWaiting) {
      this.#lastWaiting = -1;
      this.#activity++;
      this.#watched.interruptLost();
      return;
    }
    this.#lastWaiting = waitingMark;
    const isStill = unsentFrames > 0 && sentMark === this.#lastSent;
    this.#lastSent = sentMark;
    this.#hungTicks = isStill ? this.#hungTicks + 1 : 0;
    if (this.#hungTicks < this.#config.transmitHangTicks) return;
    this.#hungTicks = 0;
    this.#watched.transmitHung();
  }
}

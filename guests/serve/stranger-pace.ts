/**
 * Whether simulated time must stand still because the third-party endpoint has not read the frames from the cable. If time
 * continued, the device would drop frames that a real card's peer would have read, and retransmit all of them.
 *
 *     bytes wait    0 ……… bound ……………………………………… a MiB
 *                   time passes │ time stands still       │ frames are dropped
 *                               └ for holdMs at most: then it passes until at most the bound waits
 *
 * So a third-party endpoint that reads nothing delays the device once; one that reads delays it while it reads.
 */
import type { ServingConfig } from './parameters.ts';

/** Numbers and durations of the times that simulated time stood still for a third-party endpoint. */
export interface StrangerPaceCounters {
  holds: number;
  /** Number of these times that ended although bytes still waited. */
  expiredHolds: number;
  heldMs: number;
}

export class StrangerPace {
  readonly counters: StrangerPaceCounters = { holds: 0, expiredHolds: 0, heldMs: 0 };
  readonly #boundBytes: number;
  readonly #holdMs: number;
  #isHolding = false;
  /** The last hold has expired, and the bytes still wait. */
  #hasExpired = false;
  /** Wall time at which the hold began, and the time up to which {@link counters} includes it. */
  #beganMs = 0;
  #countedMs = 0;

  constructor({ strangerWaitingBytes, strangerHoldMs }: ServingConfig) {
    this.#boundBytes = strangerWaitingBytes;
    this.#holdMs = strangerHoldMs;
  }

  /** Milliseconds for which time must stand still while this many bytes wait; 0 if it may pass. */
  holdMs(waitingBytes: number, nowMs: number): number {
    if (this.#isHolding) {
      this.counters.heldMs += nowMs - this.#countedMs;
      this.#countedMs = nowMs;
    }
    if (waitingBytes <= this.#boundBytes) {
      this.#isHolding = false;
      this.#hasExpired = false;
      return 0;
    }
    if (this.#hasExpired) return 0;
    if (!this.#isHolding) this.#begin(nowMs);
    const leftMs = this.#beganMs + this.#holdMs - nowMs;
    if (leftMs > 0) return leftMs;
    this.#isHolding = false;
    this.#hasExpired = true;
    this.counters.expiredHolds++;
    return 0;
  }

  #begin(nowMs: number): void {
    this.#isHolding = true;
    this.#beganMs = nowMs;
    this.#countedMs = nowMs;
    this.counters.holds++;
  }
}

/**
 * Whether simulated time is to stand still since the third-party endpoint at the end of the cable has not read what came out of it. A device whose
 * time runs on would drop frames that a real card's peer has long taken, and send all of them again.
 *
 *     bytes wait    0 ……… bound ……………………………………… a MiB
 *                   time passes │ time stands still       │ frames are dropped
 *                               └ for holdMs at most: then it passes until no more than the bound wait
 *
 * So a third-party endpoint that reads nothing holds the device up once; one that reads holds it up for as long as it takes to read.
 */
import type { ServingConfig } from './parameters.ts';

/** How often and for how long time stood still for a third-party endpoint. */
export interface StrangerPaceCounters {
  holds: number;
  /** Of these, how many ended although the bytes still waited. */
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
  /** Wall time at which the hold began, and to which it is in {@link counters}. */
  #beganMs = 0;
  #countedMs = 0;

  constructor({ strangerWaitingBytes, strangerHoldMs }: ServingConfig) {
    this.#boundBytes = strangerWaitingBytes;
    this.#holdMs = strangerHoldMs;
  }

  /** Milliseconds for which time is to stand still while so many bytes wait; 0 when it may pass. */
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

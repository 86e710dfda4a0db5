/**
 * Congestion control: slow start, congestion avoidance, fast retransmit and fast recovery. Source: RFC 5681; RFC 6582 (NewReno) for partial
 * acknowledgements, or RFC 6675 where the peer reports what it has received. The growth in avoidance is NewReno's or CUBIC's.
 *
 *     slow start ── window ≥ threshold ──► avoidance
 *        ▲  └────── 3 duplicates ──► recovery ── all of it acknowledged ──► avoidance
 *        └───────── timeout ────────────┘
 */
import { isBefore } from './sequence.ts';

/** Growth of the window in congestion avoidance, and the threshold after a loss. */
export interface WindowGrowth {
  /** @returns the window after `ackedBytes` were acknowledged */
  grow(windowBytes: number, ackedBytes: number, nowPs: number, roundTripPs: number): number;
  /** @returns the threshold after a loss */
  afterLoss(flightBytes: number, windowBytes: number): number;
  /** @returns the threshold after a time-out */
  afterTimeout(flightBytes: number, windowBytes: number): number;
  rebase(ps: number): void;
}

/** RFC 5681, 3.1: a segment a round trip; half of the flight after a loss. */
export class NewReno implements WindowGrowth {
  readonly #segmentBytes: number;

  constructor(segmentBytes: number) {
    this.#segmentBytes = segmentBytes;
  }

  grow(windowBytes: number): number {
    const segment = this.#segmentBytes;
    return windowBytes + Math.max(1, Math.floor((segment * segment) / windowBytes));
  }

  afterLoss(flightBytes: number): number {
    return Math.max(Math.floor(flightBytes / 2), 2 * this.#segmentBytes);
  }

  afterTimeout(flightBytes: number): number {
    return this.afterLoss(flightBytes);
  }

  rebase(): void {}
}

export class Congestion {
  /** Bytes that may be in flight. */
  windowBytes: number;
  thresholdBytes = Number.POSITIVE_INFINITY;
  isRecovering = false;
  /** Recovery ends when this is acknowledged. After a time-out none begins before (RFC 6582, 3.2; RFC 6675, 5.1). */
  #recoverTo = 0;
  #isPastTimeout = false;
  readonly #segmentBytes: number;
  readonly #growth: WindowGrowth;
  /** Whether the sender knows which segments have arrived: duplicates then do not widen the window. */
  readonly #hasSack: boolean;

  constructor(
    segmentBytes: number,
    initialSegments: number,
    growth: WindowGrowth = new NewReno(segmentBytes),
    hasSack = false,
  ) {
    this.#segmentBytes = segmentBytes;
    this.#growth = growth;
    this.#hasSack = hasSack;
    this.windowBytes = segmentBytes * initialSegments;
  }

  /** Something new was acknowledged. @returns true when the next lost segment should be sent again at once */
  acknowledged(bytes: number, acknowledgement: number, nowPs = 0, roundTripPs = 0): boolean {
    const segment = this.#segmentBytes;
    if (this.#isPastTimeout && !isBefore(acknowledgement, this.#recoverTo)) this.#isPastTimeout = false;
    if (this.isRecovering) {
      if (!isBefore(acknowledgement, this.#recoverTo)) {
        this.isRecovering = false;
        this.windowBytes = this.thresholdBytes;
        return false;
      }
      if (!this.#hasSack) this.windowBytes = Math.max(this.windowBytes - bytes + segment, segment);
      return true;
    }
    if (this.windowBytes < this.thresholdBytes) this.windowBytes += Math.min(bytes, segment);
    else this.windowBytes = this.#growth.grow(this.windowBytes, bytes, nowPs, roundTripPs);
    return false;
  }

  /** The threshold number of duplicates was reached: a segment must be lost. @returns false if its loss is already known, or was made good by a time-out */
  lost(flightBytes: number, sentTo: number, duplicates: number): boolean {
    if (this.isRecovering || this.#isPastTimeout) return false;
    this.isRecovering = true;
    this.#recoverTo = sentTo;
    this.thresholdBytes = this.#growth.afterLoss(flightBytes, this.windowBytes);
    this.windowBytes = this.thresholdBytes + (this.#hasSack ? 0 : duplicates * this.#segmentBytes);
    return true;
  }

  /** One more duplicate while recovering: one more segment has left the network. */
  duplicate(): void {
    if (this.isRecovering && !this.#hasSack) this.windowBytes += this.#segmentBytes;
  }

  /**
   * The retransmission timer has expired, for the first time for these data or again; then the threshold stays (RFC 5681, 3.1).
   * @param sentTo end of what has been sent
   */
  timedOut(flightBytes: number, sentTo: number, isFirst: boolean): void {
    if (isFirst) this.thresholdBytes = this.#growth.afterTimeout(flightBytes, this.windowBytes);
    this.windowBytes = this.#segmentBytes;
    this.isRecovering = false;
    this.#recoverTo = sentTo;
    this.#isPastTimeout = true;
  }

  rebase(ps: number): void {
    this.#growth.rebase(ps);
  }
}

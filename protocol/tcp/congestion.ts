/**
 * Congestion control: slow start, congestion avoidance, fast retransmit and fast recovery. Source: RFC 5681, and
 * RFC 6582 (NewReno) for partial acknowledgements.
 *
 *     slow start ── window ≥ threshold ──► avoidance
 *        ▲  └────── 3 duplicates ──► recovery ── all of it acknowledged ──► avoidance
 *        └───────── timeout ────────────┘
 */
import { isBefore } from './sequence.ts';

export class Congestion {
  /** Bytes that may be in flight. */
  windowBytes: number;
  thresholdBytes = Number.POSITIVE_INFINITY;
  isRecovering = false;
  /** Recovery ends when this is acknowledged. */
  #recoverTo = 0;
  #segmentBytes: number;

  constructor(segmentBytes: number, initialSegments: number) {
    this.#segmentBytes = segmentBytes;
    this.windowBytes = segmentBytes * initialSegments;
  }

  /** Something new was acknowledged. @returns true when the next lost segment should be sent again at once */
  acknowledged(bytes: number, acknowledgement: number): boolean {
    const segment = this.#segmentBytes;
    if (this.isRecovering) {
      if (!isBefore(acknowledgement, this.#recoverTo)) {
        this.isRecovering = false;
        this.windowBytes = this.thresholdBytes;
        return false;
      }
      this.windowBytes = Math.max(this.windowBytes - bytes + segment, segment);
      return true;
    }
    if (this.windowBytes < this.thresholdBytes) this.windowBytes += Math.min(bytes, segment);
    else this.windowBytes += Math.max(1, Math.floor((segment * segment) / this.windowBytes));
    return false;
  }

  /** So many duplicates that a segment must be lost. @returns false when its loss is known already */
  lost(flightBytes: number, sentTo: number, duplicates: number): boolean {
    if (this.isRecovering) return false;
    this.isRecovering = true;
    this.#recoverTo = sentTo;
    this.thresholdBytes = Math.max(Math.floor(flightBytes / 2), 2 * this.#segmentBytes);
    this.windowBytes = this.thresholdBytes + duplicates * this.#segmentBytes;
    return true;
  }

  /** One more duplicate while recovering: one more segment has left the network. */
  duplicate(): void {
    if (this.isRecovering) this.windowBytes += this.#segmentBytes;
  }

  timedOut(flightBytes: number): void {
    this.thresholdBytes = Math.max(Math.floor(flightBytes / 2), 2 * this.#segmentBytes);
    this.windowBytes = this.#segmentBytes;
    this.isRecovering = false;
  }
}

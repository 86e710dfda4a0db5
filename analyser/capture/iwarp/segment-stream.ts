/**
 * One direction of a TCP connection put in order: segments that come twice or late, and bytes that a capture does not have.
 * Bounded: a gap that is not filled while so many bytes wait for it is given up.
 */
import type { CapturedSegment } from '../captured-packets.ts';

const WAITING_BYTES_MAX = 256 * 1024;

/** Place of a segment in its stream. */
type SegmentPlace = 'next' | 'early' | 'late' | 'repeated';

/** Bytes that are next in the stream. */
export interface NextBytes {
  readonly segment: CapturedSegment;
  /** From the first byte that is new. */
  readonly bytes: Uint8Array;
  /** Bytes after these that the capture cut off. */
  readonly cutBytes: number;
  /** The segment arrived before bytes that precede it. */
  readonly hasWaited: boolean;
  /** Bytes before these that were not seen. */
  readonly lostBytes: number;
}

export interface Ordered {
  readonly place: SegmentPlace;
  /** Bytes before the segment that have not been seen. */
  readonly gapBytes: number;
  readonly next: readonly NextBytes[];
}

/** Distance in sequence space, which counts around. */
const distanceOf = (sequence: number, other: number): number => (sequence - other) | 0;

export class SegmentStream {
  #nextSequence: number | undefined;
  /** Bytes up to here are there or wait. */
  #highest = 0;
  #waiting: CapturedSegment[] = [];

  take(segment: CapturedSegment): Ordered {
    const { sequence, payloadBytes } = segment;
    this.#nextSequence ??= sequence;
    const ahead = distanceOf(sequence, this.#nextSequence);
    const end = (sequence + payloadBytes) >>> 0;
    if (ahead > 0) {
      const isKnown = this.#waiting.some((other) => other.sequence === sequence);
      const gapBytes = isKnown ? 0 : Math.max(0, distanceOf(sequence, this.#end));
      if (!isKnown) this.#waiting.push(segment);
      this.#highest = end;
      const isFull = this.#waiting.reduce((sum, one) => sum + one.payloadBytes, 0) > WAITING_BYTES_MAX;
      return { place: isKnown ? 'repeated' : 'early', gapBytes, next: isFull ? this.#giveUp() : [] };
    }
    if (distanceOf(end, this.#nextSequence) <= 0) return { place: 'repeated', gapBytes: 0, next: [] };
    const place = this.#waiting.length > 0 ? 'late' : 'next';
    return { place, gapBytes: 0, next: [this.#advance(segment, false, 0), ...this.#drain()] };
  }

  get #end(): number {
    return this.#waiting.length === 0 ? this.#nextSequence! : this.#highest;
  }

  #advance(segment: CapturedSegment, hasWaited: boolean, lostBytes: number): NextBytes {
    const { sequence, payload, payloadBytes } = segment;
    const old = -distanceOf(sequence, this.#nextSequence!);
    this.#nextSequence = (sequence + payloadBytes) >>> 0;
    const bytes = payload.subarray(old, payloadBytes);
    return { segment, bytes, cutBytes: payloadBytes - Math.max(old, 0) - bytes.length, hasWaited, lostBytes };
  }

  /** Segments that waited and are next now. */
  #drain(): NextBytes[] {
    const next: NextBytes[] = [];
    this.#waiting.sort((left, right) => distanceOf(left.sequence, right.sequence));
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (distanceOf(first.sequence, this.#nextSequence!) > 0) break;
      this.#waiting.shift();
      const end = (first.sequence + first.payloadBytes) >>> 0;
      if (distanceOf(end, this.#nextSequence!) > 0) next.push(this.#advance(first, true, 0));
    }
    return next;
  }

  #giveUp(): NextBytes[] {
    this.#waiting.sort((left, right) => distanceOf(left.sequence, right.sequence));
    const first = this.#waiting.shift()!;
    const lostBytes = distanceOf(first.sequence, this.#nextSequence!);
    this.#nextSequence = first.sequence;
    return [this.#advance(first, true, lostBytes), ...this.#drain()];
  }
}

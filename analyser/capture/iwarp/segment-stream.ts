/**
 * Orders one direction of a TCP connection; handles duplicate and late segments and bytes missing from the capture.
 * Memory is bounded: a gap is abandoned if too many bytes wait for it. Each segment costs one search among the waiting
 * ones and is delivered once.
 */
import type { CapturedSegment } from '../captured-packets.ts';

/** Greatest number of bytes that may wait in one direction and in a whole capture; a segment costs memory beyond its payload. */
const WAITING_BYTES_MAX = 512 * 1024;
const WAITING_BYTES_OF_ALL_MAX = 64 * 1024 * 1024;
const SEGMENT_BYTES = 512;

/** Place of a segment in its stream. */
type SegmentPlace = 'next' | 'early' | 'late' | 'repeated';

/** The next bytes of the stream. */
export interface NextBytes {
  readonly segment: CapturedSegment;
  /** Bytes from the first new one on. */
  readonly bytes: Uint8Array;
  /** Bytes after these that the capture cut. */
  readonly cutBytes: number;
  /** The segment arrived before bytes that precede it. */
  readonly hasWaited: boolean;
  /** Unseen bytes before these. */
  readonly lostBytes: number;
}

export interface Ordered {
  readonly place: SegmentPlace;
  /** Unseen bytes before the segment. */
  readonly gapBytes: number;
  readonly next: readonly NextBytes[];
}

/** Bytes that wait in all directions of a capture. */
export class WaitingBytes {
  bytes = 0;

  get isFull(): boolean {
    return this.bytes > WAITING_BYTES_OF_ALL_MAX;
  }
}

/** Distance in the circular sequence space. */
const distanceOf = (sequence: number, other: number): number => (sequence - other) | 0;

const costOf = ({ payloadBytes }: CapturedSegment): number => SEGMENT_BYTES + payloadBytes;

export class SegmentStream {
  #nextSequence: number | undefined;
  /** Bytes up to here have been delivered or wait. */
  #highest = 0;
  /** Waiting segments, in sequence order. */
  #waiting: CapturedSegment[] = [];
  #waitingBytes = 0;
  readonly #ofAll: WaitingBytes;

  constructor(ofAll: WaitingBytes) {
    this.#ofAll = ofAll;
  }

  take(segment: CapturedSegment): Ordered {
    const { sequence, payloadBytes } = segment;
    this.#nextSequence ??= sequence;
    const ahead = distanceOf(sequence, this.#nextSequence);
    const end = (sequence + payloadBytes) >>> 0;
    if (ahead > 0) return this.#wait(segment, sequence, end);
    if (distanceOf(end, this.#nextSequence) <= 0) return { place: 'repeated', gapBytes: 0, next: [] };
    const place = this.#waiting.length > 0 ? 'late' : 'next';
    const next = [this.#advance(segment, false, 0)];
    this.#drain(next);
    return { place, gapBytes: 0, next };
  }

  /** Discards the waiting segments at the end of the capture. */
  clear(): void {
    this.#waiting = [];
    this.#count(-this.#waitingBytes);
  }

  #wait(segment: CapturedSegment, sequence: number, end: number): Ordered {
    const index = this.#placeOf(sequence);
    if (index < this.#waiting.length && this.#waiting[index]!.sequence === sequence)
      return { place: 'repeated', gapBytes: 0, next: [] };
    const gapBytes = Math.max(0, distanceOf(sequence, this.#end));
    if (distanceOf(end, this.#end) > 0) this.#highest = end;
    this.#waiting.splice(index, 0, segment);
    this.#count(costOf(segment));
    return { place: 'early', gapBytes, next: this.#isFull ? this.#giveUp() : [] };
  }

  get #isFull(): boolean {
    return this.#waitingBytes > WAITING_BYTES_MAX || this.#ofAll.isFull;
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#ofAll.bytes += bytes;
  }

  /** Index of the first waiting segment that does not begin before `sequence`. */
  #placeOf(sequence: number): number {
    let [from, to] = [0, this.#waiting.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (distanceOf(this.#waiting[middle]!.sequence, sequence) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
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

  /** Delivers waiting segments that are next now. */
  #drain(next: NextBytes[]): void {
    let passed = 0;
    for (; passed < this.#waiting.length; passed++) {
      const first = this.#waiting[passed]!;
      if (distanceOf(first.sequence, this.#nextSequence!) > 0) break;
      this.#count(-costOf(first));
      const end = (first.sequence + first.payloadBytes) >>> 0;
      if (distanceOf(end, this.#nextSequence!) > 0) next.push(this.#advance(first, true, 0));
    }
    if (passed > 0) this.#waiting.splice(0, passed);
  }

  #giveUp(): NextBytes[] {
    const first = this.#waiting.shift()!;
    this.#count(-costOf(first));
    const lostBytes = distanceOf(first.sequence, this.#nextSequence!);
    this.#nextSequence = first.sequence;
    const next = [this.#advance(first, true, lostBytes)];
    this.#drain(next);
    return next;
  }
}

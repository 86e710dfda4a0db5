/**
 * Memory of the card for segments: equal places, each for the payload of one segment of full size. One such memory
 * holds unacknowledged segments, another one segments that arrived after a gap.
 */
import type { SendSegment } from '../streams.ts';
import type { CardConnection } from './card-connection.ts';

const ALIGNMENT_BYTES = 64;

/** Bytes of a place for segments of up to `segmentBytes`. */
export const placeBytesOf = (segmentBytes: number): number =>
  Math.ceil(segmentBytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;

/** Returns the number of places in a memory of this size: at least one. */
export const placeCountOf = (memoryBytes: number, segmentBytes: number): number =>
  Math.max(1, Math.floor(memoryBytes / placeBytesOf(segmentBytes)));

/** Payload of a segment: in a place of a memory, or received and still in the buffer of the port. */
export class CardSegment implements SendSegment {
  sequence = 0;
  length = 0;
  isSent = false;
  /** FPDUs in it; 0: bytes of software. */
  fpduCount = 0;
  times: SendSegment['times'] = undefined;
  readonly bytes: Uint8Array;
  start: number;
  /** Number of the place; -1 outside of a memory. */
  readonly place: number;
  /** Place of the retransmission memory: the connection that has it, and the bytes charged to that connection. */
  owner: CardConnection | undefined;
  chargedBytes = 0;

  constructor(bytes: Uint8Array, start: number, place = -1) {
    this.bytes = bytes;
    this.start = start;
    this.place = place;
  }
}

export class SegmentMemory {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly placeBytes: number;
  readonly segments: readonly CardSegment[];
  readonly #free: number[];

  /** @param start offset of the memory in `bytes` */
  constructor(bytes: Uint8Array, start: number, placeCount: number, segmentBytes: number) {
    this.bytes = bytes;
    this.start = start;
    this.placeBytes = placeBytesOf(segmentBytes);
    this.segments = Array.from(
      { length: placeCount },
      (_, place) => new CardSegment(bytes, start + place * this.placeBytes, place),
    );
    this.#free = [];
    this.reset();
  }

  get isFull(): boolean {
    return this.#free.length === 0;
  }

  get heldCount(): number {
    return this.segments.length - this.#free.length;
  }

  /**
   * Allocates a place. The caller has checked {@link isFull}.
   */
  take(): CardSegment {
    const segment = this.segments[this.#free.pop()!]!;
    segment.isSent = false;
    segment.fpduCount = 0;
    segment.times = undefined;
    segment.length = 0;
    return segment;
  }

  give({ place }: CardSegment): void {
    this.#free.push(place);
  }

  /**
   * Returns the number of the place that contains an offset of {@link bytes}; -1 for none.
   */
  placeAt(at: number): number {
    const place = Math.floor((at - this.start) / this.placeBytes);
    return place >= 0 && place < this.segments.length ? place : -1;
  }

  reset(): void {
    this.#free.length = 0;
    for (let place = this.segments.length - 1; place >= 0; place--) this.#free.push(place);
  }
}

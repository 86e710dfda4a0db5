/**
 * Records of DDP segments that were placed after a gap in the stream: their header, and where their FPDU lies. Bounded, and allocated once.
 */
import { assertInvariant, BlockCopier } from '../../base/index.ts';
import { untaggedHeader } from './formats.ts';

export class EarlySegments {
  readonly #max: number;
  /** Place in the stream of each FPDU and its bytes there; 0 bytes: the record is free. */
  readonly #places: Uint32Array;
  readonly #streamBytes: Uint32Array;
  readonly #segmentBytes: Uint32Array;
  /** Headers of the records, in their order. */
  readonly bytes: Uint8Array;
  readonly #copier = new BlockCopier();
  count = 0;

  constructor(max: number) {
    this.#max = max;
    this.#places = new Uint32Array(max);
    this.#streamBytes = new Uint32Array(max);
    this.#segmentBytes = new Uint32Array(max);
    this.bytes = new Uint8Array(max * untaggedHeader.sizeBytes);
  }

  /** Records that can be added. */
  get room(): number {
    return this.#max - this.count;
  }

  /** Adds a record; there is {@link room}. */
  add(place: number, streamBytes: number, segmentBytes: number, segment: Uint8Array, at: number): void {
    const index = this.#streamBytes.indexOf(0);
    this.#places[index] = place;
    this.#streamBytes[index] = streamBytes;
    this.#segmentBytes[index] = segmentBytes;
    const headerBytes = Math.min(segmentBytes, untaggedHeader.sizeBytes);
    this.#copier.copy(this.bytes, this.headerAt(index), segment, at, headerBytes);
    this.count++;
  }

  /** @returns index of the record of the FPDU that begins at `place` */
  take(place: number): number {
    const places = this.#places;
    let index = 0;
    while (index < this.#max && (places[index] !== place || this.#streamBytes[index] === 0)) index++;
    assertInvariant(index < this.#max, 'bytes taken as placed were placed early');
    return index;
  }

  free(index: number): void {
    this.#streamBytes[index] = 0;
    this.count--;
  }

  streamBytesOf(index: number): number {
    return this.#streamBytes[index]!;
  }

  segmentBytesOf(index: number): number {
    return this.#segmentBytes[index]!;
  }

  headerAt(index: number): number {
    return index * untaggedHeader.sizeBytes;
  }
}

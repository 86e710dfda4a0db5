/**
 * Received bytes of a TCP connection whose payload is placed, not read: what `TcpConnection.received` is on a card.
 *
 *     arrive ─┬─ at `next` ──► FpduReader.take, then the ranges that follow without a gap
 *             └─ after a gap ─┬─ whole FPDUs that markers locate ──► placed; only their range is kept
 *                             └─ else ──► the buffer is kept until the gap closes, up to a bound
 *
 * Every byte is passed to the reader once and in order. The window never closes for bytes that were placed: nothing waits to be read.
 */
import type { Arrival, ReceivedBytes, StreamBuffer } from '../tcp/index.ts';
import { isBefore, sequenceAdd, sequenceDistance } from '../tcp/index.ts';
import type { FpduReader } from './fpdu-reader.ts';

/** A segment of TCP in memory of the owner. */
export interface SegmentBuffer extends StreamBuffer {
  readonly bytes: Uint8Array;
  /** Place of the payload's first byte. */
  readonly start: number;
}

/** Bytes after a gap; without a buffer they were placed. */
interface EarlyRange<Buffer> {
  readonly sequence: number;
  readonly end: number;
  readonly buffer: Buffer | undefined;
}

export class PlacingStream<Buffer extends SegmentBuffer> implements ReceivedBytes<Buffer> {
  next: number;
  readonly readableBytes = 0;
  readonly copiedBytes = 0;
  /** Buffers that wait for a gap to close. */
  keptBuffers = 0;
  readonly #reader: FpduReader;
  readonly #keptMax: number;
  readonly #release: (buffer: Buffer) => void;
  readonly #ranges: EarlyRange<Buffer>[] = [];

  /**
   * @param next sequence number of the first FPDU
   * @param keptMax buffers that may wait for a gap to close
   * @param release returns a buffer of {@link arrive} to its owner
   */
  constructor(reader: FpduReader, next: number, keptMax: number, release: (buffer: Buffer) => void) {
    this.#reader = reader;
    this.next = next;
    this.#keptMax = keptMax;
    this.#release = release;
  }

  get hasGap(): boolean {
    return this.#ranges.length > 0;
  }

  arrive(buffer: Buffer): Arrival {
    const old = sequenceDistance(this.next, buffer.sequence);
    if (old < 0) return this.#arriveEarly(buffer, -old);
    if (old >= buffer.length) {
      this.#release(buffer);
      return 'duplicate';
    }
    this.#takeFrom(buffer);
    this.#release(buffer);
    this.#closeGap();
    return 'inOrder';
  }

  clear(): void {
    for (const { buffer } of this.#ranges.splice(0)) if (buffer !== undefined) this.#release(buffer);
    this.keptBuffers = 0;
  }

  #arriveEarly(buffer: Buffer, distance: number): Arrival {
    const end = sequenceAdd(buffer.sequence, buffer.length);
    const index = this.#indexFor(buffer.sequence);
    const before = this.#ranges[index - 1];
    const after = this.#ranges[index];
    const isCovered = before !== undefined && !isBefore(before.end, end);
    // A range that overlaps another one is sent again when the gap is smaller.
    const overlaps =
      (before !== undefined && isBefore(buffer.sequence, before.end)) ||
      (after !== undefined && isBefore(after.sequence, end));
    if (isCovered || overlaps) {
      this.#release(buffer);
      return isCovered ? 'duplicate' : 'refused';
    }
    const isPlaced = this.#reader.takeEarly(
      distance,
      buffer.bytes,
      buffer.start,
      buffer.start + buffer.length,
    );
    if (!isPlaced && this.keptBuffers >= this.#keptMax) {
      this.#release(buffer);
      return 'refused';
    }
    if (isPlaced) this.#release(buffer);
    else this.keptBuffers++;
    const { sequence } = buffer;
    this.#ranges.splice(index, 0, { sequence, end, buffer: isPlaced ? undefined : buffer });
    return 'behindGap';
  }

  /** Where a range that begins at `sequence` is inserted. */
  #indexFor(sequence: number): number {
    let index = this.#ranges.length;
    while (index > 0 && isBefore(sequence, this.#ranges[index - 1]!.sequence)) index--;
    return index;
  }

  /** Passes on the part of a buffer that is next, up to the first range. */
  #takeFrom(buffer: Buffer): void {
    const { bytes, start, sequence, length } = buffer;
    const skipped = sequenceDistance(this.next, sequence);
    const first = this.#ranges[0];
    const limit = first === undefined ? length : Math.min(length, sequenceDistance(first.sequence, sequence));
    this.#reader.take(bytes, start + skipped, start + limit);
    this.next = sequenceAdd(sequence, limit);
  }

  #closeGap(): void {
    for (let first = this.#ranges[0]; first !== undefined; first = this.#ranges[0]) {
      if (first.sequence !== this.next) return;
      this.#ranges.shift();
      if (first.buffer === undefined) {
        this.#reader.takePlaced(sequenceDistance(first.end, first.sequence));
        this.next = first.end;
      } else {
        this.keptBuffers--;
        this.#takeFrom(first.buffer);
        this.#release(first.buffer);
      }
    }
  }
}

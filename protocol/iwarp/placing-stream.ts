/**
 * Received bytes of a TCP connection whose payload is placed, not read: what `TcpConnection.received` is on a card.
 *
 *     arrive ─┬─ at `next` ──► FpduReader.take, then the ranges that follow without a gap
 *             └─ after a gap ─┬─ whole FPDUs that markers locate ──► placed; only their range is kept
 *                             └─ else ──► the buffer is kept until the gap closes, up to a bound
 *
 * Before the stream has a reader, while software exchanges MPA's request and reply, bytes in order wait to be read; those that are unread when
 * {@link PlacingStream.attach} gives it one are the first FPDUs. Every byte is passed on once and in order. The window never closes for bytes that
 * were placed: nothing waits to be read.
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

export interface StreamBounds<Buffer> {
  /** Buffers that may wait for a gap to close. */
  readonly keptMax: number;
  /** Bytes that may wait for software before a reader is attached; in-order segments beyond are refused. */
  readonly unreadMax: number;
  /** Returns a buffer of {@link PlacingStream.arrive} to its owner. */
  readonly release: (buffer: Buffer) => void;
}

export class PlacingStream<Buffer extends SegmentBuffer> implements ReceivedBytes<Buffer> {
  next: number;
  /** Bytes that wait for software; 0 when a reader is attached. */
  readableBytes = 0;
  readonly copiedBytes = 0;
  /** Buffers that wait for a gap to close. */
  keptBuffers = 0;
  #reader: FpduReader | undefined;
  #unread = new Uint8Array(0);
  readonly #bounds: StreamBounds<Buffer>;
  readonly #ranges: EarlyRange<Buffer>[] = [];

  /** @param next sequence number of the first byte */
  constructor(next: number, bounds: StreamBounds<Buffer>) {
    this.next = next;
    this.#bounds = bounds;
  }

  /** Attaches a reader: from here on the bytes are FPDUs, beginning with the unread ones. */
  attach(reader: FpduReader): void {
    const unread = this.#unread.subarray(0, this.readableBytes);
    this.#reader = reader;
    this.#unread = new Uint8Array(0);
    this.readableBytes = 0;
    reader.take(unread, 0, unread.length);
  }

  /** Reads bytes before a reader is attached, at most as many as `target` has. @returns bytes read */
  read(target: Uint8Array): number {
    const count = Math.min(target.length, this.readableBytes);
    target.set(this.#unread.subarray(0, count));
    this.#unread.copyWithin(0, count, this.readableBytes);
    this.readableBytes -= count;
    return count;
  }

  get hasGap(): boolean {
    return this.#ranges.length > 0;
  }

  arrive(buffer: Buffer): Arrival {
    const old = sequenceDistance(this.next, buffer.sequence);
    if (old < 0) return this.#arriveEarly(buffer, -old);
    const isFull =
      this.#reader === undefined && this.readableBytes + buffer.length - old > this.#bounds.unreadMax;
    if (old >= buffer.length || isFull) {
      this.#bounds.release(buffer);
      return old >= buffer.length ? 'duplicate' : 'refused';
    }
    this.#takeFrom(buffer);
    this.#bounds.release(buffer);
    this.#closeGap();
    return 'inOrder';
  }

  clear(): void {
    this.readableBytes = 0;
    for (const { buffer } of this.#ranges.splice(0)) if (buffer !== undefined) this.#bounds.release(buffer);
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
      this.#bounds.release(buffer);
      return isCovered ? 'duplicate' : 'refused';
    }
    const { bytes, start, length } = buffer;
    const isPlaced = this.#reader?.takeEarly(distance, bytes, start, start + length) ?? false;
    if (!isPlaced && this.keptBuffers >= this.#bounds.keptMax) {
      this.#bounds.release(buffer);
      return 'refused';
    }
    if (isPlaced) this.#bounds.release(buffer);
    else this.keptBuffers++;
    const { sequence } = buffer;
    this.#ranges.splice(index, 0, { sequence, end, buffer: isPlaced ? undefined : buffer });
    return 'behindGap';
  }

  /** Returns the index at which a range that begins at `sequence` is inserted. */
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
    if (this.#reader === undefined) this.#keepUnread(bytes, start + skipped, start + limit);
    else this.#reader.take(bytes, start + skipped, start + limit);
    this.next = sequenceAdd(sequence, limit);
  }

  #keepUnread(bytes: Uint8Array, from: number, to: number): void {
    const wanted = this.readableBytes + to - from;
    if (wanted > this.#unread.length) {
      const larger = new Uint8Array(2 * wanted);
      larger.set(this.#unread);
      this.#unread = larger;
    }
    this.#unread.set(bytes.subarray(from, to), this.readableBytes);
    this.readableBytes = wanted;
  }

  #closeGap(): void {
    for (let first = this.#ranges[0]; first !== undefined; first = this.#ranges[0]) {
      if (first.sequence !== this.next) return;
      this.#ranges.shift();
      if (first.buffer === undefined) {
        this.#reader?.takePlaced(sequenceDistance(first.end, first.sequence));
        this.next = first.end;
      } else {
        this.keptBuffers--;
        this.#takeFrom(first.buffer);
        this.#bounds.release(first.buffer);
      }
    }
  }
}

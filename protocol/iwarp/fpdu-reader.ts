/**
 * Reads the FPDUs of one direction out of a stream of TCP, however TCP cuts it (RFC 5044, 4 and 5).
 *
 *     take()       bytes in order ─► FPDU complete? ─► CRC, markers ─► sink.segmentArrived
 *     takeEarly()  bytes after a gap: whole FPDUs that a marker locates ─► sink.placeEarly, and a record of each
 *     takePlaced() the gap before recorded FPDUs is closed ─► sink.segmentReached, without their bytes
 *
 * Only markers locate an FPDU after a gap. Without markers its beginning follows from all lengths before it, so nothing can be placed early.
 * After an error nothing is passed up any more. An FPDU that lies within the bytes of one call is read in place if it has no markers; else its
 * bytes are gathered without markers.
 */
import { BlockCopier } from '../../base/index.ts';
import { EarlySegments } from './early-segments.ts';
import {
  CRC_BYTES,
  crc32c,
  LENGTH_BYTES,
  MARKER_BYTES,
  MARKER_DISTANCE_BYTES,
  markedBytes,
  PHASE_MASK,
  plainBytes,
} from './fpdu.ts';
import { IwarpError, NO_ERROR } from './iwarp-error.ts';

/** Receives DDP segments; bytes are valid during the call only. */
export interface SegmentSink {
  /** A DDP segment, in order. */
  segmentArrived(bytes: Uint8Array, at: number, segmentBytes: number): void;
  /** Whether a DDP segment after a gap can be placed now; changes nothing. */
  mayPlaceEarly(bytes: Uint8Array, at: number, segmentBytes: number): boolean;
  /** Places a segment that {@link mayPlaceEarly} accepted. */
  placeEarly(bytes: Uint8Array, at: number, segmentBytes: number): void;
  /** All bytes before a segment that was placed early have arrived; `bytes` has its header only. */
  segmentReached(bytes: Uint8Array, at: number, segmentBytes: number): void;
  /** The stream is damaged: an error of MPA. */
  framingFailed(error: number): void;
}

const LONGEST_FPDU_BYTES = markedBytes(0, 0xffff);
const FIRST_PENDING_BYTES = 2048;
const lengthAt = (bytes: Uint8Array, at: number): number => (bytes[at]! << 8) | bytes[at + 1]!;

export class FpduReader {
  readonly hasMarkers: boolean;
  readonly usesCrc: boolean;
  /** True after an error, or when the owner stops it: arriving bytes are dropped. */
  isStopped = false;
  readonly early: EarlySegments;
  readonly #sink: SegmentSink;
  readonly #copier = new BlockCopier();
  /** Place in the stream of the next byte, modulo 2^32. */
  #place = 0;
  /** The first bytes of an FPDU whose others have not arrived. */
  #pending = new Uint8Array(0);
  #pendingBytes = 0;
  /** An FPDU without its markers. */
  #plain = new Uint8Array(0);

  constructor(
    sink: SegmentSink,
    options: { readonly hasMarkers: boolean; readonly usesCrc: boolean; readonly earlySegmentsMax: number },
  ) {
    this.#sink = sink;
    this.hasMarkers = options.hasMarkers;
    this.usesCrc = options.usesCrc;
    this.early = new EarlySegments(options.hasMarkers ? options.earlySegmentsMax : 0);
  }

  /** Whether the stream ends between two FPDUs here. */
  get isBetween(): boolean {
    return this.#pendingBytes === 0;
  }

  /** Takes the bytes from `from` up to `to`, which continue the stream. */
  take(bytes: Uint8Array, from: number, to: number): void {
    let at = from;
    while (at < to && !this.isStopped) {
      const total = this.#pendingBytes === 0 ? this.#frameBytes(bytes, at, to - at, this.#place) : 0;
      if (total > 0 && total <= to - at) {
        this.#advance(total);
        this.#accept(bytes, at, total, this.#place - total);
        at += total;
      } else {
        at += this.#gather(bytes, at, to - at);
      }
    }
  }

  /**
   * Takes bytes that begin `distance` bytes after the next ones of the stream, if all of them are FPDUs that can be placed.
   * @returns false when the owner must keep them, or have them sent again
   */
  takeEarly(distance: number, bytes: Uint8Array, from: number, to: number): boolean {
    if (!this.hasMarkers || this.isStopped) return false;
    const place = (this.#place + distance) >>> 0;
    if (!isLocated(bytes, from, to, place & PHASE_MASK)) return false;
    const count = this.#countEarly(bytes, from, to, place);
    if (count === 0 || count > this.early.room) return false;
    for (let at = from; at < to; ) {
      const here = (place + at - from) >>> 0;
      const total = this.#frameBytes(bytes, at, to - at, here);
      const segmentBytes = this.#strip(bytes, at, total, here);
      this.#sink.placeEarly(this.#plain, LENGTH_BYTES, segmentBytes);
      this.early.add(here, total, segmentBytes, this.#plain, LENGTH_BYTES);
      at += total;
    }
    return true;
  }

  /** The next `streamBytes` bytes of the stream were taken by {@link takeEarly}: passes their segments up in order. */
  takePlaced(streamBytes: number): void {
    // The bytes before the gap were not whole FPDUs, although markers after it say so.
    if (this.#pendingBytes > 0 && !this.isStopped) this.#fail(IwarpError.MPA_MARKER);
    for (let left = streamBytes; left > 0 && !this.isStopped; ) {
      const { early } = this;
      const index = early.take(this.#place);
      this.#advance(early.streamBytesOf(index));
      left -= early.streamBytesOf(index);
      this.#sink.segmentReached(early.bytes, early.headerAt(index), early.segmentBytesOf(index));
      early.free(index);
    }
  }

  /** @returns bytes in the stream of the FPDU at `at`, whose first byte has the place `place`; 0 while its length is unknown */
  #frameBytes(bytes: Uint8Array, at: number, available: number, place: number): number {
    const phase = place & PHASE_MASK;
    const lead = this.hasMarkers && phase === 0 ? MARKER_BYTES : 0;
    if (available < lead + LENGTH_BYTES) return 0;
    const segmentBytes = lengthAt(bytes, at + lead);
    return this.hasMarkers ? markedBytes(phase, segmentBytes) : plainBytes(segmentBytes);
  }

  /** Copies bytes of an FPDU that is not complete yet. @returns bytes copied */
  #gather(bytes: Uint8Array, at: number, available: number): number {
    const begun = this.#place - this.#pendingBytes;
    const known = this.#frameBytes(this.#pending, 0, this.#pendingBytes, begun);
    const wanted = known > 0 ? known : this.#pendingBytes + 1;
    const count = Math.min(available, wanted - this.#pendingBytes);
    this.#pending = grown(this.#pending, this.#pendingBytes, this.#pendingBytes + count);
    this.#copier.copy(this.#pending, this.#pendingBytes, bytes, at, count);
    this.#pendingBytes += count;
    this.#advance(count);
    if (known > 0 && this.#pendingBytes === known) {
      this.#pendingBytes = 0;
      this.#accept(this.#pending, 0, known, begun);
    }
    return count;
  }

  /** A whole FPDU. */
  #accept(bytes: Uint8Array, at: number, total: number, place: number): void {
    const error = this.#check(bytes, at, total, place);
    if (error !== NO_ERROR) {
      this.#fail(error);
    } else if (this.hasMarkers) {
      const segmentBytes = this.#strip(bytes, at, total, place);
      this.#sink.segmentArrived(this.#plain, LENGTH_BYTES, segmentBytes);
    } else {
      this.#sink.segmentArrived(bytes, at + LENGTH_BYTES, lengthAt(bytes, at));
    }
  }

  #fail(error: number): void {
    this.isStopped = true;
    this.#sink.framingFailed(error);
  }

  /** @returns an error of MPA, or NO_ERROR */
  #check(bytes: Uint8Array, at: number, total: number, place: number): number {
    const end = at + total - CRC_BYTES;
    if (this.usesCrc && crc32c.of(bytes, at, end) !== crcAt(bytes, end)) return IwarpError.MPA_CRC;
    if (!this.hasMarkers) return NO_ERROR;
    const phase = place & PHASE_MASK;
    const start = phase === 0 ? at + MARKER_BYTES : at;
    for (let marker = firstMarker(at, phase); marker < end; marker += MARKER_DISTANCE_BYTES) {
      if (lengthAt(bytes, marker + 2) !== Math.max(0, marker - start)) return IwarpError.MPA_MARKER;
    }
    return NO_ERROR;
  }

  /** Copies an FPDU without its markers. @returns bytes of its segment */
  #strip(bytes: Uint8Array, at: number, total: number, place: number): number {
    if (this.#plain.length < total) this.#plain = new Uint8Array(roomFor(total));
    let marker = firstMarker(at, place & PHASE_MASK);
    let written = 0;
    for (let source = at; source < at + total; ) {
      if (source === marker) {
        source += MARKER_BYTES;
        marker += MARKER_DISTANCE_BYTES;
      }
      const run = Math.min(marker, at + total) - source;
      this.#copier.copy(this.#plain, written, bytes, source, run);
      written += run;
      source += run;
    }
    return lengthAt(this.#plain, 0);
  }

  /** @returns FPDUs among the bytes; 0 unless all bytes are FPDUs without an error that can be placed */
  #countEarly(bytes: Uint8Array, from: number, to: number, place: number): number {
    let count = 0;
    for (let at = from; at < to; count++) {
      const here = (place + at - from) >>> 0;
      const total = this.#frameBytes(bytes, at, to - at, here);
      if (total === 0 || total > to - at || this.#check(bytes, at, total, here) !== NO_ERROR) return 0;
      const segmentBytes = this.#strip(bytes, at, total, here);
      if (!this.#sink.mayPlaceEarly(this.#plain, LENGTH_BYTES, segmentBytes)) return 0;
      at += total;
    }
    return count;
  }

  #advance(bytes: number): void {
    this.#place = (this.#place + bytes) >>> 0;
  }
}

/** Offset of the first marker among bytes that begin at `at`. */
const firstMarker = (at: number, phase: number): number =>
  at + ((MARKER_DISTANCE_BYTES - phase) & PHASE_MASK);

/** Whether the first marker among the bytes points to an FPDU that begins with them. */
function isLocated(bytes: Uint8Array, from: number, to: number, phase: number): boolean {
  const marker = firstMarker(from, phase);
  if (marker + MARKER_BYTES > to) return false;
  return lengthAt(bytes, marker + 2) === marker - from;
}

const crcAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;

const roomFor = (bytes: number): number =>
  Math.min(Math.max(2 * bytes, FIRST_PENDING_BYTES), LONGEST_FPDU_BYTES);

/** `bytes` with room for `wanted`, of which the first `used` are kept. */
function grown(bytes: Uint8Array<ArrayBuffer>, used: number, wanted: number): Uint8Array<ArrayBuffer> {
  if (wanted <= bytes.length) return bytes;
  const larger = new Uint8Array(roomFor(wanted));
  larger.set(bytes.subarray(0, used));
  return larger;
}

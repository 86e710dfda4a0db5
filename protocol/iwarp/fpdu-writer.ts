/**
 * Writes FPDUs of one direction into buffers of its owner, byte after byte of the stream. Nothing is allocated for an FPDU. The same header,
 * payload and place in the stream give the same bytes: an FPDU may be written again to be retransmitted.
 */
import { BlockCopier, viewOf } from '../../base/index.ts';
import { untaggedHeader } from './formats.ts';
import {
  CRC_BYTES,
  crc32c,
  LENGTH_BYTES,
  MARKER_BYTES,
  MARKER_DISTANCE_BYTES,
  PHASE_MASK,
  paddedBytes,
} from './fpdu.ts';
import { type SegmentHeader, writeSegmentHeader } from './segment-header.ts';

const zeros = new Uint8Array(CRC_BYTES);

export class FpduWriter {
  readonly hasMarkers: boolean;
  readonly usesCrc: boolean;
  /** Place in the stream of the next byte, modulo 512. */
  phase = 0;
  readonly #head = new Uint8Array(LENGTH_BYTES + untaggedHeader.sizeBytes);
  readonly #headView = viewOf(this.#head);
  readonly #copier = new BlockCopier();
  #at = 0;
  /** Offset of the FPDU: markers point to its length field. */
  #start = 0;

  constructor(options: { readonly hasMarkers: boolean; readonly usesCrc: boolean }) {
    this.hasMarkers = options.hasMarkers;
    this.usesCrc = options.usesCrc;
  }

  /**
   * Writes the FPDU of one DDP segment.
   * @param at where it begins in `target`, which has room for it
   * @param payload bytes after the header: those of the user, or of RDMAP's own messages
   * @returns bytes written, markers included
   */
  write(
    target: Uint8Array,
    at: number,
    header: SegmentHeader,
    payload: Uint8Array,
    payloadAt: number,
    payloadBytes: number,
  ): number {
    const segmentBytes = header.bytes + payloadBytes;
    this.#headView.setUint16(0, segmentBytes);
    writeSegmentHeader(this.#headView, LENGTH_BYTES, header);
    this.#at = at;
    this.#start = at;
    if (this.hasMarkers && this.phase === 0) this.#start += MARKER_BYTES;
    this.#put(target, this.#head, 0, LENGTH_BYTES + header.bytes);
    this.#put(target, payload, payloadAt, payloadBytes);
    this.#put(target, zeros, 0, paddedBytes(segmentBytes) - LENGTH_BYTES - segmentBytes);
    this.#putCrc(target, at);
    return this.#at - at;
  }

  /** Copies bytes, with a marker wherever the stream has one. */
  #put(target: Uint8Array, from: Uint8Array, fromAt: number, bytes: number): void {
    let left = bytes;
    let source = fromAt;
    while (left > 0) {
      if (this.hasMarkers && this.phase === 0) this.#putMarker(target);
      const run = this.hasMarkers ? Math.min(left, MARKER_DISTANCE_BYTES - this.phase) : left;
      this.#copier.copy(target, this.#at, from, source, run);
      this.#advance(run);
      source += run;
      left -= run;
    }
  }

  /** RFC 5044, 4.3: 16 zero bits, then the distance to the length field; 0 before an FPDU. */
  #putMarker(target: Uint8Array): void {
    const distance = Math.max(0, this.#at - this.#start);
    target[this.#at] = 0;
    target[this.#at + 1] = 0;
    target[this.#at + 2] = distance >>> 8;
    target[this.#at + 3] = distance & 0xff;
    this.#advance(MARKER_BYTES);
  }

  /** The CRC covers the markers before it; without a CRC its bytes are 0. */
  #putCrc(target: Uint8Array, from: number): void {
    if (this.hasMarkers && this.phase === 0) this.#putMarker(target);
    const crc = this.usesCrc ? crc32c.of(target, from, this.#at) : 0;
    target[this.#at] = crc & 0xff;
    target[this.#at + 1] = (crc >>> 8) & 0xff;
    target[this.#at + 2] = (crc >>> 16) & 0xff;
    target[this.#at + 3] = crc >>> 24;
    this.#advance(CRC_BYTES);
  }

  #advance(bytes: number): void {
    this.#at += bytes;
    this.phase = (this.phase + bytes) & PHASE_MASK;
  }
}

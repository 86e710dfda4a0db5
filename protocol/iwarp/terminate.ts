/**
 * Terminate: the last message of a stream, which names an error and quotes the headers of the segment in error (RFC 5040, 4.8).
 *
 *     layer 4 │ type 4 │ code 8 │ M D R │ 0          then, as the flags say: segment length 16 │ DDP header 14 or 18 │ READ request 28
 *
 * Linux' siw swaps layer and type and has the flags in the low bits of the third byte. It is read too, never written.
 */
import { copyShort, viewOf } from '../../base/index.ts';
import {
  DdpQueue,
  RdmapOpcode,
  readRequest,
  taggedHeader,
  terminateControl,
  untaggedHeader,
} from './formats.ts';
import { codeOf, ErrorLayer, errorOf, isKnownError, layerOf, typeOf } from './iwarp-error.ts';
import { type ReadRequest, writeReadRequest } from './rdmap-messages.ts';
import { readSegmentHeader, SegmentHeader, writeSegmentHeader } from './segment-header.ts';

const SEGMENT_LENGTH_BYTES = 2;
const QUOTED_BYTES_MAX = untaggedHeader.sizeBytes + readRequest.sizeBytes;
/** Bytes of the longest Terminate. */
export const TERMINATE_BYTES_MAX = terminateControl.sizeBytes + SEGMENT_LENGTH_BYTES + QUOTED_BYTES_MAX;

/** Error types whose headers are quoted: remote protection and remote operation errors of RDMAP. */
const REMOTE_PROTECTION = 1;
const REMOTE_OPERATION = 2;

/** The headers of a segment in error. */
export class QuotedSegment {
  /** Bytes of the DDP segment: the length that its FPDU has. */
  segmentBytes = 0;
  /** Bytes of the DDP header; 0: no segment is in error. */
  headerBytes = 0;
  /** A READ request follows the header in {@link bytes}. */
  hasReadRequest = false;
  readonly bytes = new Uint8Array(QUOTED_BYTES_MAX);
  readonly view = viewOf(this.bytes);
  readonly #header = new SegmentHeader();

  clear(): void {
    this.segmentBytes = 0;
    this.headerBytes = 0;
    this.hasReadRequest = false;
  }

  /** Quotes the segment of `segmentBytes` whose first bytes are at `at`. */
  quote(view: DataView, at: number, segmentBytes: number): void {
    this.clear();
    const header = this.#header;
    if (!readSegmentHeader(view, at, segmentBytes, header)) return;
    this.segmentBytes = segmentBytes;
    this.headerBytes = header.bytes;
    const isRead =
      !header.isTagged &&
      header.queue === DdpQueue.READ_REQUEST &&
      header.opcode === RdmapOpcode.READ_REQUEST;
    this.hasReadRequest = isRead && segmentBytes === QUOTED_BYTES_MAX;
    copyShort(this.view, 0, view, at, this.hasReadRequest ? QUOTED_BYTES_MAX : this.headerBytes);
  }

  /** Quotes a segment by its header. */
  quoteHeader(header: SegmentHeader, segmentBytes: number): void {
    this.clear();
    writeSegmentHeader(this.view, 0, header);
    this.segmentBytes = segmentBytes;
    this.headerBytes = header.bytes;
  }

  /** Quotes what `other` quotes. */
  copyFrom(other: QuotedSegment): void {
    this.segmentBytes = other.segmentBytes;
    this.headerBytes = other.headerBytes;
    this.hasReadRequest = other.hasReadRequest;
    this.bytes.set(other.bytes);
  }

  /**
   * Quotes a READ request that is being served. If it was served in part, `request` holds its rest: offsets and length
   * are those of the next byte (RFC 5040, 4.8).
   */
  quoteRead(message: number, request: ReadRequest): void {
    const header = this.#header;
    header.opcode = RdmapOpcode.READ_REQUEST;
    header.isTagged = false;
    header.isLast = true;
    header.steeringTag = 0;
    header.queue = DdpQueue.READ_REQUEST;
    header.message = message;
    header.messageOffset = 0;
    writeSegmentHeader(this.view, 0, header);
    writeReadRequest(this.view, untaggedHeader.sizeBytes, request);
    this.segmentBytes = QUOTED_BYTES_MAX;
    this.headerBytes = untaggedHeader.sizeBytes;
    this.hasReadRequest = true;
  }
}

/** Whether RFC 5040, Figure 10 wants the DDP header in the Terminate of this error. */
const quotesHeader = (error: number): boolean => {
  const layer = layerOf(error);
  const type = typeOf(error);
  if (layer === ErrorLayer.MPA || type === 0) return false;
  return layer === ErrorLayer.DDP || type === REMOTE_PROTECTION || type === REMOTE_OPERATION;
};

/**
 * Writes the payload of a Terminate at `at`, which has room for {@link TERMINATE_BYTES_MAX}.
 * @returns its bytes
 */
export function writeTerminate(view: DataView, at: number, error: number, quoted: QuotedSegment): number {
  const { fields, sizeBytes } = terminateControl;
  const hasHeader = quotesHeader(error) && quoted.headerBytes > 0;
  const isProtection = layerOf(error) === ErrorLayer.RDMAP && typeOf(error) === REMOTE_PROTECTION;
  const hasRead = hasHeader && isProtection && quoted.hasReadRequest;
  view.setUint32(at, 0);
  fields.layer.set(view, at, layerOf(error));
  fields.type.set(view, at, typeOf(error));
  fields.code.set(view, at, codeOf(error));
  fields.hasSegmentLength.set(view, at, hasHeader ? 1 : 0);
  fields.hasDdpHeader.set(view, at, hasHeader ? 1 : 0);
  fields.hasRdmapHeader.set(view, at, hasRead ? 1 : 0);
  if (!hasHeader) return sizeBytes;
  view.setUint16(at + sizeBytes, quoted.segmentBytes);
  const headers = quoted.headerBytes + (hasRead ? readRequest.sizeBytes : 0);
  copyShort(view, at + sizeBytes + SEGMENT_LENGTH_BYTES, quoted.view, 0, headers);
  return sizeBytes + SEGMENT_LENGTH_BYTES + headers;
}

/** A received Terminate. */
export class TerminateNotice {
  /** As in {@link IwarpError}; of any value that the wire can carry. */
  error = 0;
  /** Nibbles and flags are where siw has them. */
  isMirrored = false;
  /** Segment in error, as far as the Terminate quotes it. */
  readonly quoted = new QuotedSegment();
}

const MIRRORED_FLAGS = 0x07;
const MIRRORED_LENGTH = 0x01;
const MIRRORED_DDP = 0x02;
const MIRRORED_RDMAP = 0x04;

/**
 * Reads the payload of a Terminate.
 * @returns false if it is shorter than its first bytes; headers that it promises and lacks are taken as absent
 */
export function readTerminate(
  view: DataView,
  at: number,
  lengthBytes: number,
  into: TerminateNotice,
): boolean {
  const { fields, sizeBytes } = terminateControl;
  into.quoted.clear();
  if (lengthBytes < sizeBytes) return false;
  const high = fields.layer.get(view, at);
  const low = fields.type.get(view, at);
  const code = fields.code.get(view, at);
  const mirrored = view.getUint8(at + 2) & MIRRORED_FLAGS;
  let hasLength = fields.hasSegmentLength.get(view, at) === 1;
  let hasDdp = fields.hasDdpHeader.get(view, at) === 1;
  let hasRdmap = fields.hasRdmapHeader.get(view, at) === 1;
  const hasFlags = hasLength || hasDdp || hasRdmap;
  into.error = errorOf(high, low, code);
  // Without flags, the number that a document defines decides.
  into.isMirrored =
    !hasFlags && (mirrored !== 0 || (!isKnownError(into.error) && isKnownError(errorOf(low, high, code))));
  if (into.isMirrored) {
    into.error = errorOf(low, high, code);
    hasLength = (mirrored & MIRRORED_LENGTH) !== 0;
    hasDdp = (mirrored & MIRRORED_DDP) !== 0;
    hasRdmap = (mirrored & MIRRORED_RDMAP) !== 0;
  }
  readQuoted(view, at + sizeBytes, at + lengthBytes, into.quoted, hasLength, hasDdp, hasRdmap);
  return true;
}

function readQuoted(
  view: DataView,
  from: number,
  end: number,
  into: QuotedSegment,
  hasLength: boolean,
  hasDdp: boolean,
  hasRdmap: boolean,
): void {
  let at = from;
  if (hasLength) {
    if (at + SEGMENT_LENGTH_BYTES > end) return;
    into.segmentBytes = view.getUint16(at);
    at += SEGMENT_LENGTH_BYTES;
  }
  if (!hasDdp || at >= end) return;
  const isTagged = untaggedHeader.fields.isTagged.get(view, at) === 1;
  const headerBytes = isTagged ? taggedHeader.sizeBytes : untaggedHeader.sizeBytes;
  if (at + headerBytes > end) return;
  into.headerBytes = headerBytes;
  copyShort(into.view, 0, view, at, headerBytes);
  at += headerBytes;
  if (!hasRdmap || isTagged || at + readRequest.sizeBytes > end) return;
  into.hasReadRequest = true;
  copyShort(into.view, headerBytes, view, at, readRequest.sizeBytes);
}

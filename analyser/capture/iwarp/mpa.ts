/**
 * MPA frames, which carry messages in a TCP stream: the request and reply that open a connection, and FPDUs of one DDP
 * segment each, with or without markers. Source: RFC 5044, 4 and 7.1; RFC 6581, 9.
 */
import { viewOf } from '../../../base/index.ts';
import { crc32c } from './crc32c.ts';

const KEY_BYTES = 16;
const HANDSHAKE_BYTES = 20;
const REQUEST_KEY = 'MPA ID Req Frame';
const REPLY_KEY = 'MPA ID Rep Frame';
const FLAG_MARKERS = 0x80;
const FLAG_CRC = 0x40;
const FLAG_REJECT = 0x20;

/** A request or reply. */
export interface Handshake {
  readonly isReply: boolean;
  /** Whether its sender wants markers in the frames that it receives. */
  readonly wantsMarkers: boolean;
  readonly usesCrc: boolean;
  readonly isReject: boolean;
  readonly revision: number;
  readonly privateBytes: number;
  readonly lengthBytes: number;
}

const ascii = new TextDecoder('latin1');

/** Whether the first bytes of a stream begin a request or a reply. */
export function beginsHandshake(bytes: Uint8Array): boolean {
  const key = ascii.decode(bytes.subarray(0, KEY_BYTES));
  return key === REQUEST_KEY || key === REPLY_KEY;
}

/** @returns undefined until it is complete */
export function readHandshake(bytes: Uint8Array): Handshake | undefined {
  if (bytes.length < HANDSHAKE_BYTES) return undefined;
  const flags = bytes[KEY_BYTES]!;
  const privateBytes = viewOf(bytes).getUint16(KEY_BYTES + 2);
  const lengthBytes = HANDSHAKE_BYTES + privateBytes;
  if (bytes.length < lengthBytes) return undefined;
  return {
    isReply: ascii.decode(bytes.subarray(0, KEY_BYTES)) === REPLY_KEY,
    wantsMarkers: (flags & FLAG_MARKERS) !== 0,
    usesCrc: (flags & FLAG_CRC) !== 0,
    isReject: (flags & FLAG_REJECT) !== 0,
    revision: bytes[KEY_BYTES + 1]!,
    privateBytes,
    lengthBytes,
  };
}

const LENGTH_BYTES = 2;
const CRC_BYTES = 4;
const MARKER_BYTES = 4;
const MARKER_DISTANCE_BYTES = 512;

export interface Fpdu {
  /** The DDP segment. */
  readonly segment: Uint8Array;
  /** Bytes of the frame in the stream, including markers. */
  readonly streamBytes: number;
  readonly crc: number;
  readonly isCrcRight: boolean;
}

/**
 * Reads the FPDU at the beginning of `bytes`.
 * @param streamOffset bytes since the handshake of this direction, if it has markers
 * @returns undefined until it is complete
 */
export function readFpdu(bytes: Uint8Array, streamOffset: number | undefined): Fpdu | undefined {
  const first = streamLengthOf(LENGTH_BYTES, streamOffset);
  if (bytes.length < first) return undefined;
  const head = withoutMarkers(bytes.subarray(0, first), streamOffset);
  const length = viewOf(head).getUint16(0);
  const padded = (LENGTH_BYTES + length + 3) & ~3;
  const streamBytes = streamLengthOf(padded + CRC_BYTES, streamOffset);
  if (bytes.length < streamBytes) return undefined;
  const frame = withoutMarkers(bytes.subarray(0, streamBytes), streamOffset);
  const crc = viewOf(frame).getUint32(padded, true);
  const covered = bytes.subarray(0, streamBytes - CRC_BYTES);
  return {
    segment: frame.subarray(LENGTH_BYTES, LENGTH_BYTES + length),
    streamBytes,
    crc,
    isCrcRight: crc === crc32c(covered),
  };
}

/** Length of the segment in the FPDU that begins here, from its first bytes, and length of the FPDU in the stream. */
export function fpduLengths(
  bytes: Uint8Array,
  streamOffset: number | undefined,
): { readonly segmentBytes: number; readonly streamBytes: number } | undefined {
  const first = streamLengthOf(LENGTH_BYTES, streamOffset);
  if (bytes.length < first) return undefined;
  const segmentBytes = viewOf(withoutMarkers(bytes.subarray(0, first), streamOffset)).getUint16(0);
  const padded = (LENGTH_BYTES + segmentBytes + 3) & ~3;
  return { segmentBytes, streamBytes: streamLengthOf(padded + CRC_BYTES, streamOffset) };
}

/** The readable bytes of an incomplete segment. */
export function segmentStart(bytes: Uint8Array, streamOffset: number | undefined): Uint8Array {
  return withoutMarkers(bytes, streamOffset).subarray(LENGTH_BYTES);
}

/** Stream bytes of this many bytes without markers: a marker lies at each offset that is a multiple of 512. */
function streamLengthOf(bytes: number, streamOffset: number | undefined): number {
  if (streamOffset === undefined) return bytes;
  let total = 0;
  for (let left = bytes; left > 0; ) {
    if ((streamOffset + total) % MARKER_DISTANCE_BYTES === 0) total += MARKER_BYTES;
    const run = Math.min(left, MARKER_DISTANCE_BYTES - ((streamOffset + total) % MARKER_DISTANCE_BYTES));
    total += run;
    left -= run;
  }
  return total;
}

function withoutMarkers(bytes: Uint8Array, streamOffset: number | undefined): Uint8Array {
  if (streamOffset === undefined) return bytes;
  return bytes.filter((_, index) => (streamOffset + index) % MARKER_DISTANCE_BYTES >= MARKER_BYTES);
}

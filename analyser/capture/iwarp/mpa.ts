/**
 * MPA frames, which carry messages in a TCP stream: the request and reply that open a connection, and FPDUs of one DDP
 * segment each, with or without markers. Source: RFC 5044, 4 and 7.1; RFC 6581, 9.
 */
import { bits16, layout, viewOf } from '../../../base/index.ts';
import { crc32c } from './crc32c.ts';

const KEY_BYTES = 16;
const HANDSHAKE_BYTES = 20;
const REQUEST_KEY = 'MPA ID Req Frame';
const REPLY_KEY = 'MPA ID Rep Frame';
const FLAG_MARKERS = 0x80;
const FLAG_CRC = 0x40;
const FLAG_REJECT = 0x20;
const FLAG_ENHANCED = 0x10;
/** Bytes of the word that follows the header of an enhanced request or reply. */
const ENHANCED_BYTES = 4;

/** The word of an enhanced request or reply, of revision 2. */
const enhancedWord = layout(
  'MPA enhanced connection data',
  { sizeBytes: ENHANCED_BYTES, byteOrder: 'big', source: 'RFC 6581, 9' },
  {
    isPeerToPeer: bits16(0, 15, 15),
    hasZeroSend: bits16(0, 14, 14),
    inboundReads: bits16(0, 13, 0),
    hasZeroWrite: bits16(2, 15, 15),
    hasZeroRead: bits16(2, 14, 14),
    outboundReads: bits16(2, 13, 0),
  },
);

/** Values that the ends of a connection of revision 2 agree on (RFC 6581, 9). */
export interface EnhancedConnection {
  /** READs that the sender of the frame serves at once, and those that it wants to have outstanding. */
  readonly inboundReads: number;
  readonly outboundReads: number;
  /** Kinds of ready-to-receive messages that the sender offers or takes in peer-to-peer mode; undefined without that mode. */
  readonly readyMessages: readonly string[] | undefined;
}

/** A request or reply. */
export interface Handshake {
  readonly isReply: boolean;
  /** Whether its sender wants markers in the frames that it receives. */
  readonly wantsMarkers: boolean;
  readonly usesCrc: boolean;
  readonly isReject: boolean;
  readonly revision: number;
  /** An enhanced request or reply has it; others have undefined. */
  readonly enhanced: EnhancedConnection | undefined;
  /** Bytes of private data that the consumers exchange. */
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
  const dataBytes = viewOf(bytes).getUint16(KEY_BYTES + 2);
  const lengthBytes = HANDSHAKE_BYTES + dataBytes;
  if (bytes.length < lengthBytes) return undefined;
  const isEnhanced = (flags & FLAG_ENHANCED) !== 0 && dataBytes >= ENHANCED_BYTES;
  return {
    isReply: ascii.decode(bytes.subarray(0, KEY_BYTES)) === REPLY_KEY,
    wantsMarkers: (flags & FLAG_MARKERS) !== 0,
    usesCrc: (flags & FLAG_CRC) !== 0,
    isReject: (flags & FLAG_REJECT) !== 0,
    revision: bytes[KEY_BYTES + 1]!,
    enhanced: isEnhanced ? enhancedOf(bytes.subarray(HANDSHAKE_BYTES)) : undefined,
    privateBytes: dataBytes - (isEnhanced ? ENHANCED_BYTES : 0),
    lengthBytes,
  };
}

function enhancedOf(word: Uint8Array): EnhancedConnection {
  const { isPeerToPeer, hasZeroSend, hasZeroWrite, hasZeroRead, inboundReads, outboundReads } =
    enhancedWord.decode(word);
  const kinds = [
    ...(hasZeroSend === 1 ? ['SEND'] : []),
    ...(hasZeroWrite === 1 ? ['WRITE'] : []),
    ...(hasZeroRead === 1 ? ['READ'] : []),
  ];
  return { inboundReads, outboundReads, readyMessages: isPeerToPeer === 1 ? kinds : undefined };
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

/**
 * Request and reply of MPA, written and parsed (RFC 5044, 7.1.1; RFC 6581, 6 and 9). Both travel before the first FPDU, without CRC and markers.
 */
import type { Decoded } from '../../base/index.ts';
import { enhancedData, mpaFrame } from './formats.ts';
import { ReadyMessage } from './ready-message.ts';

const MPA_FRAME_BYTES = mpaFrame.sizeBytes;
export const PRIVATE_BYTES_MAX = 512;
/** Private data of revision 2 that is left for the consumer. */
export const ENHANCED_PRIVATE_BYTES_MAX = PRIVATE_BYTES_MAX - enhancedData.sizeBytes;
/** IRD or ORD that is not negotiated (RFC 6581, 9.1). */
export const READS_NOT_NEGOTIATED = 0x3fff;

const keyOf = (text: string): Uint8Array => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const requestKey = keyOf('MPA ID Req Frame');
const replyKey = keyOf('MPA ID Rep Frame');

/** The enhanced data of revision 2. */
export interface EnhancedConnection {
  readonly isPeerToPeer: boolean;
  /**
   * Set of {@link ReadyMessage}: kinds that the initiator can send, or that the responder accepts.
   */
  readonly readyKinds: number;
  /** IRD and ORD of the frame's sender, 0 to 0x3fff. */
  readonly inboundReads: number;
  readonly outboundReads: number;
}

export interface MpaFrame {
  readonly isReply: boolean;
  readonly wantsMarkers: boolean;
  readonly wantsCrc: boolean;
  readonly isRejected: boolean;
  readonly revision: number;
  /** Absent in revision 1. */
  readonly enhanced: EnhancedConnection | undefined;
  /** Private data of the consumer. */
  readonly privateData: Uint8Array;
}

/** Encodes a frame. Private data is at most 512 bytes, 508 with enhanced data: its owner has checked that. */
export function encodeMpaFrame(frame: MpaFrame): Uint8Array<ArrayBuffer> {
  const { enhanced, privateData } = frame;
  const enhancedBytes = enhanced === undefined ? 0 : enhancedData.sizeBytes;
  const bytes = new Uint8Array(MPA_FRAME_BYTES + enhancedBytes + privateData.length);
  mpaFrame.encodeInto(
    {
      key: frame.isReply ? replyKey : requestKey,
      wantsMarkers: frame.wantsMarkers ? 1 : 0,
      wantsCrc: frame.wantsCrc ? 1 : 0,
      isRejected: frame.isRejected ? 1 : 0,
      isEnhanced: enhanced === undefined ? 0 : 1,
      revision: frame.revision,
      privateBytes: bytes.length - MPA_FRAME_BYTES,
    },
    bytes,
  );
  if (enhanced !== undefined) {
    const { isPeerToPeer, readyKinds } = enhanced;
    const has = (kind: number): number => (isPeerToPeer && (readyKinds & kind) !== 0 ? 1 : 0);
    enhancedData.encodeInto(
      {
        isPeerToPeer: isPeerToPeer ? 1 : 0,
        readyBySend: has(ReadyMessage.SEND),
        readyByWrite: has(ReadyMessage.WRITE),
        readyByRead: has(ReadyMessage.READ),
        inboundReads: enhanced.inboundReads,
        outboundReads: enhanced.outboundReads,
      },
      bytes,
      MPA_FRAME_BYTES,
    );
  }
  bytes.set(privateData, bytes.length - privateData.length);
  return bytes;
}

/** A frame and its bytes in the stream; or that more bytes must arrive, or that no such frame begins here (RFC 5044, 8: code 4). */
export type MpaParsing =
  | { readonly kind: 'frame'; readonly frame: MpaFrame; readonly lengthBytes: number }
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'invalid' };

const incomplete: MpaParsing = { kind: 'incomplete' };
const invalid: MpaParsing = { kind: 'invalid' };

/**
 * Parses the bytes that begin a direction of a stream.
 * @param isReply whether a reply is expected: two sides that both send a request see it here
 */
export function parseMpaFrame(bytes: Uint8Array, isReply: boolean): MpaParsing {
  const key = isReply ? replyKey : requestKey;
  const keyBytes = Math.min(bytes.length, key.length);
  for (let at = 0; at < keyBytes; at++) if (bytes[at] !== key[at]) return invalid;
  if (bytes.length < MPA_FRAME_BYTES) return incomplete;
  const header = mpaFrame.decode(bytes);
  const { privateBytes, revision } = header;
  if (privateBytes > PRIVATE_BYTES_MAX) return invalid;
  const lengthBytes = MPA_FRAME_BYTES + privateBytes;
  if (bytes.length < lengthBytes) return incomplete;
  const hasEnhanced = revision >= 2 && header.isEnhanced === 1;
  if (hasEnhanced && privateBytes < enhancedData.sizeBytes) return invalid;
  const privateFrom = MPA_FRAME_BYTES + (hasEnhanced ? enhancedData.sizeBytes : 0);
  const frame: MpaFrame = {
    isReply,
    wantsMarkers: header.wantsMarkers === 1,
    wantsCrc: header.wantsCrc === 1,
    isRejected: isReply && header.isRejected === 1,
    revision,
    enhanced: hasEnhanced ? enhancedOf(enhancedData.decode(bytes, MPA_FRAME_BYTES)) : undefined,
    privateData: bytes.slice(privateFrom, lengthBytes),
  };
  return { kind: 'frame', frame, lengthBytes };
}

function enhancedOf(data: Decoded<typeof enhancedData>): EnhancedConnection {
  const isPeerToPeer = data.isPeerToPeer === 1;
  const kinds =
    (data.readyBySend === 1 ? ReadyMessage.SEND : 0) |
    (data.readyByWrite === 1 ? ReadyMessage.WRITE : 0) |
    (data.readyByRead === 1 ? ReadyMessage.READ : 0);
  const { inboundReads, outboundReads } = data;
  return { isPeerToPeer, readyKinds: isPeerToPeer ? kinds : ReadyMessage.NONE, inboundReads, outboundReads };
}

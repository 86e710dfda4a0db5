/**
 * Agreement of both sides of a connection by MPA's request and reply (RFC 5044, 7.1.2; RFC 6581, 4 and 9).
 *
 *     initiator: requestOf ──► responder: answerRequest ──► reply ──► initiator: concludeReply ──► ready-to-receive message
 *
 * The connection exists when the responder has validated the initiator's first FPDU: it sends nothing before.
 */
import { IwarpError } from './iwarp-error.ts';
import { type EnhancedConnection, type MpaFrame, READS_NOT_NEGOTIATED } from './mpa-frame.ts';
import { ReadyMessage } from './ready-message.ts';

/** Parameters of one side for one connection. */
export interface MpaParameters {
  /** 1 (RFC 5044) or 2 (RFC 6581). */
  readonly revision: number;
  /** Markers in the FPDUs that this side receives. */
  readonly wantsMarkers: boolean;
  /** This side can insert markers; RFC 5044 wants it to, siw does not. */
  readonly canSendMarkers: boolean;
  readonly wantsCrc: boolean;
  readonly isPeerToPeer: boolean;
  /**
   * Set of {@link ReadyMessage}: kinds that this side can send as initiator and accepts as responder.
   */
  readonly readyKinds: number;
  /** IRD and ORD of the consumer. */
  readonly inboundReads: number;
  readonly outboundReads: number;
  /** IRD that this side can reach if the responder wants more READs outstanding. */
  readonly inboundReadsMax: number;
}

/** Parameters of the stream after MPA. */
export interface MpaAgreement {
  readonly revision: number;
  /** Markers in the FPDUs that this side sends, and in those that it receives. */
  readonly sendsMarkers: boolean;
  readonly receivesMarkers: boolean;
  readonly usesCrc: boolean;
  readonly inboundReads: number;
  readonly outboundReads: number;
  /** The initiator's first message: one {@link ReadyMessage}; NONE without peer-to-peer mode. */
  readonly ready: number;
}

/** The request of an initiator. */
export function requestOf(own: MpaParameters, privateData: Uint8Array): MpaFrame {
  return {
    isReply: false,
    wantsMarkers: own.wantsMarkers,
    wantsCrc: own.wantsCrc,
    isRejected: false,
    revision: own.revision,
    enhanced: own.revision < 2 ? undefined : enhancedOf(own, own.isPeerToPeer, own.readyKinds),
    privateData,
  };
}

const enhancedOf = (
  { inboundReads, outboundReads }: Pick<MpaParameters, 'inboundReads' | 'outboundReads'>,
  isPeerToPeer: boolean,
  readyKinds: number,
): EnhancedConnection => ({
  isPeerToPeer,
  readyKinds: isPeerToPeer ? readyKinds : ReadyMessage.NONE,
  inboundReads: Math.min(inboundReads, READS_NOT_NEGOTIATED),
  outboundReads: Math.min(outboundReads, READS_NOT_NEGOTIATED),
});

/** Whether a responder serves the request, or must close TCP, or reject. */
export type RequestCheck = 'accepted' | 'close' | 'reject';

/**
 * Checks a request. A revision that this side lacks ends the connection: the initiator may connect again with an older one. Markers that this
 * side cannot send are a reason to reject.
 */
export function checkRequest(own: MpaParameters, request: MpaFrame): RequestCheck {
  if (request.revision < 1 || request.revision > own.revision) return 'close';
  return request.wantsMarkers && !own.canSendMarkers ? 'reject' : 'accepted';
}

/** The reply of a responder whose consumer accepts, or rejects. */
export function replyOf(
  own: MpaParameters,
  request: MpaFrame,
  decision: 'accept' | 'reject',
  privateData: Uint8Array,
): MpaFrame {
  const asked = request.enhanced;
  return {
    isReply: true,
    wantsMarkers: own.wantsMarkers,
    wantsCrc: own.wantsCrc || request.wantsCrc,
    isRejected: decision === 'reject',
    revision: request.revision,
    enhanced: asked === undefined ? undefined : answerOf(own, asked),
    privateData,
  };
}

/** RFC 6581, 9.1: the responder's ORD is at most the initiator's IRD. Its kinds of ready-to-receive message are at least one. */
function answerOf(own: MpaParameters, asked: EnhancedConnection): EnhancedConnection {
  const common = own.readyKinds & asked.readyKinds;
  const outboundReads = Math.min(own.outboundReads, asked.inboundReads);
  const kinds = common === ReadyMessage.NONE ? own.readyKinds : common;
  return enhancedOf({ inboundReads: own.inboundReads, outboundReads }, asked.isPeerToPeer, kinds);
}

/** The agreement as the responder sees it, from the request and its own reply. */
export function agreementOfReply(own: MpaParameters, request: MpaFrame, reply: MpaFrame): MpaAgreement {
  const asked = request.enhanced;
  const answered = reply.enhanced;
  return {
    revision: reply.revision,
    sendsMarkers: request.wantsMarkers,
    receivesMarkers: reply.wantsMarkers,
    usesCrc: request.wantsCrc || reply.wantsCrc,
    inboundReads: own.inboundReads,
    outboundReads: answered?.outboundReads ?? own.outboundReads,
    // The initiator chooses among several: the receiver takes the first message of any kind that both listed.
    ready: (asked?.readyKinds ?? ReadyMessage.NONE) & (answered?.readyKinds ?? ReadyMessage.NONE),
  };
}

/** Result of a reply at the initiator; an error ends the stream by a Terminate, after the agreement was taken. */
export type ReplyResult =
  | { readonly kind: 'agreed'; readonly agreement: MpaAgreement }
  | { readonly kind: 'rejected'; readonly privateData: Uint8Array }
  | { readonly kind: 'close' }
  | { readonly kind: 'terminate'; readonly error: number; readonly agreement: MpaAgreement };

/**
 * Concludes the initiator's part.
 * - A reply of another revision, or with markers that this side cannot send: close TCP.
 * - A responder with more READs outstanding than this side can serve: Terminate, code 6.
 * - No common ready-to-receive message: Terminate, code 7.
 */
export function concludeReply(own: MpaParameters, request: MpaFrame, reply: MpaFrame): ReplyResult {
  if (reply.isRejected) return { kind: 'rejected', privateData: reply.privateData };
  if (reply.revision !== request.revision || (reply.wantsMarkers && !own.canSendMarkers))
    return { kind: 'close' };
  const answered = reply.enhanced;
  const isPeerToPeer = request.enhanced?.isPeerToPeer === true && answered?.isPeerToPeer === true;
  const wanted = answered === undefined ? 0 : negotiated(answered.outboundReads, 0);
  const agreement: MpaAgreement = {
    revision: reply.revision,
    sendsMarkers: reply.wantsMarkers,
    receivesMarkers: own.wantsMarkers,
    usesCrc: own.wantsCrc || reply.wantsCrc,
    inboundReads: Math.min(Math.max(own.inboundReads, wanted), own.inboundReadsMax),
    outboundReads: Math.min(
      own.outboundReads,
      answered === undefined ? own.outboundReads : negotiated(answered.inboundReads, own.outboundReads),
    ),
    ready: isPeerToPeer ? firstOf(own.readyKinds & answered.readyKinds) : ReadyMessage.NONE,
  };
  if (wanted > own.inboundReadsMax)
    return { kind: 'terminate', error: IwarpError.MPA_INBOUND_READS, agreement };
  if (isPeerToPeer && agreement.ready === ReadyMessage.NONE)
    return { kind: 'terminate', error: IwarpError.MPA_NO_COMMON_READY, agreement };
  return { kind: 'agreed', agreement };
}

const negotiated = (reads: number, otherwise: number): number =>
  reads === READS_NOT_NEGOTIATED ? otherwise : reads;

/** The kind that the initiator sends: WRITE, which needs nothing of the responder, before SEND and READ. */
function firstOf(kinds: number): number {
  for (const kind of [ReadyMessage.WRITE, ReadyMessage.SEND, ReadyMessage.READ])
    if ((kinds & kind) !== 0) return kind;
  return ReadyMessage.NONE;
}

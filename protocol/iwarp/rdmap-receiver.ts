/**
 * Receives the DDP segments of a stream: checks them as RFC 5041 and RFC 5040 say, has their payload placed, and delivers whole messages in
 * order.
 *
 *     FpduReader ─► versions ─► queue, MSN, MO, buffer │ STag, offset ─► opcode ─► owner places ─► last segment: owner delivers
 *                      └── the first error: owner.streamFailed with the headers to quote; later bytes are dropped
 *
 * The owner answers rights, buffers and placement. Its checks must not change anything: a segment after a gap is checked when it is placed, and
 * checked again when all bytes before it have arrived.
 */
import { ADDRESS_TOP_MAX, ADDRESS_TOP_UNIT, viewOf } from '../../base/index.ts';
import {
  atomicRequest,
  atomicResponse,
  DdpQueue,
  immediateData,
  RdmapOpcode,
  readRequest,
  untaggedHeader,
} from './formats.ts';
import { FpduReader, type SegmentSink } from './fpdu-reader.ts';
import { IwarpError, NO_ERROR } from './iwarp-error.ts';
import { OutstandingReads } from './outstanding-reads.ts';
import {
  AtomicRequest,
  AtomicResponse,
  Operand,
  parseAtomicRequest,
  parseAtomicResponse,
  parseReadRequest,
  ReadRequest,
  readOperand,
} from './rdmap-messages.ts';
import { ReadyMessage } from './ready-message.ts';
import { IWARP_VERSION, readSegmentHeader, SegmentHeader } from './segment-header.ts';
import { QuotedSegment, readTerminate, TERMINATE_BYTES_MAX, TerminateNotice } from './terminate.ts';

/**
 * The owner of a stream. Checks return {@link NO_ERROR} or an {@link IwarpError}. Objects that it receives are reused after the call.
 */
export interface StreamOwner {
  /** Whether the peer may place `lengthBytes` there: STag valid, of this stream, in bounds, with rights. Not called for no bytes. */
  checkTagged(header: SegmentHeader, lengthBytes: number): number;
  /**
   * Places payload of a WRITE or READ response that {@link checkTagged} accepted.
   * @param isEarly after a gap: {@link taggedReached} follows when the gap is closed
   */
  placeTagged(
    header: SegmentHeader,
    bytes: Uint8Array,
    at: number,
    lengthBytes: number,
    isEarly: boolean,
  ): void;
  /** All bytes before a segment whose payload was placed early have arrived, and {@link checkTagged} accepts it again. */
  taggedReached(header: SegmentHeader, lengthBytes: number): void;
  /**
   * Bytes of the receive buffer that takes the message with this number; −1: no buffer is posted.
   * @param isEarly after a gap: −1, too, if the owner places no SEND before its turn
   */
  receiveBufferBytes(message: number, isEarly: boolean): number;
  /** Places payload of a SEND in the buffer of its message. */
  placeReceive(header: SegmentHeader, bytes: Uint8Array, at: number, lengthBytes: number): void;
  /** A WRITE is placed, and so is everything that precedes it in the stream. */
  writeArrived(header: SegmentHeader): void;
  /** A SEND of `lengthBytes` is complete. A SEND with invalidate has the STag in its header. */
  sendArrived(header: SegmentHeader, lengthBytes: number): number;
  /** Immediate data takes the receive buffer of its message, and leaves it as it is. */
  immediateArrived(header: SegmentHeader, data: Operand): void;
  /**
   * A READ must be served; {@link RdmapReceiver.requestServed} follows when its response was sent.
   */
  readRequested(header: SegmentHeader, request: ReadRequest): void;
  /**
   * An atomic must be served, like {@link readRequested}.
   */
  atomicRequested(header: SegmentHeader, request: AtomicRequest): void;
  /** The oldest outstanding READ has its whole response. */
  readCompleted(): void;
  /** The oldest outstanding atomic has its response. */
  atomicCompleted(header: SegmentHeader, response: AtomicResponse): void;
  /** The peer has ended the stream; nothing is passed up any more. */
  terminateArrived(notice: TerminateNotice): void;
  /**
   * The ready-to-receive message of the initiator has arrived: this side may send. Not called if none was agreed.
   * @param opcode of RDMAP; a READ of no bytes is requested afterwards, too
   */
  readyArrived(opcode: number): void;
  /** The stream has an error. The owner sends a Terminate that names it and quotes `quoted`. */
  streamFailed(error: number, quoted: QuotedSegment): void;
}

export interface ReceiverOptions {
  /** Whether the FPDUs that this side receives have markers. */
  readonly hasMarkers: boolean;
  readonly usesCrc: boolean;
  /** IRD: READs and atomics of the peer that this side serves at once. */
  readonly inboundReads: number;
  /** ORD: READs and atomics of this side. */
  readonly outboundReads: number;
  /** Messages of RFC 7306 are allowed: atomics and immediate data. */
  readonly hasExtensions: boolean;
  /** Kinds of message that the initiator may send first, in peer-to-peer mode: a set of {@link ReadyMessage}. */
  readonly awaitedReady: number;
  /** DDP segments after a gap that can be recorded. */
  readonly earlySegmentsMax: number;
}

const QUEUES = 4;
const QUEUES_WITHOUT_EXTENSIONS = 3;
/** The longest payload of RDMAP's own messages that this file reads. */
const HEAD_BYTES = untaggedHeader.sizeBytes + TERMINATE_BYTES_MAX;

export class RdmapReceiver implements SegmentSink {
  readonly reader: FpduReader;
  /** READs and atomics of this side, whose requests its owner adds. */
  readonly outstanding: OutstandingReads;
  /** A valid FPDU has arrived: from then on a responder may send (RFC 5044, 7.1.2). */
  hasReceived = false;
  /** MSN that each queue expects: 32 bits that wrap. */
  readonly messages = new Uint32Array(QUEUES).fill(1);
  readonly #owner: StreamOwner;
  readonly #options: ReceiverOptions;
  /** Bytes of that message that have arrived. */
  readonly #messageBytes = new Uint32Array(QUEUES);
  /** Opcode of the SEND of which some segments have arrived. */
  #sendOpcode = 0;
  /** READs and atomics of the peer that are not served. */
  #requests = 0;
  #awaitedReady: number;
  readonly #header = new SegmentHeader();
  /** The first bytes of a segment: its header; for RDMAP's own messages the whole segment. */
  readonly #headBytes = new Uint8Array(HEAD_BYTES);
  readonly #head = viewOf(this.#headBytes);
  readonly #quoted = new QuotedSegment();
  readonly #readRequest = new ReadRequest();
  readonly #atomicRequest = new AtomicRequest();
  readonly #atomicResponse = new AtomicResponse();
  readonly #operand = new Operand();
  readonly #notice = new TerminateNotice();

  constructor(owner: StreamOwner, options: ReceiverOptions) {
    this.#owner = owner;
    this.#options = options;
    this.#awaitedReady = options.awaitedReady;
    this.reader = new FpduReader(this, options);
    this.outstanding = new OutstandingReads(options.outboundReads);
  }

  /** The response of a READ or atomic of the peer was sent: it may have another one outstanding. */
  requestServed(): void {
    this.#requests--;
  }

  /** Ends the stream at this side's wish: arriving bytes are dropped. */
  stop(): void {
    this.reader.isStopped = true;
  }

  segmentArrived(bytes: Uint8Array, at: number, segmentBytes: number): void {
    this.#segment(bytes, at, segmentBytes, false);
  }

  segmentReached(bytes: Uint8Array, at: number, segmentBytes: number): void {
    this.#segment(bytes, at, segmentBytes, true);
  }

  framingFailed(error: number): void {
    this.#quoted.clear();
    this.#owner.streamFailed(error, this.#quoted);
  }

  mayPlaceEarly(bytes: Uint8Array, at: number, segmentBytes: number): boolean {
    const header = this.#header;
    if (this.#awaitedReady !== ReadyMessage.NONE || !this.#readHead(bytes, at, segmentBytes)) return false;
    if (header.ddpVersion !== IWARP_VERSION || header.rdmapVersion !== IWARP_VERSION) return false;
    const payloadBytes = segmentBytes - header.bytes;
    if (header.isTagged) return this.#mayPlaceTagged(header, payloadBytes);
    if (header.queue !== DdpQueue.SEND || !isSend(header.opcode)) return false;
    const ahead = (header.message - this.messages[DdpQueue.SEND]!) | 0;
    if (ahead < 0) return false;
    return header.messageOffset + payloadBytes <= this.#owner.receiveBufferBytes(header.message, true);
  }

  placeEarly(bytes: Uint8Array, at: number, segmentBytes: number): void {
    const header = this.#header;
    this.#readHead(bytes, at, segmentBytes);
    const payloadBytes = segmentBytes - header.bytes;
    if (payloadBytes === 0) return;
    if (header.isTagged) this.#owner.placeTagged(header, bytes, at + header.bytes, payloadBytes, true);
    else this.#owner.placeReceive(header, bytes, at + header.bytes, payloadBytes);
  }

  #mayPlaceTagged(header: SegmentHeader, payloadBytes: number): boolean {
    const isResponse = header.opcode === RdmapOpcode.READ_RESPONSE;
    if (!isResponse && header.opcode !== RdmapOpcode.WRITE) return false;
    if (payloadBytes === 0) return true;
    if (isResponse && !this.outstanding.covers(header, payloadBytes)) return false;
    return !wraps(header, payloadBytes) && this.#owner.checkTagged(header, payloadBytes) === NO_ERROR;
  }

  #segment(bytes: Uint8Array, at: number, segmentBytes: number, isPlaced: boolean): void {
    const header = this.#header;
    if (!this.#readHead(bytes, at, segmentBytes)) {
      this.#fail(IwarpError.DDP_LOCAL_CATASTROPHIC, segmentBytes);
      return;
    }
    const payloadBytes = segmentBytes - header.bytes;
    const placeFrom = isPlaced ? -1 : at + header.bytes;
    let error: number = NO_ERROR;
    if (this.#awaitedReady !== ReadyMessage.NONE) error = this.#ready(header, payloadBytes);
    else if (header.isTagged) error = this.#tagged(header, bytes, placeFrom, payloadBytes);
    else error = this.#untagged(header, bytes, placeFrom, payloadBytes);
    if (error !== NO_ERROR) this.#fail(error, segmentBytes);
    else this.hasReceived = true;
  }

  #fail(error: number, segmentBytes: number): void {
    this.reader.isStopped = true;
    this.#quoted.quote(this.#head, 0, segmentBytes);
    this.#owner.streamFailed(error, this.#quoted);
  }

  /** RFC 6581, 4.3: the first message is an agreed one, without payload. A SEND takes no receive buffer. */
  #ready(header: SegmentHeader, payloadBytes: number): number {
    const kind = readyKindOf(header);
    const isAgreed = (this.#awaitedReady & kind) !== 0;
    this.#awaitedReady = ReadyMessage.NONE;
    if (!isAgreed) return IwarpError.MPA_NO_COMMON_READY;
    if (kind === ReadyMessage.READ) return this.#readyByRead(header, payloadBytes);
    if (payloadBytes > 0 || !header.isLast) return IwarpError.MPA_NO_COMMON_READY;
    if (kind === ReadyMessage.SEND) this.messages[DdpQueue.SEND]! += 1;
    this.#owner.readyArrived(header.opcode);
    return NO_ERROR;
  }

  #readyByRead(header: SegmentHeader, payloadBytes: number): number {
    const isReady =
      payloadBytes === readRequest.sizeBytes &&
      readRequest.fields.lengthBytes.get(this.#head, untaggedHeader.sizeBytes) === 0;
    if (!isReady) return IwarpError.MPA_NO_COMMON_READY;
    this.#owner.readyArrived(header.opcode);
    return this.#untagged(header, this.#quoted.bytes, -1, payloadBytes);
  }

  #tagged(header: SegmentHeader, bytes: Uint8Array, placeFrom: number, payloadBytes: number): number {
    if (header.ddpVersion !== IWARP_VERSION) return IwarpError.TAGGED_VERSION;
    if (header.rdmapVersion !== IWARP_VERSION) return IwarpError.OPERATION_RDMAP_VERSION;
    const isResponse = header.opcode === RdmapOpcode.READ_RESPONSE;
    if (!isResponse && header.opcode !== RdmapOpcode.WRITE) return IwarpError.OPERATION_UNEXPECTED_OPCODE;
    if (payloadBytes > 0 && wraps(header, payloadBytes)) return IwarpError.TAGGED_OFFSET_WRAPS;
    const owner = this.#owner;
    if (isResponse) {
      const error = this.outstanding.respond(header, payloadBytes);
      if (error !== NO_ERROR) return error;
    }
    if (payloadBytes > 0) {
      const error = owner.checkTagged(header, payloadBytes);
      if (error !== NO_ERROR) return error;
      if (placeFrom >= 0) owner.placeTagged(header, bytes, placeFrom, payloadBytes, false);
      else owner.taggedReached(header, payloadBytes);
    }
    if (!header.isLast) return NO_ERROR;
    if (isResponse) {
      this.outstanding.complete();
      owner.readCompleted();
    } else owner.writeArrived(header);
    return NO_ERROR;
  }

  #untagged(header: SegmentHeader, bytes: Uint8Array, placeFrom: number, payloadBytes: number): number {
    const { queue } = header;
    if (header.ddpVersion !== IWARP_VERSION) return IwarpError.UNTAGGED_VERSION;
    if (queue >= (this.#options.hasExtensions ? QUEUES : QUEUES_WITHOUT_EXTENSIONS))
      return IwarpError.UNTAGGED_QUEUE;
    if (header.message !== this.messages[queue]) return IwarpError.UNTAGGED_MESSAGE;
    if (header.messageOffset !== this.#messageBytes[queue]) return IwarpError.UNTAGGED_OFFSET;
    if (header.rdmapVersion !== IWARP_VERSION) return IwarpError.OPERATION_RDMAP_VERSION;
    switch (queue) {
      case DdpQueue.SEND:
        return this.#sendSegment(header, bytes, placeFrom, payloadBytes);
      case DdpQueue.READ_REQUEST:
        return this.#request(header, payloadBytes);
      case DdpQueue.TERMINATE:
        return this.#terminate(header, payloadBytes);
      default:
        return this.#atomicResponded(header, payloadBytes);
    }
  }

  #sendSegment(header: SegmentHeader, bytes: Uint8Array, placeFrom: number, payloadBytes: number): number {
    const { opcode, messageOffset } = header;
    const bufferBytes = this.#owner.receiveBufferBytes(header.message, false);
    if (bufferBytes < 0) return IwarpError.UNTAGGED_NO_BUFFER;
    if (isImmediate(opcode) && this.#options.hasExtensions) return this.#immediate(header, payloadBytes);
    if (!isSend(opcode) || (messageOffset > 0 && opcode !== this.#sendOpcode))
      return IwarpError.OPERATION_UNEXPECTED_OPCODE;
    if (messageOffset + payloadBytes > bufferBytes) return IwarpError.UNTAGGED_TOO_LONG;
    this.#sendOpcode = opcode;
    if (placeFrom >= 0 && payloadBytes > 0) this.#owner.placeReceive(header, bytes, placeFrom, payloadBytes);
    const lengthBytes = messageOffset + payloadBytes;
    this.#messageBytes[DdpQueue.SEND] = lengthBytes;
    if (!header.isLast) return NO_ERROR;
    this.#endMessage(DdpQueue.SEND);
    return this.#owner.sendArrived(header, lengthBytes);
  }

  #immediate(header: SegmentHeader, payloadBytes: number): number {
    const error = this.#checkSingle(header, payloadBytes, immediateData.sizeBytes);
    if (error !== NO_ERROR) return error;
    this.#endMessage(DdpQueue.SEND);
    readOperand(this.#head, untaggedHeader.sizeBytes, this.#operand);
    this.#owner.immediateArrived(header, this.#operand);
    return NO_ERROR;
  }

  /** A READ or an atomic. More of them than IRD have no buffer in their queue (RFC 5040, 4.4). */
  #request(header: SegmentHeader, payloadBytes: number): number {
    const isRead = header.opcode === RdmapOpcode.READ_REQUEST;
    const isAtomic = header.opcode === RdmapOpcode.ATOMIC_REQUEST && this.#options.hasExtensions;
    if (this.#requests >= this.#options.inboundReads) return IwarpError.UNTAGGED_NO_BUFFER;
    if (!isRead && !isAtomic) return IwarpError.OPERATION_UNEXPECTED_OPCODE;
    const format = isRead ? readRequest : atomicRequest;
    const error = this.#checkSingle(header, payloadBytes, format.sizeBytes);
    if (error !== NO_ERROR) return error;
    this.#requests++;
    this.#endMessage(DdpQueue.READ_REQUEST);
    if (isRead) {
      parseReadRequest(this.#head, untaggedHeader.sizeBytes, this.#readRequest);
      this.#owner.readRequested(header, this.#readRequest);
    } else {
      parseAtomicRequest(this.#head, untaggedHeader.sizeBytes, this.#atomicRequest);
      this.#owner.atomicRequested(header, this.#atomicRequest);
    }
    return NO_ERROR;
  }

  #terminate(header: SegmentHeader, payloadBytes: number): number {
    if (header.opcode !== RdmapOpcode.TERMINATE) return IwarpError.OPERATION_UNEXPECTED_OPCODE;
    if (payloadBytes > TERMINATE_BYTES_MAX) return IwarpError.UNTAGGED_TOO_LONG;
    if (!header.isLast || !readTerminate(this.#head, untaggedHeader.sizeBytes, payloadBytes, this.#notice))
      return IwarpError.OPERATION_CATASTROPHIC_STREAM;
    this.reader.isStopped = true;
    this.#owner.terminateArrived(this.#notice);
    return NO_ERROR;
  }

  #atomicResponded(header: SegmentHeader, payloadBytes: number): number {
    if (header.opcode !== RdmapOpcode.ATOMIC_RESPONSE) return IwarpError.OPERATION_UNEXPECTED_OPCODE;
    const wrong = this.#checkSingle(header, payloadBytes, atomicResponse.sizeBytes);
    if (wrong !== NO_ERROR) return wrong;
    parseAtomicResponse(this.#head, untaggedHeader.sizeBytes, this.#atomicResponse);
    const error = this.outstanding.respondAtomic(this.#atomicResponse.requestId);
    if (error !== NO_ERROR) return error;
    this.#endMessage(DdpQueue.ATOMIC_RESPONSE);
    this.outstanding.complete();
    this.#owner.atomicCompleted(header, this.#atomicResponse);
    return NO_ERROR;
  }

  /** A message of RDMAP's own has one segment: MULPDU is longer than each of them. */
  #checkSingle(header: SegmentHeader, payloadBytes: number, wantedBytes: number): number {
    if (payloadBytes > wantedBytes) return IwarpError.UNTAGGED_TOO_LONG;
    if (payloadBytes < wantedBytes || !header.isLast) return IwarpError.OPERATION_CATASTROPHIC_STREAM;
    return NO_ERROR;
  }

  #endMessage(queue: number): void {
    this.messages[queue]! += 1;
    this.#messageBytes[queue] = 0;
  }

  /**
   * Reads a header, and the payload unless it is a SEND. @returns false if the segment is shorter than its header
   */
  #readHead(bytes: Uint8Array, at: number, segmentBytes: number): boolean {
    const header = this.#header;
    this.#copyHead(bytes, at, 0, Math.min(segmentBytes, untaggedHeader.sizeBytes));
    if (!readSegmentHeader(this.#head, 0, segmentBytes, header)) return false;
    if (!header.isTagged && !isSend(header.opcode))
      this.#copyHead(bytes, at, untaggedHeader.sizeBytes, Math.min(segmentBytes, HEAD_BYTES));
    return true;
  }

  /** A few bytes, of many buffers: byte by byte. */
  #copyHead(bytes: Uint8Array, at: number, from: number, to: number): void {
    for (let index = from; index < to; index++) this.#headBytes[index] = bytes[at + index]!;
  }
}

/** The ready-to-receive message that a first segment may be; NONE for another. */
function readyKindOf({ isTagged, opcode }: SegmentHeader): number {
  if (isTagged) return opcode === RdmapOpcode.WRITE ? ReadyMessage.WRITE : ReadyMessage.NONE;
  if (opcode === RdmapOpcode.SEND) return ReadyMessage.SEND;
  return opcode === RdmapOpcode.READ_REQUEST ? ReadyMessage.READ : ReadyMessage.NONE;
}

const isSend = (opcode: number): boolean =>
  opcode >= RdmapOpcode.SEND && opcode <= RdmapOpcode.SEND_SOLICITED_INVALIDATE;

const isImmediate = (opcode: number): boolean =>
  opcode === RdmapOpcode.IMMEDIATE || opcode === RdmapOpcode.IMMEDIATE_SOLICITED;

/** Whether the payload passes the end of the 64-bit offsets. */
const wraps = ({ offset, offsetTop }: SegmentHeader, payloadBytes: number): boolean =>
  offsetTop === ADDRESS_TOP_MAX && offset + payloadBytes > ADDRESS_TOP_UNIT;

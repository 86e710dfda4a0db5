/**
 * Sends the messages of a stream as DDP segments, one FPDU each: headers, MSN, MO and offsets of a message that is cut at MULPDU.
 *
 *     owner: beginSend / beginWrite / … of a message ─► writeSegment until it is written: each call writes one FPDU at a place of the owner's
 *
 * A message is an object of the owner; several may be written in turns, but those of one queue one after the other, since a receiver expects
 * the segments of a queue in order. Nothing is allocated for a segment.
 */
import { viewOf, type Wide } from '../../base/index.ts';
import {
  atomicRequest,
  atomicResponse,
  DdpQueue,
  immediateData,
  RdmapOpcode,
  readRequest,
  taggedHeader,
  untaggedHeader,
} from './formats.ts';
import { multiplePduBytes, segmentBytesWithin } from './fpdu.ts';
import { FpduWriter } from './fpdu-writer.ts';
import {
  type AtomicRequest,
  type AtomicResponse,
  type Operand,
  putOperand,
  type ReadRequest,
  writeAtomicRequest,
  writeAtomicResponse,
  writeReadRequest,
} from './rdmap-messages.ts';
import { SegmentHeader } from './segment-header.ts';
import { type QuotedSegment, TERMINATE_BYTES_MAX, writeTerminate } from './terminate.ts';

/** A message that is being sent. */
export class OutboundMessage {
  opcode = 0;
  isTagged = false;
  /** STag of the sink, or STag to invalidate. */
  steeringTag = 0;
  /** Tagged offset of its first byte, as base/address.ts explains. */
  offset: Wide = 0;
  offsetTop = 0;
  queue = 0;
  message = 0;
  lengthBytes = 0;
  /** Written bytes of the present message. */
  writtenBytes = 0;
  /** True if the whole message was written. */
  isWritten = true;
}

export interface SenderOptions {
  /** Whether the FPDUs that this side sends have markers. */
  readonly hasMarkers: boolean;
  readonly usesCrc: boolean;
  /** EMSS: the maximum segment size of TCP less the options of each segment. */
  readonly effectiveSegmentBytes: number;
}

const QUEUES = 4;

export class RdmapSender {
  readonly writer: FpduWriter;
  /** Bytes of the longest DDP segment. */
  multiplePduBytes: number;
  /** A Terminate was written: nothing may follow (RFC 5040, 6.2). */
  hasTerminated = false;
  /** MSN of the next message of each queue: 32 bits that wrap. */
  readonly messages = new Uint32Array(QUEUES).fill(1);
  readonly #header = new SegmentHeader();
  readonly #own = new OutboundMessage();
  readonly #ownBytes = new Uint8Array(TERMINATE_BYTES_MAX + atomicRequest.sizeBytes);
  readonly #ownView = viewOf(this.#ownBytes);

  constructor(options: SenderOptions) {
    this.writer = new FpduWriter(options);
    this.multiplePduBytes = multiplePduBytes(options.effectiveSegmentBytes, options.hasMarkers);
  }

  /** The effective segment size of TCP has changed. */
  setEffectiveSegment(bytes: number): void {
    this.multiplePduBytes = multiplePduBytes(bytes, this.writer.hasMarkers);
  }

  /** Begins a SEND of any form; `invalidated` is the STag that the receiver invalidates, or 0. */
  beginSend(message: OutboundMessage, opcode: number, invalidated: number, lengthBytes: number): void {
    this.#beginUntagged(message, opcode, DdpQueue.SEND, lengthBytes);
    message.steeringTag = invalidated;
  }

  /** Begins a WRITE or a READ response: payload for `steeringTag` from the offset on. */
  beginTagged(
    message: OutboundMessage,
    opcode: number,
    steeringTag: number,
    offset: number,
    offsetTop: number,
    lengthBytes: number,
  ): void {
    message.opcode = opcode;
    message.isTagged = true;
    message.steeringTag = steeringTag;
    message.offset = offset;
    message.offsetTop = offsetTop;
    message.lengthBytes = lengthBytes;
    message.writtenBytes = 0;
    message.isWritten = false;
  }

  /** Payload bytes of the message's next segment, if its FPDU must fit into `roomBytes`; −1 if it does not fit even without payload. */
  nextPayloadBytes(message: OutboundMessage, roomBytes: number): number {
    const { phase, hasMarkers } = this.writer;
    const headerBytes = message.isTagged ? taggedHeader.sizeBytes : untaggedHeader.sizeBytes;
    const limit = Math.min(this.multiplePduBytes, segmentBytesWithin(roomBytes, phase, hasMarkers));
    const left = message.lengthBytes - message.writtenBytes;
    const room = limit - headerBytes;
    return room < 0 || (room === 0 && left > 0) ? -1 : Math.min(left, room);
  }

  /**
   * Writes the message's next segment as one FPDU.
   * @param at where the FPDU begins in `target`
   * @param payload of which the segment's bytes begin at `payloadAt`
   * @param payloadBytes of {@link nextPayloadBytes}, or fewer
   * @returns bytes of the FPDU
   */
  writeSegment(
    message: OutboundMessage,
    target: Uint8Array,
    at: number,
    payload: Uint8Array,
    payloadAt: number,
    payloadBytes: number,
  ): number {
    const header = this.#header;
    header.opcode = message.opcode;
    header.isTagged = message.isTagged;
    header.steeringTag = message.steeringTag;
    header.offset = message.offset + message.writtenBytes;
    header.offsetTop = message.offsetTop;
    header.queue = message.queue;
    header.message = message.message;
    header.messageOffset = message.writtenBytes;
    message.writtenBytes += payloadBytes;
    message.isWritten = message.writtenBytes === message.lengthBytes;
    header.isLast = message.isWritten;
    return this.writer.write(target, at, header, payload, payloadAt, payloadBytes);
  }

  /** Writes a READ request as one FPDU. @returns its bytes */
  writeReadRequest(target: Uint8Array, at: number, request: ReadRequest): number {
    writeReadRequest(this.#ownView, 0, request);
    return this.#writeOwn(target, at, RdmapOpcode.READ_REQUEST, DdpQueue.READ_REQUEST, readRequest.sizeBytes);
  }

  /** Writes an atomic request (RFC 7306) as one FPDU. @returns its bytes */
  writeAtomicRequest(target: Uint8Array, at: number, request: AtomicRequest): number {
    writeAtomicRequest(this.#ownView, 0, request);
    const { sizeBytes } = atomicRequest;
    return this.#writeOwn(target, at, RdmapOpcode.ATOMIC_REQUEST, DdpQueue.READ_REQUEST, sizeBytes);
  }

  /** Writes an atomic response as one FPDU. @returns its bytes */
  writeAtomicResponse(target: Uint8Array, at: number, response: AtomicResponse): number {
    writeAtomicResponse(this.#ownView, 0, response);
    const { sizeBytes } = atomicResponse;
    return this.#writeOwn(target, at, RdmapOpcode.ATOMIC_RESPONSE, DdpQueue.ATOMIC_RESPONSE, sizeBytes);
  }

  /** Writes immediate data (RFC 7306), with solicited event or without, as one FPDU. @returns its bytes */
  writeImmediate(target: Uint8Array, at: number, opcode: number, data: Operand): number {
    putOperand(this.#ownView, 0, data);
    return this.#writeOwn(target, at, opcode, DdpQueue.SEND, immediateData.sizeBytes);
  }

  /** Writes the Terminate of an error as one FPDU; nothing may follow it. @returns its bytes */
  writeTerminate(target: Uint8Array, at: number, error: number, quoted: QuotedSegment): number {
    this.hasTerminated = true;
    const bytes = writeTerminate(this.#ownView, 0, error, quoted);
    return this.#writeOwn(target, at, RdmapOpcode.TERMINATE, DdpQueue.TERMINATE, bytes);
  }

  #writeOwn(target: Uint8Array, at: number, opcode: number, queue: number, bytes: number): number {
    this.#beginUntagged(this.#own, opcode, queue, bytes);
    return this.writeSegment(this.#own, target, at, this.#ownBytes, 0, bytes);
  }

  #beginUntagged(message: OutboundMessage, opcode: number, queue: number, lengthBytes: number): void {
    message.opcode = opcode;
    message.isTagged = false;
    message.steeringTag = 0;
    message.queue = queue;
    message.message = this.messages[queue]!;
    message.lengthBytes = lengthBytes;
    message.writtenBytes = 0;
    message.isWritten = false;
    this.messages[queue]! += 1;
  }
}

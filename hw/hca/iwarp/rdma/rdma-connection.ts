/**
 * The stream of a queue pair: RDMAP over DDP over MPA over a TCP connection of this card. It turns received segments into jobs of the
 * placement queue, without reading or writing host memory, and notes how the stream ends; it writes FPDUs of packets.
 *
 *     TcpStreams ──► FpduReader ──► RdmapReceiver ──► RdmaConnection ──► PlacementQueue
 *                                                          └── failure, Terminate, FIN, end ──► StreamEnds, after the jobs before them
 *     RdmaTransmitter ──► RdmaConnection.write… ──► RdmapSender ──► FpduWriter ──► TcpStreams.send
 */
import type { Cycles } from '../../../../base/index.ts';
import {
  type AtomicRequest,
  type AtomicResponse,
  copyAtomicRequest,
  copyOperand,
  type FpduReader,
  immediateData,
  markedBytes,
  NO_ERROR,
  Operand,
  OutboundMessage,
  plainBytes,
  QuotedSegment,
  RdmapOpcode,
  RdmapReceiver,
  RdmapSender,
  ReadRequest,
  ReadyMessage,
  SegmentHeader,
  type StreamOwner,
  type StreamState,
  stateAfter,
  type TerminateNotice,
  untaggedHeader,
} from '../../../../protocol/iwarp/index.ts';
import { type QueuePair, SegmentTimes } from '../../objects/index.ts';
import type { RdmaStream, SendSegment, StreamEnd, TcpStreams } from '../streams.ts';
import { AtomicWriter } from './atomic-writer.ts';
import { type InboundRead, InboundReads } from './inbound-reads.ts';
import { type EarlySegment, JobKind, type PlacementJob, type PlacementQueue } from './placement-queue.ts';
import type { RdmaPacket } from './rdma-packet.ts';
import type { SegmentCounters, SegmentDirections } from './segment-counters.ts';

/** Numbers of request segments are counted modulo this mask plus 1. */
export const REQUEST_NUMBER_MASK = 2 ** 24 - 1;
/** Room for RDMAP's own messages: a Terminate is the longest. */
export const OWN_MESSAGE_BYTES = 128;
const NO_MESSAGE = new Uint8Array(0);
/** The payload of a SEND is compared with its receive when it is placed. */
const ANY_BYTES = Number.MAX_SAFE_INTEGER;
const NO_BUFFER = -1;
/** Bytes of an atomic's result. */
const RESULT_BYTES = 8;
/** STag of a ready-to-receive message, which a receiver does not check. */
const READY_TAG = 1;

/** Fields of the QP's context that describe its stream: see abi/tcp-connection.ts. */
export interface StreamTraits {
  readonly connection: number;
  readonly isInitiator: boolean;
  readonly sendsMarkers: boolean;
  readonly receivesMarkers: boolean;
  readonly hasCrc: boolean;
  /** Set of {@link ReadyMessage}. */
  readonly ready: number;
  readonly inboundReads: number;
  readonly outboundReads: number;
}

/** Blocks that act when something happened to a stream. */
export interface StreamEvents {
  /** The first FPDU of the peer has arrived. */
  firstArrived(connection: RdmaConnection): void;
  /** The stream ends, or has to be closed: see {@link RdmaConnection.failure} and the fields after it. */
  endDue(connection: RdmaConnection): void;
  /** Notes that there is room for segments again. */
  writable(connection: RdmaConnection, cycle: Cycles): void;
}

export interface ConnectionSetup {
  readonly streams: TcpStreams;
  readonly queue: PlacementQueue;
  readonly events: StreamEvents;
  readonly counters: SegmentCounters;
  /** Whether messages of RFC 7306 are allowed. */
  readonly hasExtensions: boolean;
  /** Segments that may be placed before a gap is closed. */
  readonly earlySegmentsMax: number;
}

export class RdmaConnection implements RdmaStream, StreamOwner {
  readonly pair: QueuePair;
  readonly traits: StreamTraits;
  /** Number of the TCP connection. */
  readonly number: number;
  readonly sender: RdmapSender;
  readonly receiver: RdmapReceiver;
  readonly reads: InboundReads;
  state: StreamState = stateAfter('IDLE', 'established');
  /** Messages of requests may be sent; READs may be answered. */
  maySend = false;
  /** True if a ready-to-receive message must be sent before them. */
  isReadyDue = false;
  /** True if a Terminate must be sent. */
  isTerminateDue = false;
  /** Received segments that are not placed. */
  jobCount = 0;
  /** Request segments numbered at this side, and received: both sides name a segment by its number. */
  nextRequestNumber = 0;
  nextInboundNumber = 0;
  /** Error of the stream, found at this side or wished by software; and the segment in error. */
  failure: number = NO_ERROR;
  readonly quoted = new QuotedSegment();
  /** Error of the Terminate that the peer has sent. */
  peerFailure: number = NO_ERROR;
  hasPeerClosed = false;
  isCloseRequested = false;
  /** End of TCP; 0 if it has not ended. */
  end: StreamEnd | 0 = 0;
  /** The first byte of the peer has arrived. */
  hasReceived = false;
  /** It waits for room in the retransmission memory. */
  isBlocked = false;
  /** Both of its ends are at this card. */
  readonly isLooped: boolean;
  readonly #setup: ConnectionSetup;
  readonly #segments: SegmentDirections;
  readonly #request = new OutboundMessage();
  readonly #response = new OutboundMessage();
  readonly #readRequest = new ReadRequest();
  readonly #atomics = new AtomicWriter();
  readonly #immediate = new Operand();
  /** Bytes of the WRITE that is arriving, and of the last one that has arrived. */
  #writeBytes = 0;
  #writtenBytes = 0;
  readonly #result = new DataView(new ArrayBuffer(RESULT_BYTES));
  /** The ready-to-receive message was a READ, and its response is not placed. */
  #awaitsReadyAnswer = false;
  /** The ready-to-receive message that has just arrived may be a READ. */
  #isReadyRead = false;
  /** Header of a READ response without payload. */
  readonly #header = new SegmentHeader();
  #lastJob: PlacementJob | undefined = undefined;
  /** Segments with payload after a gap, in the order of their arrival. */
  readonly #early: EarlySegment[] = [];

  constructor(pair: QueuePair, traits: StreamTraits, setup: ConnectionSetup) {
    this.pair = pair;
    this.traits = traits;
    this.number = traits.connection;
    this.#setup = setup;
    this.isLooped = setup.streams.isLooped(traits.connection);
    this.#segments = this.isLooped ? setup.counters.looped : setup.counters;
    const { hasCrc: usesCrc, inboundReads, outboundReads, isInitiator, ready } = traits;
    const effectiveSegmentBytes = setup.streams.maxSegmentBytes(traits.connection);
    this.sender = new RdmapSender({ hasMarkers: traits.sendsMarkers, usesCrc, effectiveSegmentBytes });
    this.receiver = new RdmapReceiver(this, {
      hasMarkers: traits.receivesMarkers,
      usesCrc,
      inboundReads,
      // A ready-to-receive message may be a READ.
      outboundReads: Math.max(1, outboundReads),
      hasExtensions: setup.hasExtensions,
      awaitedReady: isInitiator ? ReadyMessage.NONE : ready,
      earlySegmentsMax: setup.earlySegmentsMax,
    });
    this.reads = new InboundReads(Math.max(1, inboundReads));
  }

  // ---- as TCP calls it ----

  get reader(): FpduReader {
    return this.receiver.reader;
  }

  get isBusy(): boolean {
    return this.#setup.queue.isBusy;
  }

  writable(cycle: Cycles): void {
    this.isBlocked = false;
    this.#setup.events.writable(this, cycle);
  }

  peerClosed(): void {
    this.hasPeerClosed = true;
    this.#setup.events.endDue(this);
  }

  closeRequested(): void {
    this.isCloseRequested = true;
    this.#setup.events.endDue(this);
  }

  terminateRequested(error: number): void {
    if (this.failure === NO_ERROR) this.failure = error;
    this.#setup.events.endDue(this);
  }

  ended(event: StreamEnd): void {
    this.end = event;
    this.#setup.events.endDue(this);
  }

  // ---- as the receiver of RDMAP calls it ----

  /** Keys and rights are checked when the segment is placed. */
  checkTagged(): number {
    return NO_ERROR;
  }

  placeTagged(
    header: SegmentHeader,
    bytes: Uint8Array,
    at: number,
    lengthBytes: number,
    isEarly: boolean,
  ): void {
    if (isEarly) return this.#placeEarly(header, bytes, at, lengthBytes);
    const kind = kindOfTagged(header);
    if (kind === JobKind.WRITE) this.#writeBytes += lengthBytes;
    this.#add(kind, header, bytes, at, lengthBytes);
  }

  /** The segment counts as received now, and the placement stage checks its key again (RFC 5041, 5.3: delivery in order). */
  taggedReached(header: SegmentHeader, lengthBytes: number): void {
    const { steeringTag, offset, offsetTop } = header;
    const index = this.#early.findIndex(
      (one) =>
        one.steeringTag === steeringTag &&
        one.offset === offset &&
        one.offsetTop === offsetTop &&
        one.lengthBytes === lengthBytes,
    );
    const [early] = this.#early.splice(index, 1);
    const kind = kindOfTagged(header);
    if (kind === JobKind.WRITE) this.#writeBytes += lengthBytes;
    const job = this.#addCounted(kind, header, NO_MESSAGE, 0, 0, lengthBytes);
    job.early = early;
    job.isReached = true;
  }

  /** Receives are taken in their order: a SEND after a gap waits in TCP. */
  receiveBufferBytes(_message: number, isEarly: boolean): number {
    return isEarly ? NO_BUFFER : ANY_BYTES;
  }

  placeReceive(header: SegmentHeader, bytes: Uint8Array, at: number, lengthBytes: number): void {
    this.#add(JobKind.SEND, header, bytes, at, lengthBytes);
  }

  /**
   * Handles a WRITE, of which only a later message notifies the target: nothing is delivered, and an empty one is not
   * placed.
   */
  writeArrived(header: SegmentHeader): void {
    this.#writtenBytes = this.#writeBytes;
    this.#writeBytes = 0;
    if (this.#endMessage(JobKind.WRITE)) return;
    this.#arrived(header.opcode, 0);
    this.#countRequest();
  }

  sendArrived(header: SegmentHeader): number {
    if (!this.#endMessage(JobKind.SEND)) this.#add(JobKind.SEND, header, NO_MESSAGE, 0, 0).isEnd = true;
    return NO_ERROR;
  }

  /** Immediate data after a WRITE make it a WRITE with immediate data (RFC 7306, 6). Software receives the first 4 of the 8 bytes. */
  immediateArrived(header: SegmentHeader, data: Operand): void {
    const job = this.#add(JobKind.IMMEDIATE, header, NO_MESSAGE, 0, 0);
    job.immediate = data.high;
    job.writtenBytes = this.#writtenBytes;
    this.#writtenBytes = 0;
    job.isEnd = true;
  }

  atomicRequested(header: SegmentHeader, request: AtomicRequest): void {
    const job = this.#add(JobKind.ATOMIC_REQUEST, header, NO_MESSAGE, 0, 0);
    copyAtomicRequest(request, job.atomic);
    job.isEnd = true;
  }

  /** Memory gets the old value in the byte order of the host, as from other transports of this card. */
  atomicCompleted(header: SegmentHeader, { original }: AtomicResponse): void {
    this.#result.setUint32(0, original.low, true);
    this.#result.setUint32(4, original.high, true);
    const bytes = new Uint8Array(this.#result.buffer);
    this.#add(JobKind.ATOMIC_RESPONSE, header, bytes, 0, RESULT_BYTES).isEnd = true;
  }

  readRequested(header: SegmentHeader, request: ReadRequest): void {
    const next = this.nextInboundNumber;
    const job = this.#add(JobKind.READ_REQUEST, header, NO_MESSAGE, 0, 0);
    if (this.#isReadyRead) this.nextInboundNumber = next;
    this.#isReadyRead = false;
    Object.assign(job.request, request);
    job.isEnd = true;
  }

  readCompleted(): void {
    if (this.#endMessage(JobKind.READ_RESPONSE)) return;
    this.#header.opcode = RdmapOpcode.READ_RESPONSE;
    this.#add(JobKind.READ_RESPONSE, this.#header, NO_MESSAGE, 0, 0).isEnd = true;
  }

  terminateArrived({ error }: TerminateNotice): void {
    this.peerFailure = error;
    this.#segments.received.count(RdmapOpcode.TERMINATE, 0);
    this.#setup.counters.countTerminate('received', error);
    this.#setup.events.endDue(this);
  }

  /** A ready-to-receive message is not numbered among requests, though it may be a READ. */
  readyArrived(opcode: number): void {
    this.#isReadyRead = opcode === RdmapOpcode.READ_REQUEST;
    if (!this.#isReadyRead) this.#segments.received.count(opcode, 0);
    this.#noteFirst();
  }

  streamFailed(error: number, quoted: QuotedSegment): void {
    if (this.failure !== NO_ERROR) return;
    this.failure = error;
    this.quoted.copyFrom(quoted);
    this.#setup.events.endDue(this);
  }

  /** Whether the READ whose response is whole is the ready-to-receive message: it has no record, and its response is the first. */
  takeReadyAnswer(): boolean {
    const isOfReady = this.#awaitsReadyAnswer;
    this.#awaitsReadyAnswer = false;
    return isOfReady;
  }

  // ---- as the transmitter calls it ----

  /** Bytes of the longest DDP segment less its header. */
  payloadBytesMax(headerBytes: number): number {
    return this.sender.multiplePduBytes - headerBytes;
  }

  /** Bytes of the FPDU of a segment, wherever markers may lie. */
  fpduBytes(segmentBytes: number): number {
    return this.traits.sendsMarkers ? markedBytes(0, segmentBytes) : plainBytes(segmentBytes);
  }

  /** Bytes of the FPDU of immediate data. */
  get immediateBytes(): number {
    return this.fpduBytes(untaggedHeader.sizeBytes + immediateData.sizeBytes);
  }

  /** Whether a segment of this many bytes may be opened; if not, {@link writable} follows. */
  hasRoom(segmentBytes: number): boolean {
    const hasRoom = this.#setup.streams.hasRoom(this.number, segmentBytes);
    this.isBlocked = !hasRoom;
    return hasRoom;
  }

  /** Opens a place in the retransmission memory for `packet`. The caller has checked {@link hasRoom}. */
  open(packet: RdmaPacket, segmentBytes: number): void {
    packet.connection = this;
    packet.segment = this.#setup.streams.open(this.number, segmentBytes);
  }

  discard(segment: SendSegment): void {
    this.#setup.streams.discard(this.number, segment);
  }

  /** The message of requests that is being sent, and that of a READ response. */
  get request(): OutboundMessage {
    return this.#request;
  }

  get response(): OutboundMessage {
    return this.#response;
  }

  /** Writes the next segment of a message as an FPDU, and hands it to TCP. */
  writeSegment(message: OutboundMessage, packet: RdmaPacket, sram: Uint8Array, cycle: Cycles): void {
    const segment = packet.segment!;
    const { payloadOffset, payloadBytes } = packet;
    const { bytes, start } = segment;
    const length = this.sender.writeSegment(message, bytes, start, sram, payloadOffset, payloadBytes);
    this.#send(segment, message.opcode, payloadBytes, length, cycle);
    packet.segment = undefined;
  }

  /** Writes the last segment of a WRITE and its immediate data as two FPDUs of one segment of TCP. */
  writeLastWithImmediate(packet: RdmaPacket, sram: Uint8Array, cycle: Cycles): void {
    const segment = packet.segment!;
    const { payloadOffset, payloadBytes, request } = packet;
    const { bytes, start } = segment;
    const message = this.#request;
    const written = this.sender.writeSegment(message, bytes, start, sram, payloadOffset, payloadBytes);
    this.#segments.sent.count(message.opcode, payloadBytes);
    const { IMMEDIATE, IMMEDIATE_SOLICITED } = RdmapOpcode;
    const opcode = request.isSolicited === 1 ? IMMEDIATE_SOLICITED : IMMEDIATE;
    this.#immediate.high = request.immediate >>> 0;
    const length = this.sender.writeImmediate(bytes, start + written, opcode, this.#immediate);
    segment.fpduCount = 2;
    this.#send(segment, opcode, 0, written + length, cycle);
    packet.segment = undefined;
  }

  /** Writes the atomic request of a packet, and hands it to TCP. */
  writeAtomicRequest(packet: RdmaPacket, cycle: Cycles): void {
    const segment = packet.segment!;
    const atomic = this.#atomics.requestOf(packet.request);
    this.receiver.outstanding.addAtomic(atomic.requestId);
    noteTimes(packet);
    const length = this.sender.writeAtomicRequest(segment.bytes, segment.start, atomic);
    this.#send(segment, RdmapOpcode.ATOMIC_REQUEST, 0, length, cycle);
    packet.segment = undefined;
  }

  /** Writes the old value of an atomic of the peer, and hands it to TCP. */
  writeAtomicResponse(packet: RdmaPacket, { atomic, original }: InboundRead, cycle: Cycles): void {
    const segment = packet.segment!;
    const { response } = this.#atomics;
    response.requestId = atomic.requestId;
    copyOperand(original, response.original);
    const length = this.sender.writeAtomicResponse(segment.bytes, segment.start, response);
    this.#send(segment, RdmapOpcode.ATOMIC_RESPONSE, RESULT_BYTES, length, cycle);
    packet.segment = undefined;
  }

  /** Writes the READ request of a packet, and hands it to TCP. */
  writeReadRequest(packet: RdmaPacket, cycle: Cycles): void {
    const { request } = packet;
    const sink = request.segment(0);
    const hasSink = request.messageBytes > 0;
    const read = this.#readRequest;
    read.sinkTag = hasSink ? sink.key : 0;
    read.sinkOffset = hasSink ? sink.address : 0;
    read.sinkOffsetTop = hasSink ? sink.addressTop : 0;
    read.lengthBytes = request.messageBytes;
    read.sourceTag = request.remoteKey;
    read.sourceOffset = request.remoteAddress;
    read.sourceOffsetTop = request.remoteAddressTop;
    noteTimes(packet);
    this.#writeRead(packet.segment!, cycle);
    packet.segment = undefined;
  }

  /** Sends the ready-to-receive message of peer-to-peer mode (RFC 6581, 4.3). The caller has checked {@link hasRoom}. */
  writeReady(cycle: Cycles): void {
    const segment = this.#setup.streams.open(this.number, OWN_MESSAGE_BYTES);
    const { ready } = this.traits;
    if ((ready & ReadyMessage.READ) !== 0) {
      this.#awaitsReadyAnswer = true;
      Object.assign(this.#readRequest, new ReadRequest());
      this.#writeRead(segment, cycle);
      return;
    }
    const message = this.#request;
    if ((ready & ReadyMessage.WRITE) !== 0)
      this.sender.beginTagged(message, RdmapOpcode.WRITE, READY_TAG, 0, 0, 0);
    else this.sender.beginSend(message, RdmapOpcode.SEND, 0, 0);
    const length = this.sender.writeSegment(message, segment.bytes, segment.start, NO_MESSAGE, 0, 0);
    this.#send(segment, message.opcode, 0, length, cycle);
  }

  /** Sends the Terminate of {@link failure}. The caller has checked {@link hasRoom}. */
  writeTerminate(cycle: Cycles): void {
    const segment = this.#setup.streams.open(this.number, OWN_MESSAGE_BYTES);
    const length = this.sender.writeTerminate(segment.bytes, segment.start, this.failure, this.quoted);
    this.#send(segment, RdmapOpcode.TERMINATE, 0, length, cycle);
    this.#setup.counters.countTerminate('sent', this.failure);
  }

  #writeRead(segment: SendSegment, cycle: Cycles): void {
    const read = this.#readRequest;
    this.receiver.outstanding.addRead(read.sinkTag, read.sinkOffset, read.sinkOffsetTop, read.lengthBytes);
    const length = this.sender.writeReadRequest(segment.bytes, segment.start, read);
    this.#send(segment, RdmapOpcode.READ_REQUEST, 0, length, cycle);
  }

  #send(segment: SendSegment, opcode: number, payloadBytes: number, length: number, cycle: Cycles): void {
    this.#segments.sent.count(opcode, payloadBytes);
    this.#setup.streams.send(this.number, segment, length, cycle);
  }

  /** It has no number among requests yet: how many are in the gap is unknown. */
  #placeEarly(header: SegmentHeader, bytes: Uint8Array, at: number, lengthBytes: number): void {
    const { steeringTag, offset, offsetTop } = header;
    const job = this.#setup.queue.add(kindOfTagged(header), this, header, bytes, at, lengthBytes);
    job.early = { steeringTag, offset, offsetTop, lengthBytes, refusal: 0 };
    this.#early.push(job.early);
    this.jobCount++;
  }

  #add(
    kind: number,
    header: SegmentHeader,
    bytes: Uint8Array,
    at: number,
    lengthBytes: number,
  ): PlacementJob {
    return this.#addCounted(kind, header, bytes, at, lengthBytes, lengthBytes);
  }

  /** @param receivedBytes payload of the segment, of which the job places `lengthBytes` */
  #addCounted(
    kind: number,
    header: SegmentHeader,
    bytes: Uint8Array,
    at: number,
    lengthBytes: number,
    receivedBytes: number,
  ): PlacementJob {
    this.#arrived(header.opcode, receivedBytes);
    const job = this.#setup.queue.add(kind, this, header, bytes, at, lengthBytes);
    if (kind !== JobKind.READ_RESPONSE && kind !== JobKind.ATOMIC_RESPONSE) job.number = this.#countRequest();
    this.jobCount++;
    this.#lastJob = job;
    return job;
  }

  /** The message whose last segment was just added is complete. False: its last segment has no payload, and was not added. */
  #endMessage(kind: number): boolean {
    const job = this.#lastJob;
    const isAdded = job?.connection === this && job.kind === kind && job.header.isLast && !job.isEnd;
    if (isAdded) job.isEnd = true;
    return isAdded;
  }

  #countRequest(): number {
    const number = this.nextInboundNumber;
    this.nextInboundNumber = (number + 1) & REQUEST_NUMBER_MASK;
    return number;
  }

  #arrived(opcode: number, payloadBytes: number): void {
    this.#segments.received.count(opcode, payloadBytes);
    this.#noteFirst();
  }

  #noteFirst(): void {
    if (this.hasReceived) return;
    this.hasReceived = true;
    this.#setup.events.firstArrived(this);
  }
}

const kindOfTagged = ({ opcode }: SegmentHeader): number =>
  opcode === RdmapOpcode.WRITE ? JobKind.WRITE : JobKind.READ_RESPONSE;

/** Has TCP note when it sends the segment of a request that waits for its response. */
function noteTimes({ request, segment }: RdmaPacket): void {
  const times = new SegmentTimes();
  request.stream.times = times;
  segment!.times = times;
}

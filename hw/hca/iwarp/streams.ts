/**
 * The seam between the TCP engine of the card and its RDMA side: interfaces only. TCP has connections, windows, retransmission and
 * frames; RDMA has requests, FPDUs and placement.
 *
 *     RDMA side ── open, fill, send ──► TcpStreams          RdmaStream ◄── reader.take, writable, peerClosed, ended ── TCP engine
 *
 * Every call of a stream is made within a cycle of the TCP engine. The RDMA side may call the engine from its own cycles; the engine's work
 * begins in the next cycle. Connections are named by their numbers.
 */
import type { TcpEvent } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { FpduReader, SegmentBuffer } from '../../../protocol/iwarp/index.ts';

/** How a stream ended; no call follows. */
export type StreamEnd = typeof TcpEvent.CLOSED | typeof TcpEvent.RESET | typeof TcpEvent.TIMED_OUT;

/** The RDMA side of one connection. */
export interface RdmaStream {
  /** Receives the bytes of the stream, in order, in the memory of {@link TcpStreams.hold}. */
  readonly reader: FpduReader;
  /**
   * True while the RDMA side has no place for another segment: the engine delivers nothing until {@link TcpStreams.placed} is called. The
   * RDMA side must call it without waiting for anything that the engine sends or receives. A segment that closes a gap is delivered in one
   * call with all segments that follow it.
   */
  readonly isBusy: boolean;
  /** {@link TcpStreams.hasRoom} has returned false, and returns true now. */
  writable(cycle: Cycles): void;
  /** The peer's FIN has arrived, after everything that it sent. */
  peerClosed(cycle: Cycles): void;
  /**
   * Software requests an orderly close: the stream calls {@link TcpStreams.close} when everything posted has been sent.
   */
  closeRequested(cycle: Cycles): void;
  /** Software requests a Terminate with this layer, type and code (RFC 5040, 4.8), followed by a FIN. */
  terminateRequested(error: number, cycle: Cycles): void;
  /** The connection has ended; the engine has detached the stream. */
  ended(event: StreamEnd, cycle: Cycles): void;
}

/** A segment in the retransmission memory: TCP sends it, as often as needed, with these boundaries. */
export interface SendSegment extends SegmentBuffer {
  length: number;
  /** FPDUs in it: 1 unless its writer says otherwise. */
  fpduCount: number;
  /** Notes when TCP sends it, if the RDMA side wants to know. */
  times: { note(isSentAgain: boolean, cycle: Cycles): void } | undefined;
}

/** The TCP engine, as the RDMA side uses it. */
export interface TcpStreams {
  /** Shared by all connections: the memory of {@link SendSegment.bytes}, into which DMA reads may write at {@link SendSegment.start}. */
  readonly sendMemory: Uint8Array;
  /**
   * Makes an established connection a stream of FPDUs; bytes that software has not read are its first.
   * @returns false when the connection does not exist, is not established, or has a stream
   */
  attach(connection: number, qpn: number, stream: RdmaStream, cycle: Cycles): boolean;
  /** Forgets the stream of a connection; what arrives from now on is dropped. Segments that are open must have been discarded. */
  detach(connection: number): void;
  /** Whether both ends of a connection are at this port. */
  isLooped(connection: number): boolean;
  /** EMSS: payload bytes of a full segment, options deducted. */
  maxSegmentBytes(connection: number): number;
  /**
   * Whether a segment of this many bytes may be opened. If not, {@link RdmaStream.writable} follows.
   */
  hasRoom(connection: number, lengthBytes: number): boolean;
  /**
   * Opens a place in the retransmission memory, for up to `lengthBytes` (at most EMSS). The caller has checked {@link
   * hasRoom}. Several may be open at a time, even of one connection.
   */
  open(connection: number, lengthBytes: number): SendSegment;
  /**
   * Appends a filled segment to the stream. The order of the calls is the order of the bytes. With `hca.iwarp.packsFpdus`
   * its FPDUs may leave in one segment with those before them.
   */
  send(connection: number, segment: SendSegment, lengthBytes: number, cycle: Cycles): void;
  /** Returns an open segment unsent, also of a connection that has ended. No DMA read into it may be in flight. */
  discard(connection: number, segment: SendSegment): void;
  /** Sends FIN after everything that {@link send} has appended. */
  close(connection: number, cycle: Cycles): void;
  /** Sends RST; the stream is detached and not called again. RESET is reported to software. */
  abort(connection: number, cycle: Cycles): void;
  /** Reports TERMINATE_SENT or TERMINATE_RECEIVED to software. */
  terminated(
    connection: number,
    event: typeof TcpEvent.TERMINATE_SENT | typeof TcpEvent.TERMINATE_RECEIVED,
    error: number,
  ): void;
  /**
   * Within a call of a reader: keeps the memory in which the byte at `at` of `bytes` lies until {@link release} of the returned name, once
   * for each call. Bytes stay readable after a call only when they are held.
   * @returns -1 for bytes that are in no buffer of the engine: an FPDU that the reader has gathered of several segments. Copy them
   *   if they are needed later.
   */
  hold(bytes: Uint8Array, at: number): number;
  release(name: number): void;
  /** Notes that a stream that was busy accepts segments again. */
  placed(cycle: Cycles): void;
}

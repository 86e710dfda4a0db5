/**
 * A TCP connection of a station: hands arriving bytes on at once, and sends whatever it is given. No processor is modelled, so nothing is
 * charged.
 */
import {
  type Arrival,
  noTcpCounts,
  output,
  plainTcp,
  type ReceivedBytes,
  type SegmentFields,
  type StreamBuffer,
  sequenceAdd,
  sequenceDistance,
  TcpConnection,
} from '../../protocol/tcp/index.ts';

/** Retransmission, windows and limits of a connection, from the machine's network stack. */
export type StationLimits = TcpConnection<undefined, StationSegment>['limits'];

export interface StationSegment extends StreamBuffer {
  readonly bytes: Uint8Array;
}

/** Both ends of a connection, from the station's view. */
export interface StationEnds {
  readonly localPort: number;
  readonly remotePort: number;
  readonly remoteAddress: number;
}

/** The station that a connection belongs to. */
export interface ConnectionOwner {
  readonly nowPs: number;
  readonly limits: StationLimits;
  /** @returns false without a way to the other end */
  transmit(ends: StationEnds, fields: SegmentFields, payload: Uint8Array): boolean;
  established(connection: StationConnection): void;
  arrived(connection: StationConnection, bytes: Uint8Array): void;
  /** The other end sends nothing more, or the connection has ended. */
  ended(connection: StationConnection): void;
  forget(connection: StationConnection): void;
}

/** Payload of a frame of 1500 bytes after the headers of IPv4 and TCP. */
const segmentBytes = 1460;
/** Maximum segment size of a peer that names none (RFC 9293, 3.7.1). */
const defaultSegmentBytes = 536;
const receiveLimitBytes = 0xffff;
const roomSegments = 64;
/** Bytes that wait for acknowledgement at most. */
const sendLimitBytes = 2 ** 20;

/** Bytes in order, which are handed on; a segment after a gap is refused, so that its sender sends it again. */
class PassedBytes implements ReceivedBytes<StationSegment> {
  next = 0;
  readonly readableBytes = 0;
  readonly copiedBytes = 0;
  readonly hasGap = false;
  readonly #pass: (bytes: Uint8Array) => void;

  constructor(pass: (bytes: Uint8Array) => void) {
    this.#pass = pass;
  }

  arrive({ sequence, length, bytes }: StationSegment): Arrival {
    const knownBytes = sequenceDistance(this.next, sequence);
    if (knownBytes < 0) return 'refused';
    if (knownBytes >= length) return 'duplicate';
    this.next = sequenceAdd(sequence, length);
    this.#pass(bytes.subarray(knownBytes));
    return 'inOrder';
  }

  clear(): void {}
}

export class StationConnection extends TcpConnection<undefined, StationSegment> {
  readonly ends: StationEnds;
  readonly received: PassedBytes;
  readonly room = roomSegments;
  readonly #owner: ConnectionOwner;
  #queuedBytes = 0;
  #isEnded = false;
  #isOpen = false;

  constructor(owner: ConnectionOwner, ends: StationEnds, initialSequence: number, isPassive: boolean) {
    super({
      limits: owner.limits,
      extensions: plainTcp,
      counts: noTcpCounts(),
      ...{ initialSequence, isPassive, segmentBytes, defaultSegmentBytes },
    });
    this.#owner = owner;
    this.ends = ends;
    this.receiveLimitBytes = receiveLimitBytes;
    this.received = new PassedBytes((bytes) => owner.arrived(this, bytes));
  }

  get hasSendRoom(): boolean {
    return this.#queuedBytes < sendLimitBytes;
  }

  /** Sends bytes. @returns false if the connection takes none */
  send(bytes: Uint8Array): boolean {
    if (!this.canQueue || !this.hasSendRoom) return false;
    for (let at = 0; at < bytes.length; at += this.segmentBytes) {
      const piece = bytes.slice(at, at + this.segmentBytes);
      this.sendQueue.push({ sequence: this.queueEnd, length: piece.length, isSent: false, bytes: piece });
      this.queueEnd = sequenceAdd(this.queueEnd, piece.length);
    }
    this.#queuedBytes += bytes.length;
    output(undefined, this);
    return true;
  }

  /** Sends the end of the stream after everything queued. */
  finish(): void {
    if (this.isFinQueued || !this.canQueue) return;
    this.state = this.state === 'ESTABLISHED' ? 'FIN_WAIT_1' : 'LAST_ACK';
    this.isFinQueued = true;
    output(undefined, this);
  }

  nowPs(): number {
    return this.#owner.nowPs;
  }

  isHeld(): boolean {
    return false;
  }

  sendData(_: undefined, fields: SegmentFields, { bytes }: StationSegment): boolean {
    return this.#owner.transmit(this.ends, fields, bytes);
  }

  sendControl(_: undefined, fields: SegmentFields, { bytes }: StationSegment): boolean {
    return this.#owner.transmit(this.ends, fields, bytes);
  }

  takeBuffer(): StationSegment {
    return { sequence: 0, length: 0, isSent: false, bytes: new Uint8Array(0) };
  }

  release({ length }: StationSegment): void {
    this.#queuedBytes -= length;
  }

  readable(): void {
    const isEnd = this.hasFin || this.isOver;
    if (!isEnd || this.#isEnded) return;
    this.#isEnded = true;
    this.#owner.ended(this);
  }

  established(): boolean {
    this.#owner.established(this);
    return true;
  }

  /** A connection that this side opened becomes established without a call of its own. */
  writable(): void {
    if (this.isPassive || this.#isOpen || this.state !== 'ESTABLISHED') return;
    this.#isOpen = true;
    this.#owner.established(this);
  }

  forget(): void {
    this.#owner.forget(this);
  }

  allocated(): void {}
  freed(): void {}
  copied(): void {}
  discard(): void {}
  pathConfirmed(): void {}
  throttle(): void {}
  deadlineChanged(): void {}
  timeWaits(): void {}
}

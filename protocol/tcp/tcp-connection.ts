/**
 * One TCP connection: its state, its queues and its deadlines. A core of a host or an engine of a card executes it.
 * `segment-input.ts` processes arriving segments, `output.ts` sends, `deadlines.ts` acts when time has passed.
 *
 *     send() ──► queue ─ unacknowledged │ to be sent ─► device         device ─► received ──► recv()
 *                        sendUnacknowledged   sendNext                          received.next
 *
 * A connection changes only within a call of these functions. They never wait, so no lock is needed. Its owner supplies buffers, time,
 * transmission and accounting by the abstract members. An `Actor` executes a call and is charged for it. Names are those of RFC 9293,
 * 3.3.1.
 */
import { NEVER, psPerMs, psPerUs, usToPs, type Wide } from '../../base/index.ts';
import { Congestion, NewReno } from './congestion.ts';
import { Cubic } from './cubic.ts';
import type { EstablishedState } from './established-state.ts';
import { type SegmentFields, timestampOptionBytes } from './header.ts';
import { RoundTrip } from './round-trip.ts';
import { SackScoreboard } from './sack-scoreboard.ts';
import { sequenceAdd, sequenceDistance } from './sequence.ts';
import { SequenceRanges } from './sequence-ranges.ts';

/** States of RFC 9293, 3.3.2; LISTEN is a separate class. */
export type ConnectionState =
  | 'SYN_SENT'
  | 'SYN_RECEIVED'
  | 'ESTABLISHED'
  | 'FIN_WAIT_1'
  | 'FIN_WAIT_2'
  | 'CLOSE_WAIT'
  | 'CLOSING'
  | 'LAST_ACK'
  | 'TIME_WAIT'
  | 'CLOSED';

/** Why a connection ended other than by agreement. */
export type ConnectionError = 'ECONNREFUSED' | 'ECONNRESET' | 'ETIMEDOUT' | 'ENETDOWN' | 'EHOSTUNREACH';

/** Bytes of the stream that travel as one segment, in a buffer of the connection's owner. */
export interface StreamBuffer {
  /** Sequence number of the first byte. */
  sequence: number;
  /** Bytes of payload. */
  readonly length: number;
  /** True if sent at least once: its contents are fixed. */
  isSent: boolean;
}

/** Result of a received segment. */
export type Arrival = 'inOrder' | 'behindGap' | 'duplicate' | 'refused';

/** Received bytes: in order, and after a gap. */
export interface ReceivedBytes<Buffer> {
  /** Sequence number expected next. */
  next: number;
  /** Bytes in order that were not read. */
  readonly readableBytes: number;
  /** Bytes that the last {@link arrive} copied. */
  readonly copiedBytes: number;
  readonly hasGap: boolean;
  /** Takes over a segment that begins inside the window. */
  arrive(buffer: Buffer): Arrival;
  clear(): void;
}

/** Parameters of the transport, with the defaults' sources in the owner's profile. */
export interface TcpLimits {
  readonly windowScale: number;
  readonly initialWindowSegments: number;
  readonly retransmitInitialUs: number;
  readonly retransmitMinUs: number;
  readonly retransmitMaxUs: number;
  readonly synRetries: number;
  readonly dataRetries: number;
  readonly delayedAckUs: number;
  readonly duplicateAcks: number;
  readonly finTimeoutUs: number;
  readonly timeWaitUs: number;
  readonly memoryWaitUs: number;
  /** Nagle's rule, on when a connection begins. */
  readonly isDelayed: boolean;
}

/** Probes of an idle connection: RFC 9293, 3.8.4. */
export interface Keepalive {
  readonly idleUs: number;
  readonly intervalUs: number;
  /** Probes without an answer that end the connection. */
  readonly probes: number;
}

/** Parts of the transport that a side may have. */
export interface TcpExtensions {
  /** Selective acknowledgements (RFC 2018, RFC 6675), if the peer permits them too. */
  readonly hasSack: boolean;
  /** Timestamps and protection against wrapped sequence numbers (RFC 7323), if the peer has them too. */
  readonly hasTimestamps: boolean;
  readonly congestion: 'newReno' | 'cubic';
  readonly keepalive: Keepalive | undefined;
}

/** TCP without any of the extensions. */
export const plainTcp: TcpExtensions = {
  hasSack: false,
  hasTimestamps: false,
  congestion: 'newReno',
  keepalive: undefined,
};

/** Events that the transport counts. */
export interface TcpCounts {
  acknowledgementsSent: number;
  retransmissions: number;
  fastRetransmissions: number;
  retransmissionTimeouts: number;
  duplicates: number;
  outOfOrder: number;
  droppedForRoom: number;
  resetsSent: number;
}

export const noTcpCounts = (): TcpCounts => ({
  acknowledgementsSent: 0,
  retransmissions: 0,
  fastRetransmissions: 0,
  retransmissionTimeouts: 0,
  duplicates: 0,
  outOfOrder: 0,
  droppedForRoom: 0,
  resetsSent: 0,
});

export interface TcpSetup {
  readonly limits: TcpLimits;
  readonly extensions: TcpExtensions;
  readonly counts: TcpCounts;
  readonly initialSequence: number;
  /** True if the peer opened it. */
  readonly isPassive: boolean;
  /** Payload bytes of the longest segment that the path carries. */
  readonly segmentBytes: number;
  /** Maximum segment size of a peer whose SYN has no such option (RFC 9293, 3.7.1). */
  readonly defaultSegmentBytes: number;
  /** Beginning of the present epoch, from which instants count; left out: 0. */
  readonly epochUs?: number;
}

const usPerMs = psPerMs / psPerUs;

/** Ranges after a gap that a receiver reports, and that a sender keeps. */
const rangesMax = 64;

/** The smallest maximum segment size that is accepted (Linux: tcp_min_snd_mss). */
const leastSegmentBytes = 48;

export abstract class TcpConnection<Actor, Buffer extends StreamBuffer> {
  readonly limits: TcpLimits;
  readonly extensions: TcpExtensions;
  readonly counts: TcpCounts;
  state: ConnectionState = 'CLOSED';
  /** Error kept until a call reports it. */
  error: ConnectionError | undefined;
  /** True when no socket refers to it any more. */
  isOrphan = false;
  /** Was opened by the other side. */
  readonly isPassive: boolean;

  // Sending.
  readonly initialSequence: number;
  sendUnacknowledged: number;
  sendNext: number;
  /** The highest sequence number that was ever sent. */
  sendMax: number;
  /** Window of the peer: its size, the segment that carried it, and the shift of its field. */
  sendWindow = 0;
  /** The largest that it was (RFC 5961, 5.2). */
  sendWindowMax = 0;
  windowSequence = 0;
  windowAcknowledgement = 0;
  sendScale = 0;
  /** Payload bytes of the longest segment: the maximum segment size less the options of each segment. */
  segmentBytes: number;
  readonly sendQueue: Buffer[] = [];
  /** First entry of the queue to be sent next. */
  sendIndex = 0;
  /** A buffer that its owner is still filling: must not be sent. */
  filling: Buffer | undefined;
  /** Sequence number after everything queued: that of our FIN. */
  queueEnd: number;
  isFinQueued = false;
  isDelayed: boolean;
  /** End of the last segment that was not full (Minshall). */
  smallEnd: number;
  congestion: Congestion;
  readonly roundTrip: RoundTrip;
  duplicateAcks = 0;
  tries = 0;
  /** End of the segment whose acknowledgement is timed; -1: no segment. */
  timedEnd = -1;
  timedPs = 0;
  /** Ranges that the peer has reported. */
  readonly scoreboard = new SackScoreboard(rangesMax);

  // Receiving.
  abstract readonly received: ReceivedBytes<Buffer>;
  receiveScale: number;
  /** Whether both sides scale their windows, as far as this side knows: a SYN-ACK has the option only if the SYN had it (RFC 7323, 2.2). */
  isScaled = true;
  receiveLimitBytes = 0;
  /** Edge of the announced window. */
  windowEdge = 0;
  unacknowledgedSegments = 0;
  isAckDue = false;
  hasFin = false;
  /** Received ranges after a gap, if the peer takes reports of them. */
  readonly gapRanges = new SequenceRanges(rangesMax);
  lastAcknowledgement = 0;

  // Options that both sides have, as far as this side has learned.
  hasSack: boolean;
  hasTimestamps: boolean;
  /** The peer's timestamp that is echoed (TS.Recent); -1: none yet. */
  recentTimestamp = -1;
  /**
   * Milliseconds of the timestamp clock when the present epoch of the simulated time began, and the rest of a
   * millisecond.
   */
  #timestampMs: Wide = 0;
  #timestampRestPs = 0;

  // Deadlines, in picoseconds of simulated time.
  retransmitPs = NEVER;
  delayedAckPs = NEVER;
  closePs = NEVER;
  keepalivePs = NEVER;
  keepaliveProbes = 0;

  readonly #defaultSegmentBytes: number;

  constructor(setup: TcpSetup) {
    const { limits, extensions, counts, initialSequence, isPassive, segmentBytes, defaultSegmentBytes } =
      setup;
    this.limits = limits;
    this.extensions = extensions;
    this.hasSack = extensions.hasSack;
    this.hasTimestamps = extensions.hasTimestamps;
    this.counts = counts;
    this.isPassive = isPassive;
    this.initialSequence = initialSequence;
    this.sendUnacknowledged = initialSequence;
    this.sendNext = initialSequence;
    this.sendMax = initialSequence;
    this.smallEnd = initialSequence;
    this.queueEnd = sequenceAdd(initialSequence, 1);
    this.segmentBytes = segmentBytes;
    this.#defaultSegmentBytes = defaultSegmentBytes;
    const { epochUs = 0 } = setup;
    this.#timestampMs = Math.floor(epochUs / usPerMs);
    this.#timestampRestPs = (epochUs % usPerMs) * psPerUs;
    this.receiveScale = limits.windowScale;
    this.isDelayed = limits.isDelayed;
    this.congestion = this.#newCongestion();
    this.roundTrip = new RoundTrip({
      initialPs: usToPs(limits.retransmitInitialUs),
      minPs: usToPs(limits.retransmitMinUs),
      maxPs: usToPs(limits.retransmitMaxUs),
    });
  }

  // Supplied by the owner.

  /** Simulated time in picoseconds of the epoch. */
  abstract nowPs(): number;
  /** Segments that the device accepts now. */
  abstract get room(): number;
  /** Whether send() may queue more bytes. */
  abstract get hasSendRoom(): boolean;
  /** Whether the device still reads the buffer, so that it must not be sent again. */
  abstract isHeld(buffer: Buffer): boolean;
  /** Sends a segment with the payload of the buffer, which stays in the send queue. @returns false without a way to the peer */
  abstract sendData(actor: Actor, fields: SegmentFields, buffer: Buffer): boolean;
  /** Sends a segment without payload in a buffer of {@link takeBuffer}, and releases it. @returns false without a way to the peer */
  abstract sendControl(actor: Actor, fields: SegmentFields, buffer: Buffer): boolean;
  /** An empty buffer; undefined when all are in use. */
  abstract takeBuffer(): Buffer | undefined;
  /** Charges for an allocated buffer. */
  abstract allocated(actor: Actor): void;
  /** Charges for buffers that an acknowledgement has freed. */
  abstract freed(actor: Actor, buffers: number): void;
  /** Charges for bytes copied to join small segments. */
  abstract copied(actor: Actor, bytes: number): void;
  /** Returns a buffer when the device has read it. */
  abstract release(buffer: Buffer): void;
  /** Returns a buffer that was received. */
  abstract discard(buffer: Buffer): void;
  /** The peer has acknowledged something new: the path works. */
  abstract pathConfirmed(): void;
  /** Bytes or the end of the stream can be read, or the connection has ended. */
  abstract readable(actor: Actor): void;
  /** Bytes can be queued, or the connection has ended. */
  abstract writable(actor: Actor): void;
  /** The device has no room: {@link output} is called again when it has. */
  abstract throttle(): void;
  /** A deadline has changed. */
  abstract deadlineChanged(): void;
  /** A connection that the peer opened is established. @returns false when nothing can accept it */
  abstract established(actor: Actor): boolean;
  /** The connection has entered TIME_WAIT. */
  abstract timeWaits(): void;
  /** The connection is CLOSED and no longer exists. */
  abstract forget(): void;

  /** Bytes in flight. */
  get flightBytes(): number {
    return sequenceDistance(this.sendNext, this.sendUnacknowledged);
  }

  /** Bytes that are believed to be in the network: while SACK reports drive the recovery, without those that arrived or were lost. */
  get networkBytes(): number {
    return this.hasSack && this.congestion.isRecovering ? this.scoreboard.pipeBytes : this.flightBytes;
  }

  /** Bytes of the options of every segment. */
  get optionBytes(): number {
    return this.hasTimestamps ? timestampOptionBytes : 0;
  }

  /** TSval of this moment: milliseconds, 32 bits that wrap. */
  get timestampNow(): number {
    return (this.#timestampMs + Math.floor((this.nowPs() + this.#timestampRestPs) / psPerMs)) >>> 0;
  }

  /** Our FIN was acknowledged. */
  get isFinAcknowledged(): boolean {
    return this.isFinQueued && sequenceDistance(this.sendUnacknowledged, this.queueEnd) > 0;
  }

  /** Whether send() may queue. */
  get canQueue(): boolean {
    return (this.state === 'ESTABLISHED' || this.state === 'CLOSE_WAIT') && !this.isFinQueued;
  }

  /** Whether segments with data may be sent in this state. */
  get maySendData(): boolean {
    const { state } = this;
    return (
      state === 'ESTABLISHED' ||
      state === 'CLOSE_WAIT' ||
      state === 'FIN_WAIT_1' ||
      state === 'CLOSING' ||
      state === 'LAST_ACK'
    );
  }

  /** No segment is in flight: a running retransmission timer probes a window that is too small. */
  get isProbing(): boolean {
    return this.sendUnacknowledged === this.sendMax;
  }

  get isOver(): boolean {
    return this.state === 'CLOSED' || this.state === 'TIME_WAIT';
  }

  /** The next deadline; infinite if no deadline is set. */
  get deadlinePs(): number {
    return Math.min(this.retransmitPs, this.delayedAckPs, this.closePs, this.keepalivePs);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.timedPs -= ps;
    this.retransmitPs -= ps;
    this.delayedAckPs -= ps;
    this.closePs -= ps;
    this.keepalivePs -= ps;
    this.congestion.rebase(ps);
    const restPs = this.#timestampRestPs + ps;
    this.#timestampMs += Math.floor(restPs / psPerMs);
    this.#timestampRestPs = restPs % psPerMs;
  }

  /** (Re)starts the retransmission timer. */
  armRetransmit(): void {
    this.retransmitPs = this.nowPs() + this.roundTrip.timeoutPs;
    this.deadlineChanged();
  }

  /** Takes the options of the other side's SYN. */
  agree({ maximumSegment, windowScale: scale, isSackPermitted, timestamp }: SegmentFields): void {
    const offered = maximumSegment > 0 ? maximumSegment : this.#defaultSegmentBytes;
    this.hasSack = this.hasSack && isSackPermitted;
    this.hasTimestamps = this.hasTimestamps && timestamp >= 0;
    if (this.hasTimestamps) this.recentTimestamp = timestamp;
    this.segmentBytes = Math.min(this.segmentBytes, Math.max(offered, leastSegmentBytes)) - this.optionBytes;
    this.isScaled = scale >= 0;
    if (!this.isScaled) this.receiveScale = 0;
    this.sendScale = Math.max(0, Math.min(scale, 14));
    this.congestion = this.#newCongestion();
  }

  /** Takes over the variables of an established connection: see {@link carryOn}. */
  resume(state: EstablishedState): void {
    this.state = 'ESTABLISHED';
    this.sendUnacknowledged = state.sendUnacknowledged;
    this.sendNext = state.sendNext;
    this.sendMax = state.sendNext;
    this.smallEnd = state.sendNext;
    this.queueEnd = state.sendNext;
    this.sendWindow = state.sendWindow;
    this.sendWindowMax = state.sendWindow;
    this.sendScale = state.sendScale;
    this.windowSequence = state.receiveNext;
    this.windowAcknowledgement = state.sendUnacknowledged;
    this.received.next = state.receiveNext;
    this.lastAcknowledgement = state.receiveNext;
    this.windowEdge = state.windowEdge;
    this.receiveScale = state.receiveScale;
    this.segmentBytes = state.segmentBytes;
    this.hasSack = state.hasSack;
    this.hasTimestamps = state.timestamps !== undefined;
    if (state.timestamps !== undefined) {
      this.recentTimestamp = state.timestamps.recent;
      this.#timestampMs += state.timestamps.now - this.timestampNow;
    }
    this.congestion = this.#newCongestion();
    if (state.roundTripUs > 0) this.roundTrip.sample(usToPs(state.roundTripUs));
  }

  /** A segment of the peer has arrived: the connection is not idle. */
  activity(): void {
    const { keepalive } = this.extensions;
    if (keepalive === undefined || this.isOver) return;
    this.keepaliveProbes = 0;
    this.keepalivePs = this.nowPs() + usToPs(keepalive.idleUs);
    this.deadlineChanged();
  }

  #newCongestion(): Congestion {
    const { segmentBytes, extensions, limits, hasSack } = this;
    const growth = extensions.congestion === 'cubic' ? new Cubic(segmentBytes) : new NewReno(segmentBytes);
    return new Congestion(segmentBytes, limits.initialWindowSegments, growth, hasSack);
  }

  /** Ends the connection with an error: discards unsent bytes; received bytes can still be read. */
  fail(actor: Actor, error: ConnectionError): void {
    this.error = error;
    this.end(actor);
  }

  /** Closes the connection and stops all its timers. */
  end(actor: Actor): void {
    if (this.state === 'CLOSED') return;
    this.state = 'CLOSED';
    this.retransmitPs = NEVER;
    this.delayedAckPs = NEVER;
    this.closePs = NEVER;
    this.keepalivePs = NEVER;
    this.dropSendQueue();
    if (this.isOrphan) this.received.clear();
    this.forget();
    this.wakeAll(actor);
  }

  /** Whether the peer has {@link TcpLimits.finTimeoutUs} for its FIN after ours is acknowledged. */
  get isFinWaitLimited(): boolean {
    return this.isOrphan;
  }

  dropSendQueue(): void {
    const { filling } = this;
    // The call that fills a buffer releases it.
    for (const buffer of this.sendQueue.splice(0)) if (buffer !== filling) this.release(buffer);
    this.sendIndex = 0;
  }

  wakeAll(actor: Actor): void {
    this.readable(actor);
    this.writable(actor);
  }

  /** TIME_WAIT: the last acknowledgement may have been lost. */
  waitOut(actor: Actor): void {
    this.state = 'TIME_WAIT';
    this.retransmitPs = NEVER;
    this.delayedAckPs = NEVER;
    this.keepalivePs = NEVER;
    this.closePs = this.nowPs() + usToPs(this.limits.timeWaitUs);
    this.dropSendQueue();
    this.timeWaits();
    this.deadlineChanged();
    this.wakeAll(actor);
  }
}

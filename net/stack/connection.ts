/**
 * One connection of the stream transport: its state, its queues and its deadlines. `segment-input.ts` says what an
 * arriving segment does to it, `output.ts` what it sends, `connection-timers.ts` what happens when time has passed.
 *
 *     send() ──► queue ─ unacknowledged │ to be sent ─► device         device ─► receive queue ──► recv()
 *                        sendUnacknowledged   sendNext                            queue.next
 *
 * Nothing here waits: a connection changes between two waits of the thread that uses it (system call, softirq, timer), so
 * that no lock is needed. Names are those of RFC 9293, 3.3.1.
 */
import { ConfigurationError, kib, usToPs } from '../../base/index.ts';
import type { Cpu } from '../platform.ts';
import { Congestion } from './congestion.ts';
import type { StackEnvironment } from './environment.ts';
import type { Route } from './interface.ts';
import { type IpVersion, ipVersionOf } from './ip-version.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import { ReceiveQueue } from './receive-queue.ts';
import { RoundTrip } from './rtt.ts';
import { sequenceAdd, sequenceDistance } from './sequence.ts';
import { WaitQueue } from './wait-queue.ts';

/** States of RFC 9293, 3.3.2; LISTEN is a listener of its own. */
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

export interface Ends {
  readonly localPort: number;
  readonly remotePort: number;
  /** Both addresses, and the interface between them. */
  readonly route: Route;
}

const never = Number.POSITIVE_INFINITY;
/** The least that is believed (Linux: tcp_min_snd_mss). */
const leastSegmentBytes = 48;

export class Connection implements Ends {
  readonly environment: StackEnvironment;
  readonly localPort: number;
  readonly remotePort: number;
  readonly route: Route;
  readonly version: IpVersion;
  state: ConnectionState = 'CLOSED';
  /** Kept until a call reports it. */
  error: ConnectionError | undefined;
  /** No socket holds it any more. */
  isOrphan = false;
  /** Was opened by the other side. */
  readonly isPassive: boolean;

  // Sending.
  readonly initialSequence: number;
  sendUnacknowledged: number;
  sendNext: number;
  /** The furthest that was ever sent. */
  sendMax: number;
  /** Window of the other side: its size, the segment it was taken from, and what its field is shifted by. */
  sendWindow = 0;
  windowSequence = 0;
  windowAcknowledgement = 0;
  sendScale = 0;
  segmentBytes: number;
  readonly sendQueue: PacketBuffer[] = [];
  /** First of the queue to be sent next. */
  sendIndex = 0;
  /** Being filled by a call that waits for a page: not to be sent. */
  filling: PacketBuffer | undefined;
  /** Sequence number behind everything queued: that of our FIN. */
  queueEnd: number;
  sendLimitBytes: number;
  isFinQueued = false;
  isDelayed: boolean;
  /** End of the last segment that was not full (Minshall). */
  smallEnd: number;
  congestion: Congestion;
  readonly roundTrip: RoundTrip;
  duplicateAcks = 0;
  tries = 0;
  /** The segment whose acknowledgement is timed ends here; -1: none. */
  timedEnd = -1;
  timedPs = 0;

  // Receiving.
  readonly received: ReceiveQueue;
  receiveScale: number;
  /** Both sides scale their windows, as far as we know: a SYN that answers one says so only if that did (RFC 7323, 2.2). */
  isScaled = true;
  receiveLimitBytes = 0;
  /** Edge of the window that we have announced. */
  windowEdge = 0;
  unacknowledgedSegments = 0;
  isAckDue = false;
  hasFin = false;
  isReadShut = false;

  // Deadlines, in picoseconds of simulated time.
  retransmitPs = never;
  delayedAckPs = never;
  closePs = never;
  isThrottled = false;

  /** Threads that wait for bytes, for room, or for the connection to come up. */
  readonly readable: WaitQueue;
  readonly writable: WaitQueue;

  constructor(environment: StackEnvironment, ends: Ends, initialSequence: number, isPassive: boolean) {
    const { config, device, platform, counts, costs } = environment;
    this.environment = environment;
    this.localPort = ends.localPort;
    this.remotePort = ends.remotePort;
    this.route = ends.route;
    this.version = ipVersionOf(ends.route.destination);
    this.isPassive = isPassive;
    this.initialSequence = initialSequence;
    this.sendUnacknowledged = initialSequence;
    this.sendNext = initialSequence;
    this.sendMax = initialSequence;
    this.smallEnd = initialSequence;
    this.queueEnd = sequenceAdd(initialSequence, 1);
    this.segmentBytes = device.mtu - this.version.segmentHeaderBytes;
    this.sendLimitBytes = kib(config.sendBufferKib);
    this.receiveScale = config.windowScale;
    this.setReceiveLimit(kib(config.receiveBufferKib));
    this.isDelayed = config.isDelayed;
    this.congestion = new Congestion(this.segmentBytes, config.initialWindowSegments);
    this.roundTrip = new RoundTrip({
      initialPs: usToPs(config.retransmitInitialUs),
      minPs: usToPs(config.retransmitMinUs),
      maxPs: usToPs(config.retransmitMaxUs),
    });
    this.received = new ReceiveQueue(device.buffers, platform.memory, config.outOfOrderMax);
    this.readable = new WaitQueue(platform, counts, costs.wakeUp);
    this.writable = new WaitQueue(platform, counts, costs.wakeUp);
  }

  /** Bytes on their way. */
  get flightBytes(): number {
    return sequenceDistance(this.sendNext, this.sendUnacknowledged);
  }

  /** Our FIN was acknowledged. */
  get isFinAcknowledged(): boolean {
    return this.isFinQueued && sequenceDistance(this.sendUnacknowledged, this.queueEnd) > 0;
  }

  /** Whether send() may queue. */
  get canQueue(): boolean {
    return (this.state === 'ESTABLISHED' || this.state === 'CLOSE_WAIT') && !this.isFinQueued;
  }

  /** Memory of the send queue against its limit: buffers count whole, and twice the limit is allowed, as in Linux. */
  get hasSendRoom(): boolean {
    return this.sendQueue.length * this.environment.device.buffers.bufferBytes < 2 * this.sendLimitBytes;
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

  /** Nothing is on its way: the retransmission timer, when it runs, probes a window that is too small. */
  get isProbing(): boolean {
    return this.sendUnacknowledged === this.sendMax;
  }

  get isOver(): boolean {
    return this.state === 'CLOSED' || this.state === 'TIME_WAIT';
  }

  /** The next deadline, infinite when there is none. */
  get deadlinePs(): number {
    return Math.min(this.retransmitPs, this.delayedAckPs, this.closePs);
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.timedPs -= ps;
    this.retransmitPs -= ps;
    this.delayedAckPs -= ps;
    this.closePs -= ps;
  }

  /** Bytes to keep for the program: at least two packets, and two units of the window, or a segment would never fit into it. */
  setReceiveLimit(bytes: number): void {
    if (!(bytes > 0)) throw new ConfigurationError('receive buffer', bytes, 'above zero');
    this.receiveLimitBytes = Math.max(bytes, 2 * this.environment.device.mtu, 2 * 2 ** this.receiveScale);
  }

  /** (Re)starts the retransmission timer. */
  armRetransmit(): void {
    this.retransmitPs = this.environment.platform.nowPs() + this.roundTrip.timeoutPs;
    this.environment.timersChanged(this);
  }

  /** Takes the maximum segment size and window scale of the other side's SYN. */
  agree(segmentBytes: number, scale: number): void {
    const { config } = this.environment;
    const offered = segmentBytes > 0 ? segmentBytes : this.version.unsaidSegmentBytes;
    this.segmentBytes = Math.min(this.segmentBytes, Math.max(offered, leastSegmentBytes));
    this.isScaled = scale >= 0;
    if (!this.isScaled) this.receiveScale = 0;
    this.sendScale = Math.max(0, Math.min(scale, 14));
    this.congestion = new Congestion(this.segmentBytes, config.initialWindowSegments);
  }

  /** Ends the connection with an error: what was to be sent goes, what has arrived can still be read. */
  fail(cpu: Cpu, error: ConnectionError): void {
    this.error = error;
    this.end(cpu);
  }

  /** Nothing more happens on this connection. */
  end(cpu: Cpu): void {
    if (this.state === 'CLOSED') return;
    this.state = 'CLOSED';
    this.retransmitPs = never;
    this.delayedAckPs = never;
    this.closePs = never;
    this.dropSendQueue();
    if (this.isOrphan) this.received.clear();
    this.environment.forget(this);
    this.wakeAll(cpu);
  }

  dropSendQueue(): void {
    const { buffers } = this.environment.device;
    const { filling } = this;
    // What a call is filling is given back by that call.
    for (const buffer of this.sendQueue.splice(0)) if (buffer !== filling) buffers.giveWhenSent(buffer);
    this.sendIndex = 0;
  }

  wakeAll(cpu: Cpu): void {
    this.readable.wake(cpu);
    this.writable.wake(cpu);
  }

  /** TIME_WAIT: the last acknowledgement may have got lost. */
  waitOut(cpu: Cpu): void {
    this.state = 'TIME_WAIT';
    this.retransmitPs = never;
    this.delayedAckPs = never;
    this.closePs = this.environment.platform.nowPs() + usToPs(this.environment.config.timeWaitUs);
    this.dropSendQueue();
    this.environment.timeWaits(this);
    this.environment.timersChanged(this);
    this.wakeAll(cpu);
  }
}

/** A TCP connection of the card: the transport's state, its place in the table of contexts, and what software and its QP know of it. */
import { TcpCongestion, type TcpEvent, type tcpContext } from '../../../../abi/index.ts';
import { type Decoded, NEVER } from '../../../../base/index.ts';
import { PlacingStream } from '../../../../protocol/iwarp/index.ts';
import {
  noTcpCounts,
  type SegmentFields,
  sequenceAdd,
  TcpConnection,
  type TcpExtensions,
} from '../../../../protocol/tcp/index.ts';
import type { EventRef } from '../../../../sim/index.ts';
import type { IwarpConfig } from '../iwarp-parameters.ts';
import type { RdmaStream } from '../streams.ts';
import { ConnectionWaits } from './connection-waits.ts';
import type { Listener } from './listener.ts';
import { CardSegment } from './segment-memory.ts';
import type { SegmentAddresses } from './tcp-frames.ts';

export type TcpOpening = Decoded<typeof tcpContext>;

/** Maximum segment size of a peer that does not name one (RFC 9293, 3.7.1). */
const unsaidSegmentBytes = { ipv4: 536, ipv6: 1220 } as const;
const usPerSecond = 1_000_000;
/** Acknowledgements that repeat the last one before a segment counts as lost (RFC 5681, 3.2). */
const duplicateAcks = 3;

/** The engine, as its connections use it. */
export interface ConnectionHost {
  nowPs(): number;
  /** Segments that the transmitter takes now. */
  readonly transmitRoom: number;
  /** Segments that may wait for a gap of one connection to close. */
  readonly keptSegmentsMax: number;
  transmit(connection: CardConnection, fields: SegmentFields, segment: CardSegment): void;
  /** A segment of the retransmission memory is acknowledged, or given up. */
  releaseSent(segment: CardSegment): void;
  releaseReceived(segment: CardSegment): void;
  throttle(connection: CardConnection): void;
  progressed(connection: CardConnection): void;
  accepted(connection: CardConnection): void;
  waitsOut(connection: CardConnection): void;
  ended(connection: CardConnection): void;
}

/** Stands for the segment of a frame without payload. */
export const noPayload = new CardSegment(new Uint8Array(0), 0);

export interface ConnectionSetup {
  readonly host: ConnectionHost;
  readonly config: IwarpConfig;
  readonly slot: number;
  readonly number: number;
  readonly opening: TcpOpening;
  readonly addresses: SegmentAddresses;
  readonly initialSequence: number;
  /** See TcpSetup. */
  readonly epochUs: number;
  /** Payload of the longest frame. */
  readonly segmentBytes: number;
  /** Both of its ends are at this port. */
  readonly isLooped: boolean;
  /** The listener that accepts it; undefined for one that software opens. */
  readonly listener: Listener | undefined;
}

export class CardConnection extends TcpConnection<ConnectionHost, CardSegment> implements SegmentAddresses {
  readonly slot: number;
  readonly number: number;
  readonly cookie: number;
  readonly listener: Listener | undefined;
  readonly isLooped: boolean;
  readonly localMac: Uint8Array;
  readonly remoteMac: Uint8Array;
  readonly vlanTag: number;
  readonly isIpv6: boolean;
  readonly localAddress: Uint8Array;
  readonly remoteAddress: Uint8Array;
  readonly localPort: number;
  readonly remotePort: number;
  readonly hopLimit: number;
  readonly trafficClass: number;
  /** Window once the stream is a QP's. */
  readonly receiveWindowBytes: number;
  readonly received: PlacingStream<CardSegment>;
  /** The next connection with the same pair of ports. */
  nextOfPorts: CardConnection | undefined;

  stream: RdmaStream | undefined;
  /** The QP whose stream it is, or was; 0: none. */
  qpn = 0;
  /** Bytes in the retransmission memory, those of open segments among them. */
  chargedBytes = 0;
  /** {@link RdmaStream.writable} is due when there is room. */
  wantsRoom = false;
  /** The stream's bytes that were sent, and received in order, retransmissions left out. */
  bytesSent = 0;
  bytesReceived = 0;
  #countedTo = 0;
  /** Waits with something to send. */
  readonly waits = new ConnectionWaits();
  /** Sequence number of the peer's SYN. */
  initialReceiveSequence = 0;

  /** Work that its turn in the engine brings. */
  isSynDue = false;
  isAbortDue = false;
  /** Bits of {@link TcpEvent} that software has not been told, and the error of a Terminate. */
  pendingEvents = 0;
  isReporting = false;
  terminateError = 0;
  /** Software is being told of these: that it exists, is established, has bytes, has the peer's FIN, has ended. */
  isKnown: boolean;
  isEstablishedKnown = false;
  isReadableKnown = false;
  isCloseKnown = false;
  hasEnded = false;
  /** The event of its end has left. */
  isEndReported = false;
  /** Software has given the number back. */
  isReleased = false;

  /** When the engine next checks the deadlines, and the event that brings it there; 0: none. */
  timerPs = NEVER;
  timer: EventRef = 0;
  readonly #host: ConnectionHost;

  constructor(setup: ConnectionSetup) {
    const {
      host,
      config,
      slot,
      number,
      opening,
      addresses,
      initialSequence,
      epochUs,
      segmentBytes,
      listener,
    } = setup;
    super({
      limits: {
        windowScale: opening.receiveScale,
        initialWindowSegments: config.initialWindowSegments,
        retransmitInitialUs: config.retransmitInitialUs,
        retransmitMinUs: config.retransmitMinUs,
        retransmitMaxUs: config.retransmitMaxUs,
        synRetries: opening.synRetries,
        dataRetries: opening.dataRetries,
        delayedAckUs: config.delayedAckUs,
        duplicateAcks,
        finTimeoutUs: config.finTimeoutUs,
        timeWaitUs: config.timeWaitUs,
        memoryWaitUs: config.delayedAckUs,
        isDelayed: false,
      },
      extensions: extensionsOf(opening, config),
      counts: noTcpCounts(),
      initialSequence,
      epochUs,
      isPassive: listener !== undefined,
      segmentBytes,
      defaultSegmentBytes: addresses.isIpv6 ? unsaidSegmentBytes.ipv6 : unsaidSegmentBytes.ipv4,
    });
    this.#host = host;
    this.slot = slot;
    this.number = number;
    this.cookie = opening.cookie;
    this.listener = listener;
    this.isLooped = setup.isLooped;
    this.isKnown = listener === undefined;
    this.localMac = addresses.localMac;
    this.remoteMac = addresses.remoteMac;
    this.vlanTag = addresses.vlanTag;
    this.isIpv6 = addresses.isIpv6;
    this.localAddress = addresses.localAddress;
    this.remoteAddress = addresses.remoteAddress;
    this.localPort = addresses.localPort;
    this.remotePort = addresses.remotePort;
    this.hopLimit = addresses.hopLimit;
    this.trafficClass = addresses.trafficClass;
    this.receiveWindowBytes = opening.receiveWindowBytes;
    const unreadMax = Math.max(config.streamBytes, 2 * segmentBytes);
    this.received = new PlacingStream<CardSegment>(0, {
      get keptMax() {
        return host.keptSegmentsMax;
      },
      unreadMax,
      release: (segment) => host.releaseReceived(segment),
    });
    this.receiveLimitBytes = Math.min(opening.receiveWindowBytes, unreadMax);
    this.sendNext = this.queueEnd;
    this.sendMax = this.queueEnd;
  }

  /** The peer's SYN has this sequence number: its stream begins after it. */
  beginsAfter(sequence: number): void {
    this.initialReceiveSequence = sequence;
    this.#countedTo = sequenceAdd(sequence, 1);
  }

  /** Counts what has arrived in order since the last call. @returns its bytes */
  countReceived(): number {
    const bytes = (this.received.next - this.#countedTo) | 0;
    this.bytesReceived += bytes;
    this.#countedTo = this.received.next;
    return bytes;
  }

  override rebase(ps: number): void {
    super.rebase(ps);
    this.timerPs -= ps;
    this.waits.rebase(ps);
  }

  // Queries of the transport to its owner.

  nowPs(): number {
    return this.#host.nowPs();
  }

  get room(): number {
    return this.#host.transmitRoom;
  }

  get hasSendRoom(): boolean {
    return this.canQueue;
  }

  /** Software closes a connection only when it has done with it: nothing else would end one whose peer keeps it open. */
  override get isFinWaitLimited(): boolean {
    return true;
  }

  /** A frame is formed when the segment is sent: the transmitter reads nothing later. */
  isHeld(): boolean {
    return false;
  }

  sendData(host: ConnectionHost, fields: SegmentFields, segment: CardSegment): boolean {
    if (!segment.isSent) this.bytesSent += segment.length;
    host.transmit(this, fields, segment);
    return true;
  }

  sendControl(host: ConnectionHost, fields: SegmentFields): boolean {
    host.transmit(this, fields, noPayload);
    return true;
  }

  takeBuffer(): CardSegment {
    return noPayload;
  }

  release(segment: CardSegment): void {
    this.#host.releaseSent(segment);
  }

  discard(segment: CardSegment): void {
    this.#host.releaseReceived(segment);
  }

  readable(host: ConnectionHost): void {
    host.progressed(this);
  }

  throttle(): void {
    this.#host.throttle(this);
  }

  established(host: ConnectionHost): boolean {
    host.accepted(this);
    return true;
  }

  timeWaits(): void {
    this.#host.waitsOut(this);
  }

  forget(): void {
    this.#host.ended(this);
  }

  /** The engine sets its timer when it has finished with the connection. */
  deadlineChanged(): void {}
  writable(): void {}
  allocated(): void {}
  freed(): void {}
  copied(): void {}
  pathConfirmed(): void {}
}

function extensionsOf(opening: TcpOpening, config: IwarpConfig): TcpExtensions {
  const { keepAliveSeconds } = opening;
  const { keepaliveIntervalUs: intervalUs, keepaliveProbes: probes } = config;
  return {
    hasSack: opening.offersSack === 1,
    hasTimestamps: opening.offersTimestamps === 1,
    congestion: opening.congestion === TcpCongestion.CUBIC ? 'cubic' : 'newReno',
    keepalive:
      keepAliveSeconds === 0 ? undefined : { idleUs: keepAliveSeconds * usPerSecond, intervalUs, probes },
  };
}

/** Bit of an event in {@link CardConnection.pendingEvents}. */
export const eventBit = (event: TcpEvent): number => 1 << event;

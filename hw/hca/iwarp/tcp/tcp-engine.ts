/**
 * The TCP engine: works on one segment or one connection at a time.
 *
 *   port, loopback ─► frames arrived ─► context on chip? ─► transport (protocol/tcp) ─► bytes to software or to the QP's reader
 *                                                      │
 *   commands, RDMA side, timers ─► attention ─► context on chip? ─► output ─► frames ─► TcpTransmitter ─► port
 *
 * Both sides have turns; one that waits for a context, or for the RDMA side, does not hold up the other. The state of all connections is in
 * the table; the context cache decides which of them count as on chip. What is sent for a connection is formed in the cycles that its segment
 * or its turn takes. Deadlines are events that only call the connection to attention: the work is done at an edge.
 *
 * Software that has named a number of connections in INIT_HCA has given the card all TCP of its port: the card answers a segment without a
 * connection by RST. Before, and with other software, such frames go to the rings. Sources: RFC 9293, 3.5 and 3.10; RFC 6528 for initial
 * sequence numbers.
 */
import { TcpEvent, tcpContext } from '../../../../abi/index.ts';
import { type Cycles, MAC_BYTES, macBytesOf, NEVER, psPerUs, type Wide } from '../../../../base/index.ts';
import {
  deadlinesDue,
  Flag,
  isAfter,
  isWindowWorthAnnouncing,
  newSegmentFields,
  noTcpCounts,
  output,
  type SegmentFields,
  segmentArrived,
  sendReset,
  sendSyn,
  sequenceAdd,
  type TcpCounts,
} from '../../../../protocol/tcp/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  type LogicalProcess,
  stallReasons,
} from '../../../../sim/index.ts';
import { ETHERNET_FCS_BYTES } from '../../../../wire/index.ts';
import { tagOf } from '../../frames/index.ts';
import {
  type ContextCache,
  type ContextMemory,
  type ContextPort,
  type ContextUser,
  contextUsers,
} from '../../memory/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { EthernetAttachment } from '../../port/index.ts';
import type { IwarpConfig } from '../iwarp-parameters.ts';
import type { StreamEnd } from '../streams.ts';
import { ArrivalBuffers, type FrameSource } from './arrival-buffers.ts';
import { CardConnection, type ConnectionHost, noPayload, type TcpOpening } from './card-connection.ts';
import { ConnectionFifo } from './connection-fifo.ts';
import type { ConnectionIndex } from './connection-index.ts';
import { type ConnectionWait, connectionWaits } from './connection-waits.ts';
import type { Listener } from './listener.ts';
import { CardSegment, type SegmentMemory } from './segment-memory.ts';
import type { TcpEvents } from './tcp-events.ts';
import { FrameReader, FrameWriter, type SegmentAddresses, segmentHeadersBytes } from './tcp-frames.ts';
import type { TcpLoopback } from './tcp-loopback.ts';
import type { TcpTable } from './tcp-table.ts';
import type { TcpTransmitter } from './tcp-transmitter.ts';

const stalls = stallReasons('context', 'placement');
const { context: STALL_CONTEXT, placement: STALL_PLACEMENT } = stalls;
/** Answers of a turn beside a reason to stall. */
const NOTHING = -1;
const DONE = -2;
/** RFC 6528: a clock of 4 us, and a step for each connection (as Linux' hash differs for each). */
const sequenceUnitUs = 4;
const sequenceStep = 64_000;
/** A timer that is further away is looked at before. */
const timerMaxPs = 3_600_000_000 * psPerUs;

/** Segments and frames by what became of them. */
export interface TcpEngineCounters {
  received: number;
  sent: number;
  /** With a wrong checksum, or a header that is not whole. */
  damaged: number;
  /** While the port was not open. */
  portClosed: number;
  /** Without a connection or a listener. */
  unmatched: number;
  /** SYNs beyond a backlog, or for which no number was free. */
  refusedSyns: number;
  resetsSent: number;
  /** FPDUs that left in a segment with others before them. */
  packedFpdus: number;
}

/** Data that TCP still has to bring to the peer. */
export interface UnacknowledgedData {
  /** DDP segments, and segments of software's bytes. */
  readonly segments: number;
  /** Bytes of the stream, with headers and CRCs of FPDUs. */
  readonly streamBytes: number;
}

export interface TcpEnginePorts {
  readonly transmitter: TcpTransmitter;
  readonly events: TcpEvents;
  /** Takes the frames that are not the engine's. */
  readonly frameReceiver: { frameArrived(slot: number): void };
}

/** Parts of the device that {@link TcpEngine} uses. */
export interface TcpEngineSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'receiveLatencyCycles' | 'receiveBytesPerCycle' | 'transmitLatencyCycles'>;
  readonly iwarp: IwarpConfig;
  readonly ethernet: EthernetAttachment;
  readonly address: { readonly isActive: boolean };
  readonly contextMemory: Pick<ContextMemory, 'contextAddress'>;
  readonly table: TcpTable;
  readonly index: ConnectionIndex;
  readonly contexts: ContextCache<ContextUser<'auxc'>>;
  readonly sendMemory: SegmentMemory;
  readonly reorderMemory: SegmentMemory;
  /** Frames of this port to itself. */
  readonly loopback: TcpLoopback;
  /** Where frames are formed. */
  readonly frameBytes: Uint8Array;
}

/** A way by which frames arrive: by the cable, or from this port itself. */
class Origin {
  readonly source: FrameSource;
  /** Slots whose frames have arrived. */
  readonly arrived: Fifo;
  /** Reads the frame that is being worked on. */
  readonly reader: FrameReader;
  /** Payload of that frame, where it lies. */
  readonly payload: CardSegment;

  constructor(source: FrameSource, name: string, whenFull: string) {
    this.source = source;
    this.arrived = new Fifo({ name, capacity: source.slotCount, whenFull });
    this.reader = new FrameReader(source.rxBytes);
    this.payload = new CardSegment(source.rxBytes, 0);
  }
}

export class TcpEngine implements ConnectionHost {
  readonly account = new BlockAccount('tcpEngine', stalls);
  readonly counters: TcpEngineCounters = {
    ...{ received: 0, sent: 0, damaged: 0, portClosed: 0, unmatched: 0, refusedSyns: 0, resetsSent: 0 },
    packedFpdus: 0,
  };
  readonly #setup: TcpEngineSetup;
  readonly #receiveContexts: ContextPort;
  readonly #sendContexts: ContextPort;
  readonly #stage: number;
  readonly #timerHandler: number;
  readonly #localMac: Uint8Array;
  readonly #cable: Origin;
  readonly #loopback: Origin;
  /** Origin of the frame that is being worked on. */
  #origin: Origin;
  readonly #attention: ConnectionFifo;
  readonly #throttled: ConnectionFifo;
  readonly #poolWaiters: ConnectionFifo;
  readonly #buffers: ArrivalBuffers;
  /** Reads frames of the port when they arrive. */
  readonly #arrivals: FrameReader;
  readonly #writer: FrameWriter;
  readonly #segment = newSegmentFields();
  /** That segment lies in the memory for reordering, and may be kept. */
  #mayKeep = false;
  /** The oldest frame of {@link #origin} has been read, and waits for a context or the RDMA side. */
  #isRead = false;
  #isReceiveTurn = true;
  /** Cycles that the present turn takes so far. */
  #busyCycles = 0;
  #openedCount = 0;
  /** Frames of connections that have arrived by the cable. */
  arrivedCount = 0;
  /**
   * Bytes that arrived in order on a connection whose QP had given its stream up, so that no reader takes them: by the
   * cable, and from this port itself.
   */
  discardedBytes: Wide = 0;
  loopedDiscardedBytes: Wide = 0;
  /** Counts of connections that are gone, and connections that ended by a reset of either side or without an answer. */
  readonly #retired = noTcpCounts();
  #lostCount = 0;
  readonly #retiredWaitsPs = new Float64Array(connectionWaits.length);
  /** Connections that have ended in the present turn, and those that have more room. */
  readonly #ended: CardConnection[] = [];
  readonly #roomy: CardConnection[] = [];
  /** Connections that software has released before the end of their TIME_WAIT, the oldest first. */
  readonly #waitingOut = new Set<CardConnection>();
  #ports!: TcpEnginePorts;

  constructor(setup: TcpEngineSetup) {
    const { lp, domain, ethernet, table, contexts, reorderMemory, loopback, frameBytes } = setup;
    const { port, side } = ethernet;
    this.#setup = setup;
    this.#receiveContexts = contexts.port(contextUsers.auxc.tcpReceive);
    this.#sendContexts = contexts.port(contextUsers.auxc.tcpSend);
    this.#localMac = macBytesOf(side.mac);
    this.#arrivals = new FrameReader(port.rxBytes);
    this.#writer = new FrameWriter(frameBytes);
    this.#buffers = new ArrivalBuffers(port, reorderMemory, loopback);
    this.#cable = new Origin(port, 'segments', 'never: the wire port drops frames without a buffer');
    this.#loopback = new Origin(
      loopback,
      'segments of this port',
      'never: the transmitter waits for a place',
    );
    this.#origin = this.#cable;
    this.#attention = new ConnectionFifo('connections to attend to', table.capacity);
    this.#throttled = new ConnectionFifo('connections that wait for the transmitter', table.capacity);
    this.#poolWaiters = new ConnectionFifo('connections that wait for memory', table.capacity);
    this.#timerHandler = lp.queue.addHandler((slot) => this.#timerDue(slot));
    this.#stage = domain.addStage(this.#run, this);
    lp.addTimeKeeper({ rebase: (ps) => this.#rebaseTimes(ps) });
  }

  connect(ports: TcpEnginePorts): void {
    this.#ports = ports;
  }

  wake(cycle: Cycles): void {
    this.#setup.domain.wake(this.#stage, cycle);
  }

  /** The fifo of frames has room: the connection that has waited longest has its turn. If all had one, the first would take all room each time. */
  transmitSpace(): void {
    if (!this.#throttled.fifo.isEmpty) this.#callToAttention(this.#throttled.pop());
  }

  /** The wire port has a frame in this slot, whole. */
  frameArrived(slot: number): void {
    const { lp, domain, config, ethernet, table } = this.#setup;
    const { port, side } = ethernet;
    const { rxBytes } = port;
    const at = port.frameStart(slot);
    const bytes = port.frameBytes(slot);
    if (table.count === 0 || !this.#isOwnMac(rxBytes, at) || !this.#arrivals.find(at, bytes))
      return this.#ports.frameReceiver.frameArrived(slot);
    const { longestBytes } = side.steering;
    side.statistics.received.count(rxBytes, at, tagOf(rxBytes, at), bytes + ETHERNET_FCS_BYTES, longestBytes);
    const { receiveLatencyCycles, receiveBytesPerCycle } = config;
    const cycle =
      domain.clock.cycleAfter(lp.nowPs) + receiveLatencyCycles + Math.ceil(bytes / receiveBytesPerCycle);
    this.#cable.arrived.push(slot, cycle);
    this.arrivedCount++;
    this.wake(cycle);
  }

  /** A frame to this very port. */
  frameLooped(slot: number, arrivalCycle: Cycles): void {
    const { config, loopback } = this.#setup;
    const passCycles = Math.ceil(loopback.frameBytes(slot) / config.receiveBytesPerCycle);
    const cycle = arrivalCycle + config.receiveLatencyCycles + passCycles;
    this.#loopback.arrived.push(slot, cycle);
    this.wake(cycle);
  }

  /** A connection has work: it gets a turn. */
  attend({ slot }: CardConnection): void {
    this.#callToAttention(slot);
  }

  // ---- connections come and go ----

  /**
   * Opens a connection, actively or for a listener.
   * @returns undefined when all numbers are in use, or the entry of the number has no memory
   */
  open(
    opening: TcpOpening,
    bytes: Uint8Array,
    addresses: SegmentAddresses,
    listener: Listener | undefined,
  ): CardConnection | undefined {
    const { table, index, iwarp, ethernet } = this.#setup;
    const slot = this.takeSlot(bytes);
    if (slot === -1) return undefined;
    const headers = segmentHeadersBytes(addresses.isIpv6);
    const connection = new CardConnection({
      host: this,
      config: iwarp,
      slot,
      number: table.numberOf[slot]!,
      opening,
      addresses,
      initialSequence: this.#nextInitialSequence(),
      epochUs: this.#setup.lp.epochUs,
      segmentBytes: Math.min(opening.maxSegmentBytes, ethernet.side.mtuBytes - headers),
      isLooped: this.#isOwnMac(addresses.remoteMac, 0),
      listener,
    });
    table.rows[slot] = connection;
    index.add(connection);
    connection.isSynDue = true;
    connection.state = listener === undefined ? 'SYN_SENT' : 'SYN_RECEIVED';
    this.attend(connection);
    return connection;
  }

  /** Takes a number whose context begins with these bytes. @returns its slot or -1 */
  takeSlot(bytes: Uint8Array): number {
    const { table, contexts, contextMemory } = this.#setup;
    let slot = table.takeNumber();
    if (slot === -1 && this.#endOldestWait()) slot = table.takeNumber();
    if (slot === -1) return -1;
    if (contextMemory.contextAddress('auxc', table.numberOf[slot]!) < 0) {
      table.free(slot);
      return -1;
    }
    contexts.forget(slot);
    table.bytes.set(bytes.subarray(0, table.contextBytes), table.offsetOf(slot));
    return slot;
  }

  /** The card's side of the addresses of a connection. */
  get localMac(): Uint8Array {
    return this.#localMac;
  }

  /** Software gives the number of an ended connection back. In TIME_WAIT the number stays in use until that is over. */
  forgetEnded(connection: CardConnection): void {
    if (connection.state === 'CLOSED') return this.#free(connection);
    connection.isReleased = true;
    this.#waitingOut.add(connection);
  }

  /** Software stops listening: connections that it has not learnt of are reset. */
  releaseListener(listener: Listener): void {
    const { table, index, contexts } = this.#setup;
    index.unlisten(listener);
    for (const slot of table.liveSlots()) {
      const row = table.rows[slot];
      if (row instanceof CardConnection && row.listener === listener && !row.isKnown) this.abort(row);
    }
    contexts.forget(listener.slot);
    table.free(listener.slot);
  }

  /** The connection sends RST, if its peer knows of it, and ends. */
  abort(connection: CardConnection): void {
    connection.isAbortDue = true;
    this.attend(connection);
  }

  /** FIN is sent after everything queued. */
  finish(connection: CardConnection): void {
    if (connection.isFinQueued) return;
    if (connection.state === 'ESTABLISHED') connection.state = 'FIN_WAIT_1';
    else if (connection.state === 'CLOSE_WAIT') connection.state = 'LAST_ACK';
    else return;
    connection.isFinQueued = true;
    this.attend(connection);
  }

  /** Software learns of a connection that a listener has accepted. */
  acceptReported({ listener }: CardConnection): void {
    if (listener !== undefined) listener.unknownCount--;
  }

  endReported(connection: CardConnection): void {
    connection.isEndReported = true;
  }

  // ---- memory ----

  /** Whether a segment of this length is accepted now; if not, {@link RdmaStream.writable} follows. */
  hasRoom(connection: CardConnection, lengthBytes: number): boolean {
    if (this.#isRoomFor(connection, lengthBytes)) return true;
    if (this.#setup.sendMemory.isFull) this.#poolWaiters.push(connection.slot, 0);
    connection.wantsRoom = true;
    connection.waits.note(connection, this.nowPs());
    return false;
  }

  /** Whether this number of bytes from software is accepted now, as segments of full size. */
  hasRoomFor({ chargedBytes, segmentBytes }: CardConnection, lengthBytes: number): boolean {
    const { sendMemory, iwarp } = this.#setup;
    const freeCount = sendMemory.segments.length - sendMemory.heldCount;
    return (
      chargedBytes + lengthBytes <= iwarp.connectionBytes &&
      Math.ceil(lengthBytes / segmentBytes) <= freeCount
    );
  }

  /** Software has read bytes: announces the room to the peer if it is worth a segment. */
  windowOpened(connection: CardConnection): void {
    if (connection.isOver || !isWindowWorthAnnouncing(connection)) return;
    connection.isAckDue = true;
    this.attend(connection);
  }

  /** Takes a segment of the retransmission memory, for a connection that has room. */
  takeSegment(connection: CardConnection, lengthBytes: number): CardSegment {
    const segment = this.#setup.sendMemory.take();
    segment.owner = connection;
    segment.chargedBytes = lengthBytes;
    connection.chargedBytes += lengthBytes;
    return segment;
  }

  /**
   * Appends FPDUs to what the connection sends: to its last segment, if packing is on and that has not left and has room.
   * A segment begins with an FPDU in any case (RFC 5044, 4.5).
   */
  appendFpdus(connection: CardConnection, segment: CardSegment, lengthBytes: number): void {
    const last = connection.sendQueue.at(-1);
    const isPacked =
      this.#setup.iwarp.packsFpdus &&
      last !== undefined &&
      last.fpduCount > 0 &&
      !last.isSent &&
      last.length + lengthBytes <= connection.segmentBytes &&
      // One request of a segment has its times noted.
      (last.times === undefined || segment.times === undefined);
    if (isPacked) this.#pack(connection, last, segment, lengthBytes);
    else this.append(connection, segment, lengthBytes);
  }

  #pack(connection: CardConnection, last: CardSegment, segment: CardSegment, lengthBytes: number): void {
    const { start } = segment;
    last.bytes.set(segment.bytes.subarray(start, start + lengthBytes), last.start + last.length);
    last.length += lengthBytes;
    last.fpduCount += segment.fpduCount;
    last.times ??= segment.times;
    last.chargedBytes += segment.chargedBytes;
    segment.chargedBytes = 0;
    connection.queueEnd = sequenceAdd(connection.queueEnd, lengthBytes);
    this.counters.packedFpdus += segment.fpduCount;
    this.releaseSent(segment);
    this.attend(connection);
  }

  /** Appends a filled segment to what the connection sends. */
  append(connection: CardConnection, segment: CardSegment, lengthBytes: number): void {
    segment.length = lengthBytes;
    segment.sequence = connection.queueEnd;
    connection.sendQueue.push(segment);
    connection.queueEnd = sequenceAdd(connection.queueEnd, lengthBytes);
    this.attend(connection);
  }

  /** A segment is acknowledged, or was never sent. */
  releaseSent(segment: CardSegment): void {
    const { owner, chargedBytes } = segment;
    if (owner === undefined) return;
    segment.owner = undefined;
    owner.chargedBytes -= chargedBytes;
    this.#setup.sendMemory.give(segment);
    this.#roomy.push(owner);
    this.wake(this.#setup.domain.cycle + 1);
  }

  releaseReceived(segment: CardSegment): void {
    if (segment.place >= 0) this.#buffers.giveUp(this.#buffers.nameOfPlace(segment.place));
  }

  /** Buffers that the RDMA side holds. */
  get buffers(): Pick<ArrivalBuffers, 'hold' | 'release'> {
    return this.#buffers;
  }

  // ---- the transport's owner: see ConnectionHost ----

  nowPs(): number {
    return this.#setup.lp.nowPs;
  }

  get transmitRoom(): number {
    return this.#ports.transmitter.room;
  }

  get keptSegmentsMax(): number {
    return this.#mayKeep ? this.#setup.reorderMemory.segments.length : 0;
  }

  transmit(connection: CardConnection, fields: SegmentFields, segment: CardSegment): void {
    this.#send(connection, fields, segment);
  }

  throttle({ slot }: CardConnection): void {
    this.#throttled.push(slot, 0);
  }

  progressed(connection: CardConnection): void {
    const { events } = this.#ports;
    if (connection.state === 'CLOSED' || connection.state === 'SYN_RECEIVED') return;
    if (!connection.isPassive && !connection.isEstablishedKnown) {
      connection.isEstablishedKnown = true;
      connection.beginsAfter(sequenceAdd(connection.received.next, -1));
      events.post(connection, TcpEvent.ESTABLISHED);
    }
    const isReadable = connection.qpn === 0 && connection.received.readableBytes > 0;
    if (isReadable && !connection.isReadableKnown) {
      connection.isReadableKnown = true;
      events.post(connection, TcpEvent.READABLE);
    }
    if (!connection.hasFin || connection.isCloseKnown) return;
    connection.isCloseKnown = true;
    events.post(connection, TcpEvent.PEER_CLOSED);
    connection.stream?.peerClosed(this.#setup.domain.cycle);
  }

  accepted(connection: CardConnection): void {
    connection.isKnown = true;
    this.#ports.events.post(connection, TcpEvent.ACCEPTED);
  }

  waitsOut(connection: CardConnection): void {
    this.#ended.push(connection);
  }

  ended(connection: CardConnection): void {
    this.#setup.index.remove(connection);
    this.#ended.push(connection);
  }

  /** Events of all connections so far; `lost` counts those that ended by a reset of either side or without an answer. */
  totals(): Readonly<Record<string, number>> {
    const { table } = this.#setup;
    const totals = { ...this.#retired };
    for (const slot of table.liveSlots()) {
      const row = table.rows[slot];
      if (row instanceof CardConnection) addCounts(totals, row.counts);
    }
    return { ...totals, lost: this.#lostCount };
  }

  /**
   * Data segments that connections hold until the peer acknowledges them, and their bytes. A connection counts only if it still sends them:
   * its retransmission timer runs, or it waits for its turn.
   * @param isLooped of connections of this port to itself; else of the others
   */
  unacknowledged(isLooped: boolean): UnacknowledgedData {
    const { table } = this.#setup;
    let [segments, streamBytes] = [0, 0];
    for (const slot of table.liveSlots()) {
      const row = table.rows[slot];
      if (!(row instanceof CardConnection) || row.isLooped !== isLooped) continue;
      const isDue = this.#attention.has(slot) || this.#throttled.has(slot);
      if (!isDue && row.retransmitPs === NEVER) continue;
      for (const { length, fpduCount } of row.sendQueue) {
        segments += Math.max(1, fpduCount);
        streamBytes += length;
      }
    }
    return { segments, streamBytes };
  }

  /** Picoseconds that connections of QPs have waited with something to send, by cause, summed over all connections. */
  waitedPs(): Readonly<Record<ConnectionWait, number>> {
    const { table, lp } = this.#setup;
    const sumsPs = this.#retiredWaitsPs.slice();
    for (const slot of table.liveSlots()) {
      const row = table.rows[slot];
      if (row instanceof CardConnection) row.waits.addTo(sumsPs, lp.nowPs);
    }
    const rows = connectionWaits.map((cause, index) => [cause, sumsPs[index]!]);
    return Object.fromEntries(rows) as Record<ConnectionWait, number>;
  }

  // ---- state ----

  /** Segments that have arrived and are not done with, and connections with work. */
  get heldCount(): number {
    return this.#arrivedCount + this.#attention.fifo.count;
  }

  /** Segments in the memories: not acknowledged, after a gap, or not placed yet. */
  get keptSegments(): number {
    const { sendMemory, reorderMemory } = this.#setup;
    return sendMemory.heldCount + reorderMemory.heldCount + this.#buffers.holdCount + this.#arrivedCount;
  }

  get #arrivedCount(): number {
    return this.#cable.arrived.count + this.#loopback.arrived.count;
  }

  get fifos(): readonly Fifo[] {
    const { arrived } = this.#cable;
    return [
      arrived,
      this.#loopback.arrived,
      this.#attention.fifo,
      this.#throttled.fifo,
      this.#poolWaiters.fifo,
    ];
  }

  inspect(): BlockState {
    const { table, sendMemory, reorderMemory } = this.#setup;
    return {
      connections: table.liveCount,
      entries: table.count,
      arrived: this.#cable.arrived.values,
      looped: this.#loopback.arrived.values,
      attention: this.#attention.fifo.values,
      throttled: this.#throttled.fifo.values,
      poolWaiters: this.#poolWaiters.fifo.values,
      isRead: this.#isRead,
      isReceiveTurn: this.#isReceiveTurn,
      sendMemory: sendMemory.heldCount,
      reorderMemory: reorderMemory.heldCount,
      held: this.#buffers.holdCount,
      waitingOut: this.#waitingOut.size,
    };
  }

  reset(): void {
    const { lp, table, index, contexts, sendMemory, reorderMemory } = this.#setup;
    for (const slot of table.liveSlots()) {
      const row = table.rows[slot];
      if (!(row instanceof CardConnection)) continue;
      this.#retire(row);
      if (row.timer !== 0) lp.queue.cancel(row.timer);
    }
    this.#buffers.reset(this.#cable.arrived.values);
    for (const { arrived } of [this.#cable, this.#loopback]) arrived.clear();
    this.#origin = this.#cable;
    for (const waiting of [this.#attention, this.#throttled, this.#poolWaiters]) waiting.clear();
    this.#ended.length = 0;
    this.#roomy.length = 0;
    this.#waitingOut.clear();
    this.#isRead = false;
    this.#isReceiveTurn = true;
    this.#openedCount = 0;
    table.clear();
    index.clear();
    contexts.reset();
    sendMemory.reset();
    reorderMemory.reset();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const fifo of [this.#cable.arrived, this.#loopback.arrived, this.#attention.fifo])
      fifo.rebase(cycles);
  }

  #rebaseTimes(ps: number): void {
    for (const row of this.#setup.table.rows) if (row instanceof CardConnection) row.rebase(ps);
  }

  // ---- turns ----

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    this.#busyCycles = 0;
    const answer = this.#takeTurn(cycle);
    this.#settle(cycle);
    if (answer === DONE) {
      this.account.serve(cycle, this.#busyCycles);
      this.wake(cycle + this.#busyCycles);
      return;
    }
    if (answer === NOTHING) this.account.rest(cycle);
    else this.account.stall(cycle, answer);
    this.#wakeForNext(cycle);
  }

  /** The side whose turn it is keeps it while it waits; meanwhile the other one works. */
  #takeTurn(cycle: Cycles): number {
    const isReceiveFirst = this.#isReceiveTurn;
    const first = isReceiveFirst ? this.#receive(cycle) : this.#attend(cycle);
    if (first === DONE) {
      this.#isReceiveTurn = !isReceiveFirst;
      return DONE;
    }
    const second = isReceiveFirst ? this.#attend(cycle) : this.#receive(cycle);
    return second === DONE || first === NOTHING ? second : first;
  }

  /** Entries that can be seen later. */
  #wakeForNext(cycle: Cycles): void {
    for (const fifo of [this.#cable.arrived, this.#loopback.arrived, this.#attention.fifo])
      if (!fifo.isEmpty && fifo.headCycle > cycle) this.wake(fifo.headCycle);
  }

  /** Works on the oldest segment. */
  #receive(cycle: Cycles): number {
    if (!this.#isRead) this.#origin = this.#longestWaiting();
    const { arrived, reader } = this.#origin;
    if (arrived.headCycle > cycle) return NOTHING;
    const slot = arrived.head;
    if (!this.#isRead && !this.#read(slot)) return DONE;
    this.#isRead = true;
    const connection = this.#setup.index.find(reader);
    if (connection !== undefined) {
      if (!this.#receiveContexts.access(connection.slot, true)) return STALL_CONTEXT;
      if (connection.stream?.isBusy === true) return STALL_PLACEMENT;
    }
    this.counters.received++;
    this.#busyCycles = this.#passCycles(slot);
    if (connection === undefined || this.#isReplaced(connection)) this.#strangerArrived();
    else this.#segmentArrived(connection);
    this.#finish();
    return DONE;
  }

  /** The origin whose oldest frame arrived first; of equals, the cable. */
  #longestWaiting(): Origin {
    const [cable, loopback] = [this.#cable, this.#loopback];
    return loopback.arrived.headCycle < cable.arrived.headCycle ? loopback : cable;
  }

  /** Cycles that a received segment takes: its state, or its bytes on the path of the checksum. */
  #passCycles(slot: number): number {
    const { receiveCycles, bytesPerCycle } = this.#setup.iwarp;
    return Math.max(receiveCycles, Math.ceil(this.#origin.source.frameBytes(slot) / bytesPerCycle));
  }

  /** Reads the header of the segment in a slot. False: it is dropped. */
  #read(slot: number): boolean {
    const { address, loopback } = this.#setup;
    const { source, reader } = this.#origin;
    this.#buffers.own(this.#buffers.nameOfSlot(source, slot));
    if (source === loopback) loopback.received(slot);
    const isWhole =
      reader.find(source.frameStart(slot), source.frameBytes(slot)) && reader.read(this.#segment);
    if (isWhole && address.isActive) return true;
    if (isWhole) this.counters.portClosed++;
    else this.counters.damaged++;
    this.#busyCycles = this.#passCycles(slot);
    this.#finish();
    return false;
  }

  /** The oldest segment is worked off: its buffer is free unless the RDMA side holds it. */
  #finish(): void {
    this.#isRead = false;
    const { source, arrived } = this.#origin;
    this.#buffers.giveUp(this.#buffers.nameOfSlot(source, arrived.pop()));
  }

  #segmentArrived(connection: CardConnection): void {
    const payload = this.#payloadFor(connection, this.#origin);
    segmentArrived<ConnectionHost, CardSegment>(this, connection, this.#segment, payload);
    this.#mayKeep = false;
    const bytes = connection.countReceived();
    if (connection.qpn !== 0 && connection.stream === undefined) this.#countDiscarded(connection, bytes);
    this.#receiveContexts.used();
    this.#turnEnds(connection);
  }

  #countDiscarded({ isLooped }: CardConnection, bytes: number): void {
    if (isLooped) this.loopedDiscardedBytes += bytes;
    else this.discardedBytes += bytes;
  }

  /** The payload where it lies; after a gap it is copied, so that it can be kept. */
  #payloadFor(connection: CardConnection, { source, reader, payload }: Origin): CardSegment {
    const { reorderMemory } = this.#setup;
    const { payloadAt, payloadBytes } = reader;
    const isEarly = payloadBytes > 0 && isAfter(this.#segment.sequence, connection.received.next);
    if (isEarly && !reorderMemory.isFull && payloadBytes <= reorderMemory.placeBytes) {
      const kept = reorderMemory.take();
      this.#buffers.own(this.#buffers.nameOfPlace(kept.place));
      kept.bytes.set(source.rxBytes.subarray(payloadAt, payloadAt + payloadBytes), kept.start);
      kept.length = payloadBytes;
      this.#mayKeep = true;
      return kept;
    }
    payload.start = payloadAt;
    payload.length = payloadBytes;
    return payload;
  }

  /** A SYN with a later number ends a connection in TIME_WAIT (RFC 9293, 3.10.7.4). */
  #isReplaced(connection: CardConnection): boolean {
    const { flags, sequence } = this.#segment;
    const isNewSyn =
      connection.state === 'TIME_WAIT' &&
      (flags & (Flag.SYN | Flag.RST | Flag.ACK)) === Flag.SYN &&
      isAfter(sequence, connection.received.next);
    if (isNewSyn) connection.end(this);
    return isNewSyn;
  }

  /** A segment that belongs to no connection. */
  #strangerArrived(): void {
    const segment = this.#segment;
    if ((segment.flags & Flag.RST) !== 0) return;
    const { reader } = this.#origin;
    const listener = this.#setup.index.listenerAt(reader.localPort);
    const addresses = reader.answerAddresses(this.#localMac, listener?.opening.hopLimit ?? answerHopLimit);
    const isOpening = (segment.flags & (Flag.SYN | Flag.ACK)) === Flag.SYN;
    if (!isOpening || listener?.isFor(addresses.localAddress) !== true) return this.#refuse(addresses);
    if (listener.hasRoom) this.#accept(listener, addresses);
    else this.counters.refusedSyns++;
  }

  /** A SYN that finds no number is dropped: the peer sends it again. */
  #accept(listener: Listener, addresses: SegmentAddresses): void {
    const { opening } = listener;
    const { trafficClass } = opening;
    const bytes = contextOfAccepted(opening, addresses);
    const connection = this.open(opening, bytes, { ...addresses, trafficClass }, listener);
    if (connection === undefined) {
      this.counters.refusedSyns++;
      return;
    }
    listener.unknownCount++;
    connection.received.next = sequenceAdd(this.#segment.sequence, 1);
    connection.beginsAfter(this.#segment.sequence);
    connection.agree(this.#segment);
    connection.sendWindow = this.#segment.window;
  }

  /** Answers with RST (RFC 9293, 3.5.2). */
  #refuse(addresses: SegmentAddresses): void {
    const { flags, acknowledgement, sequence } = this.#segment;
    this.counters.unmatched++;
    if (this.transmitRoom === 0) return;
    const hasAck = (flags & Flag.ACK) !== 0;
    const length =
      this.#origin.reader.payloadBytes +
      ((flags & Flag.SYN) !== 0 ? 1 : 0) +
      ((flags & Flag.FIN) !== 0 ? 1 : 0);
    const fields = {
      ...newSegmentFields(),
      sequence: hasAck ? acknowledgement : 0,
      acknowledgement: hasAck ? 0 : sequenceAdd(sequence, length),
      flags: hasAck ? Flag.RST : Flag.RST | Flag.ACK,
    };
    this.counters.resetsSent++;
    this.#send(addresses, fields, noPayload);
  }

  /** Gives a connection its turn. */
  #attend(cycle: Cycles): number {
    if (this.#attention.fifo.headCycle > cycle) return NOTHING;
    const connection = this.#setup.table.rows[this.#attention.fifo.head];
    if (connection instanceof CardConnection && !this.#sendContexts.access(connection.slot, true))
      return STALL_CONTEXT;
    this.#attention.pop();
    if (connection instanceof CardConnection) {
      this.#work(connection);
      this.#sendContexts.used();
      this.#turnEnds(connection);
    }
    if (this.transmitRoom > 0) this.transmitSpace();
    if (this.#busyCycles === 0) this.#busyCycles = 1;
    return DONE;
  }

  #turnEnds(connection: CardConnection): void {
    connection.waits.note(connection, this.nowPs());
    this.#setTimer(connection);
  }

  #work(connection: CardConnection): void {
    const { state } = connection;
    if (state === 'CLOSED') return;
    if (connection.isAbortDue) {
      const sendsReset = state !== 'SYN_SENT' && state !== 'TIME_WAIT';
      // Without room for the frame the connection is called again: a peer that hears nothing tries for minutes.
      if (sendsReset && this.transmitRoom === 0) return this.throttle(connection);
      if (sendsReset) sendReset<ConnectionHost, CardSegment>(this, connection);
      connection.fail(this, 'ECONNRESET');
      return;
    }
    if (connection.isSynDue) {
      this.#sendFirst(connection);
      return;
    }
    if (connection.deadlinePs <= this.nowPs()) deadlinesDue<ConnectionHost, CardSegment>(this, connection);
    if (isSynchronised(connection)) output<ConnectionHost, CardSegment>(this, connection);
  }

  /** The first SYN, or the first answer to one. Without room for the frame the connection is called again. */
  #sendFirst(connection: CardConnection): void {
    if (this.transmitRoom === 0) return this.throttle(connection);
    connection.isSynDue = false;
    connection.timedEnd = connection.sendNext;
    connection.timedPs = this.nowPs();
    sendSyn<ConnectionHost, CardSegment>(this, connection);
    connection.armRetransmit();
  }

  #send(addresses: SegmentAddresses, fields: SegmentFields, segment: CardSegment): void {
    const { domain, config, iwarp } = this.#setup;
    const { transmitter } = this.#ports;
    const { bytes, start, length, times } = segment;
    const frameBytes = this.#writer.write(transmitter.nextFrameAt, addresses, fields, bytes, start, length);
    this.#busyCycles += iwarp.sendCycles;
    this.counters.sent++;
    const isSentAgain = length > 0 && segment.isSent;
    times?.note(isSentAgain, domain.cycle + this.#busyCycles);
    transmitter.formed(
      frameBytes,
      isSentAgain,
      this.#isOwnMac(addresses.remoteMac, 0),
      domain.cycle + this.#busyCycles + config.transmitLatencyCycles,
    );
  }

  // ---- what follows a turn ----

  #settle(cycle: Cycles): void {
    for (let connection = this.#ended.shift(); connection !== undefined; connection = this.#ended.shift())
      this.#settleEnd(connection, cycle);
    for (let connection = this.#roomy.shift(); connection !== undefined; connection = this.#roomy.shift())
      this.#offerRoom(connection, cycle);
    while (!this.#poolWaiters.fifo.isEmpty && !this.#setup.sendMemory.isFull) {
      const row = this.#setup.table.rows[this.#poolWaiters.pop()];
      if (row instanceof CardConnection) this.#offerRoom(row, cycle);
    }
  }

  /** The connection is in TIME_WAIT or CLOSED. */
  #settleEnd(connection: CardConnection, cycle: Cycles): void {
    const { stream, listener } = connection;
    if (!connection.isKnown) {
      listener!.unknownCount--;
      return this.#free(connection);
    }
    if (connection.hasEnded) {
      if (connection.isReleased) this.#free(connection);
      return;
    }
    const event = endOf(connection);
    connection.hasEnded = true;
    connection.stream = undefined;
    if (connection.received.readableBytes === 0) connection.received.clear();
    if (event === TcpEvent.RESET || event === TcpEvent.TIMED_OUT) this.#lostCount++;
    this.#ports.events.post(connection, event);
    stream?.ended(event, cycle);
  }

  #free(connection: CardConnection): void {
    const { table, contexts } = this.#setup;
    const { slot } = connection;
    this.#waitingOut.delete(connection);
    connection.received.clear();
    this.#stopTimer(connection);
    if (table.rows[slot] !== connection) return;
    this.#retire(connection);
    contexts.forget(slot);
    // Its places in the fifos are passed over.
    table.free(slot);
  }

  /** Keeps the counts of a connection that goes. */
  #retire({ counts, waits }: CardConnection): void {
    addCounts(this.#retired, counts);
    waits.addTo(this.#retiredWaitsPs, this.nowPs());
  }

  /** The oldest connection in TIME_WAIT gives its number up. */
  #endOldestWait(): boolean {
    const [oldest] = this.#waitingOut;
    if (oldest === undefined) return false;
    oldest.end(this);
    this.#settle(this.#setup.domain.cycle);
    return true;
  }

  #isRoomFor({ chargedBytes }: CardConnection, lengthBytes: number): boolean {
    const { sendMemory, iwarp } = this.#setup;
    const isWithin = chargedBytes === 0 || chargedBytes + lengthBytes <= iwarp.connectionBytes;
    return isWithin && !sendMemory.isFull;
  }

  #offerRoom(connection: CardConnection, cycle: Cycles): void {
    if (!connection.wantsRoom || !this.#isRoomFor(connection, connection.segmentBytes)) return;
    connection.wantsRoom = false;
    connection.waits.note(connection, this.nowPs());
    connection.stream?.writable(cycle);
  }

  #callToAttention(slot: number): void {
    const { lp, domain } = this.#setup;
    const cycle = domain.clock.cycleAfter(lp.nowPs);
    if (this.#attention.push(slot, cycle)) this.wake(cycle);
  }

  // ---- time ----

  /** Sets the timer to the next deadline, if it is earlier than the timer. */
  #setTimer(connection: CardConnection): void {
    const { lp } = this.#setup;
    const deadlinePs = Math.min(connection.deadlinePs, lp.nowPs + timerMaxPs);
    if (connection.deadlinePs === NEVER || deadlinePs >= connection.timerPs) return;
    this.#stopTimer(connection);
    connection.timerPs = deadlinePs;
    const atPs = Math.max(Math.ceil(deadlinePs), lp.nowPs);
    connection.timer = lp.queue.schedule(atPs, this.#timerHandler, connection.slot);
  }

  #stopTimer(connection: CardConnection): void {
    if (connection.timer !== 0) this.#setup.lp.queue.cancel(connection.timer);
    connection.timer = 0;
    connection.timerPs = NEVER;
  }

  /** A timer was set for an earlier deadline, or is due. */
  #timerDue(slot: number): void {
    const connection = this.#setup.table.rows[slot];
    if (!(connection instanceof CardConnection)) return;
    connection.timer = 0;
    connection.timerPs = NEVER;
    if (connection.deadlinePs <= this.nowPs()) this.attend(connection);
    else this.#setTimer(connection);
  }

  #nextInitialSequence(): number {
    const { lp, iwarp } = this.#setup;
    const clock = Math.floor((lp.epochUs + Math.floor(lp.nowPs / psPerUs)) / sequenceUnitUs);
    return (iwarp.firstSequence + clock + this.#openedCount++ * sequenceStep) % 2 ** 32;
  }

  #isOwnMac(bytes: Uint8Array, at: number): boolean {
    for (let index = 0; index < MAC_BYTES; index++)
      if (bytes[at + index] !== this.#localMac[index]) return false;
    return true;
  }
}

/** Past the handshake: it may send more than SYNs. */
const isSynchronised = ({ state }: CardConnection): boolean =>
  state !== 'SYN_SENT' && state !== 'SYN_RECEIVED' && state !== 'CLOSED';

function endOf({ error }: CardConnection): StreamEnd {
  if (error === undefined) return TcpEvent.CLOSED;
  return error === 'ETIMEDOUT' ? TcpEvent.TIMED_OUT : TcpEvent.RESET;
}

/** Hop limit of a RST that answers for no connection: that of Linux. */
const answerHopLimit = 64;

const VLAN_ABSENT = -1;

/** The context of a connection that a listener accepts: the listener's, between the addresses of the SYN. */
function contextOfAccepted(opening: TcpOpening, addresses: SegmentAddresses): Uint8Array {
  const { vlanTag, isIpv6, localAddress, remoteAddress, localPort, remotePort, remoteMac } = addresses;
  return tcpContext.encode({
    ...opening,
    isIpv6: isIpv6 ? 1 : 0,
    hasVlan: vlanTag === VLAN_ABSENT ? 0 : 1,
    vlanTag: Math.max(vlanTag, 0),
    ...{ remoteMac, localAddress, remoteAddress, localPort, remotePort },
  });
}

function addCounts(to: TcpCounts, counts: TcpCounts): void {
  for (const name of Object.keys(to) as (keyof TcpCounts)[]) to[name] += counts[name];
}

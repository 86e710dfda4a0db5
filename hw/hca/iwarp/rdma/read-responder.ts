/**
 * Answers READs and atomics of peers, in their order per stream (RFC 5040, 5.5; RFC 7306, 5.1):
 *
 *     Placement ─READ─► InboundReads of the stream ─┬► per segment: STag, bounds, rights; DMA read ─┬► response packets ─► RdmaTransmitter
 *                                                   └► atomic: AtomicAnswers ───────────────────────┘
 *
 * A READ begins when the payload written before it has left for memory. Streams have turns of `burstPackets`; one without room in its
 * retransmission memory is left out until TCP reports room.
 */
import { ADDRESS_TOP_MAX, ADDRESS_TOP_UNIT, type Cycles } from '../../../../base/index.ts';
import {
  atomicRequest,
  copyAtomicRequest,
  DdpQueue,
  QuotedSegment,
  RdmapOpcode,
  ReadRequest,
  SegmentHeader,
  taggedHeader,
} from '../../../../protocol/iwarp/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, stallReasons } from '../../../../sim/index.ts';
import { TrafficClass } from '../../../dma/index.ts';
import { ABSENT, DONE, type MemoryAnswer, REFUSED, WAIT } from '../../answers.ts';
import type { CostAttribution } from '../../costs/index.ts';
import {
  BAD_KEY,
  type DmaReads,
  MISSING_RIGHT,
  PAGE_FAULT,
  type PageFaults,
  PENDING,
  PORT_RESPONSE,
  RIGHT_REMOTE_READ,
  SIDE_RESPONSE,
  type TranslationPort,
  type Translator,
} from '../../memory/index.ts';
import { noRecord, QP_RIGHT_READ, type QpSlot } from '../../objects/index.ts';
import { type PacketQueue, type ReadUnit, VOID_GENERATION } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { PayloadWriter } from '../../receive-queue/index.ts';
import type { ResponseSide } from '../../transport/index.ts';
import { AtomicAnswers, type AtomicAnswersSetup } from './atomic-answers.ts';
import type { InboundRead } from './inbound-reads.ts';
import { JobKind, type PlacementJob } from './placement-queue.ts';
import { OWN_MESSAGE_BYTES, type RdmaConnection } from './rdma-connection.ts';
import type { RdmaConnections } from './rdma-connections.ts';
import type { RdmaPacket } from './rdma-packet.ts';
import type { RdmaTransmitter } from './rdma-transmitter.ts';
import type { StreamEnds } from './stream-ends.ts';
import { sourceErrorOf, WRAPS } from './stream-errors.ts';

const stalls = stallReasons('translation', 'dma', 'responseBuffer', 'ordering', 'sendBuffer', 'atomic');
const {
  translation: STALL_TRANSLATION,
  dma: STALL_DMA,
  responseBuffer: STALL_RESPONSE_BUFFER,
  ordering: STALL_ORDERING,
  sendBuffer: STALL_SEND_BUFFER,
  atomic: STALL_ATOMIC,
} = stalls;

export interface ReadResponderPorts {
  readonly transmitter: RdmaTransmitter;
  readonly connections: RdmaConnections;
  readonly streamEnds: StreamEnds;
  readonly writer: PayloadWriter;
}

/** Parts of the device that {@link ReadResponder} uses. */
export interface ReadResponderSetup extends AtomicAnswersSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<
    HcaConfig,
    | 'responseCycles'
    | 'readResponseLatencyCycles'
    | 'readResponseCycles'
    | 'readResponseBytesPerCycle'
    | 'transmitLatencyCycles'
    | 'burstPackets'
    | 'atomicCycles'
    | 'atomicWriteBackCycles'
  >;
  readonly readUnit: ReadUnit;
  readonly responsePackets: PacketQueue<RdmaPacket>;
  readonly costs: CostAttribution | undefined;
}

export class ReadResponder implements ResponseSide {
  readonly account = new BlockAccount('responseEngine', stalls);
  readonly #domain: ClockDomain;
  readonly #config: ReadResponderSetup['config'];
  readonly #dmaRead: DmaReads;
  readonly #translator: Translator;
  readonly #pageFaults: PageFaults;
  readonly #readUnit: ReadUnit;
  readonly #queue: PacketQueue<RdmaPacket>;
  readonly #costs: CostAttribution | undefined;
  readonly #translation: TranslationPort;
  readonly #readRequester: number;
  readonly #stage: number;
  readonly #atomics: AtomicAnswers;
  readonly #quoted = new QuotedSegment();
  readonly #rest = new ReadRequest();
  readonly #header = new SegmentHeader();
  #ports!: ReadResponderPorts;
  /** Streams with READs, in turn, each once; those without room, and those that wait for a page. */
  #ring: RdmaConnection[] = [];
  readonly #blocked = new Set<RdmaConnection>();
  readonly #paused = new Set<RdmaConnection>();
  #active: RdmaConnection | undefined = undefined;
  #burst = 0;
  /** The open packet, its bytes whose reads are in flight, and its payload length. */
  #open: RdmaPacket | undefined = undefined;
  #filled = 0;
  #wanted = 0;
  /** Answer of the translation that refused the READ at hand. */
  #refusal = 0;

  constructor(setup: ReadResponderSetup) {
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#dmaRead = setup.dmaRead;
    this.#translator = setup.translator;
    this.#pageFaults = setup.pageFaults;
    this.#readUnit = setup.readUnit;
    this.#queue = setup.responsePackets;
    this.#costs = setup.costs;
    this.#translation = setup.translator.port(PORT_RESPONSE);
    this.#readRequester = setup.dmaRead.addRequester(
      {
        name: 'responseRead',
        fifoDepth: 16,
        trafficClass: TrafficClass.payloadRead,
        weight: 4,
        placesEarly: true,
      },
      {
        done: (slot, status, cycle) => this.#payloadRead(slot, status, cycle),
        space: () => this.wake(setup.domain.cycle + 1),
      },
    );
    this.#stage = setup.domain.addStage(this.#run, this);
    this.#atomics = new AtomicAnswers(setup, {
      account: this.account,
      engine: this,
      translation: this.#translation,
      stalls: { translation: STALL_TRANSLATION, atomic: STALL_ATOMIC },
    });
  }

  connect(ports: ReadResponderPorts): void {
    this.#ports = ports;
  }

  slotsGrown(): void {}

  get isInAtomic(): boolean {
    return this.#atomics.isBusy;
  }

  get atomicCount(): number {
    return this.#atomics.executedCount;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  payloadLeft(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_ORDERING)) this.wake(cycle + 1);
  }

  /** A slot of the packet queue became free. */
  slotFreed(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_RESPONSE_BUFFER)) this.wake(cycle + 1);
  }

  pagesAnswered(slot: QpSlot, cycle: Cycles): void {
    const connection = this.#ports.connections.rows[slot];
    if (connection === undefined || !this.#paused.delete(connection)) return;
    this.#enter(connection, cycle + 1);
  }

  /** Notes that there is room for segments of the stream, or that it may send at last. */
  unblocked(connection: RdmaConnection, cycle: Cycles): void {
    if (this.#blocked.delete(connection)) this.#enter(connection, cycle + 1);
  }

  /** Takes a READ or an atomic of a peer. RdmapReceiver has compared their number with IRD. */
  readArrived(connection: RdmaConnection, job: PlacementJob, cycle: Cycles): void {
    const read = connection.reads.push();
    read.isAtomic = job.kind === JobKind.ATOMIC_REQUEST;
    if (read.isAtomic) {
      copyAtomicRequest(job.atomic, read.atomic);
      read.request.lengthBytes = 0;
    } else Object.assign(read.request, job.request);
    read.message = job.header.message;
    read.number = job.number;
    read.writesBefore = this.#ports.writer.requestedCount;
    read.dueCycle = cycle + this.#config.readResponseLatencyCycles;
    const isWaiting = this.#blocked.has(connection) || this.#paused.has(connection);
    if (!isWaiting) this.#enter(connection, cycle + 1);
  }

  open(slot: QpSlot): void {
    this.drop(slot);
  }

  /** Drops the READs of the QP; packets made are dropped by the transmitter. */
  drop(slot: QpSlot): void {
    const connection = this.#ports.connections.rows[slot];
    if (connection !== undefined) this.#forget(connection);
  }

  dropRequests(slot: QpSlot): void {
    this.drop(slot);
  }

  isBusy(slot: QpSlot): boolean {
    return this.#active?.pair.slot === slot;
  }

  get heldCount(): number {
    return this.#ring.length + this.#blocked.size + this.#paused.size;
  }

  reset(): void {
    this.#ring = [];
    this.#blocked.clear();
    this.#paused.clear();
    this.#active = undefined;
    this.#open = undefined;
    this.#burst = 0;
    this.#atomics.reset();
  }

  inspect(): BlockState {
    const slots = (all: Iterable<RdmaConnection>): number[] => Array.from(all, ({ pair }) => pair.slot);
    return {
      active: this.#active?.pair.slot ?? 'none',
      ring: slots(this.#ring),
      blocked: slots(this.#blocked),
      paused: slots(this.#paused),
      openPacket: this.#open !== undefined,
      inAtomic: this.isInAtomic,
    };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const connection of this.#ports.connections.rows) connection?.reads.rebase(cycles);
    this.#atomics.rebase(cycles);
  }

  #enter(connection: RdmaConnection, cycle: Cycles): void {
    if (this.#active !== connection && !this.#ring.includes(connection)) this.#ring.push(connection);
    this.wake(cycle);
  }

  #forget(connection: RdmaConnection): void {
    connection.reads.clear();
    this.#ring = this.#ring.filter((other) => other !== connection);
    this.#blocked.delete(connection);
    this.#paused.delete(connection);
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    const connection = this.#choose(cycle);
    if (connection === undefined) return;
    const read = connection.reads.current!;
    this.#costs?.worksOnAnswerTo(PORT_RESPONSE, connection.pair, read.number);
    if (this.#ports.writer.doneCount < read.writesBefore) return this.account.stall(cycle, STALL_ORDERING);
    if (this.#open === undefined) {
      if (!this.#mayOpen(connection, read, cycle)) return;
      this.#openPacket(connection, read);
    }
    const gathered = read.isAtomic
      ? this.#atomics.step(connection, read, cycle)
      : this.#gather(connection, read, cycle);
    if (gathered === WAIT) return;
    const busyCycles =
      gathered === DONE ? this.#seal(connection, read, cycle) : this.#leave(gathered, connection, cycle);
    this.account.serve(cycle, busyCycles);
    this.wake(cycle + busyCycles);
  }

  /** Returns the stream at work, or the next one with a READ that is due. */
  #choose(cycle: Cycles): RdmaConnection | undefined {
    const active = this.#active;
    if (active?.reads.current !== undefined && this.#ports.connections.isLive(active)) return active;
    if (this.isInAtomic && !this.#atomics.abandon(cycle)) return undefined;
    if (this.#open !== undefined) this.#abandon(cycle);
    this.#endTurn();
    let nextCycle = Number.POSITIVE_INFINITY;
    for (let left = this.#ring.length; left > 0; left--) {
      const connection = this.#ring.shift()!;
      const read = connection.reads.current;
      if (read === undefined || !this.#ports.connections.isLive(connection)) continue;
      if (read.dueCycle <= cycle) {
        this.#active = connection;
        return connection;
      }
      nextCycle = Math.min(nextCycle, read.dueCycle);
      this.#ring.push(connection);
    }
    if (this.#blocked.size > 0) this.account.stall(cycle, STALL_SEND_BUFFER);
    else this.account.rest(cycle);
    if (nextCycle < Number.POSITIVE_INFINITY) this.wake(nextCycle);
    return undefined;
  }

  /** Whether a packet of the READ may be opened. A stream without room does not hold up the others. */
  #mayOpen(connection: RdmaConnection, read: InboundRead, cycle: Cycles): boolean {
    if (this.#queue.isFull) {
      this.account.stall(cycle, STALL_RESPONSE_BUFFER);
      return false;
    }
    this.#wanted = Math.min(
      connection.payloadBytesMax(taggedHeader.sizeBytes),
      read.request.lengthBytes - read.gatheredBytes,
    );
    if (connection.maySend && connection.hasRoom(this.#segmentBytes(connection, read))) return true;
    this.#blocked.add(connection);
    this.#active = undefined;
    this.#burst = 0;
    this.account.stall(cycle, STALL_SEND_BUFFER);
    this.wake(cycle + 1);
    return false;
  }

  #segmentBytes(connection: RdmaConnection, { isAtomic }: InboundRead): number {
    return isAtomic ? OWN_MESSAGE_BYTES : connection.fpduBytes(taggedHeader.sizeBytes + this.#wanted);
  }

  #openPacket(connection: RdmaConnection, read: InboundRead): void {
    const packet = this.#queue.open(connection.pair, 0, noRecord);
    packet.read = read;
    packet.firstByte = read.gatheredBytes;
    connection.open(packet, this.#segmentBytes(connection, read));
    connection.pair.inPipelineCount++;
    this.#open = packet;
    this.#filled = 0;
  }

  /** Begins the DMA reads of the open packet. The bounds of all that is left of the READ are checked with each of them. */
  #gather({ pair }: RdmaConnection, { request, gatheredBytes }: InboundRead, cycle: Cycles): MemoryAnswer {
    const packet = this.#open!;
    const { sourceTag: key, sourceOffset, sourceOffsetTop: addressTop, lengthBytes } = request;
    if (lengthBytes > 0 && (pair.remoteRights & QP_RIGHT_READ) === 0) return this.#refuse(MISSING_RIGHT);
    if (addressTop === ADDRESS_TOP_MAX && sourceOffset + lengthBytes > ADDRESS_TOP_UNIT)
      return this.#refuse(WRAPS);
    while (this.#filled < this.#wanted) {
      const done = gatheredBytes + this.#filled;
      const address = sourceOffset + done;
      const left = lengthBytes - done;
      const found = this.#translation.translate(
        key,
        pair.pd,
        address,
        addressTop,
        left,
        RIGHT_REMOTE_READ,
        pair,
      );
      if (found === PENDING) return this.#stall(STALL_TRANSLATION, cycle);
      if (found === PAGE_FAULT) {
        const wanted = { key, address, addressTop, lengthBytes: left, isWrite: false };
        if (this.#pageFaults.raise(pair.slot, { side: SIDE_RESPONSE, ...wanted }, cycle)) return ABSENT;
      }
      if (found >= BAD_KEY) return this.#refuse(found);
      if (!this.#dmaRead.canRequest(this.#readRequester)) return this.#stall(STALL_DMA, cycle);
      const bytes = Math.min(this.#translator.contiguousBytes, this.#wanted - this.#filled);
      packet.pendingReads++;
      this.#dmaRead.request(
        this.#readRequester,
        this.#translator.physicalAddress,
        bytes,
        packet.payloadOffset + this.#filled,
        packet.slot,
      );
      this.#translation.used();
      this.#filled += bytes;
    }
    return DONE;
  }

  #refuse(answer: number): typeof REFUSED {
    this.#refusal = answer;
    return REFUSED;
  }

  #stall(reason: number, cycle: Cycles): typeof WAIT {
    this.account.stall(cycle, reason);
    return WAIT;
  }

  /** Completes the open packet. @returns cycles that it took */
  #seal({ reads }: RdmaConnection, read: InboundRead, cycle: Cycles): Cycles {
    const { responseCycles, transmitLatencyCycles, readResponseCycles, readResponseBytesPerCycle } =
      this.#config;
    const packet = this.#open!;
    read.gatheredBytes += this.#wanted;
    packet.payloadBytes = this.#wanted;
    packet.isLast = read.gatheredBytes === read.request.lengthBytes;
    packet.readyCycle = cycle + responseCycles + transmitLatencyCycles;
    packet.isSealed = 1;
    this.#open = undefined;
    if (packet.pendingReads === 0) this.#ports.transmitter.wake(packet.readyCycle);
    this.#burst++;
    if (packet.isLast) reads.gathered();
    if (packet.isLast || this.#burst >= this.#config.burstPackets) this.#endTurn();
    const moveCycles =
      readResponseBytesPerCycle === 0 ? 0 : Math.ceil(this.#wanted / readResponseBytesPerCycle);
    return this.#readUnit.occupy(cycle, responseCycles, readResponseCycles + moveCycles);
  }

  #endTurn(): void {
    const connection = this.#active;
    this.#active = undefined;
    this.#burst = 0;
    if (connection?.reads.current !== undefined) this.#ring.push(connection);
  }

  /** Leaves the READ, which waits for a page, or fails the stream: by RFC 5040, 4.8 its rest is quoted. */
  #leave(left: typeof ABSENT | typeof REFUSED, connection: RdmaConnection, cycle: Cycles): Cycles {
    this.#abandon(cycle);
    const read = connection.reads.current!;
    this.#active = undefined;
    this.#burst = 0;
    if (left === ABSENT) this.#paused.add(connection);
    else {
      const refusal = read.isAtomic ? this.#atomics.refusal : this.#refusal;
      this.#fail(connection, read, read.gatheredBytes, sourceErrorOf(refusal), cycle);
    }
    return 1;
  }

  #fail(
    connection: RdmaConnection,
    { request, message, isAtomic }: InboundRead,
    servedBytes: number,
    error: number,
    cycle: Cycles,
  ): void {
    const rest = this.#rest;
    Object.assign(rest, request);
    rest.sinkOffset += servedBytes;
    rest.sourceOffset += servedBytes;
    rest.lengthBytes -= servedBytes;
    if (isAtomic) this.#quoteAtomic(message);
    else this.#quoted.quoteRead(message, rest);
    this.#ports.streamEnds.fail(connection, error, this.#quoted, cycle);
  }

  #quoteAtomic(message: number): void {
    const header = this.#header;
    header.opcode = RdmapOpcode.ATOMIC_REQUEST;
    header.isLast = true;
    header.queue = DdpQueue.READ_REQUEST;
    header.message = message;
    this.#quoted.quoteHeader(header, header.bytes + atomicRequest.sizeBytes);
  }

  /** Leaves the open packet to be dropped when its reads are done. */
  #abandon(cycle: Cycles): void {
    const packet = this.#open!;
    packet.sendGeneration = VOID_GENERATION;
    packet.isSealed = 1;
    this.#open = undefined;
    this.#ports.transmitter.wake(cycle + 1);
  }

  /** Handles payload of a response that memory did not supply. */
  payloadFailed({ connection, read, firstByte }: RdmaPacket, cycle: Cycles): void {
    this.#fail(connection!, read!, firstByte, sourceErrorOf(0), cycle);
  }

  #payloadRead(slot: number, status: number, cycle: Cycles): void {
    this.#ports.transmitter.payloadArrived(this.#queue, this.#queue.rows[slot]!, status, cycle);
  }
}

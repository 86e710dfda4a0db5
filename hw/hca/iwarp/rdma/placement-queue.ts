/**
 * Received DDP segments in the order of their arrival, until their payload has left for memory.
 *
 *     RdmaConnection ── add ──► waiting ──► Placement's stage ──► PayloadWriter.finish ──► consume: memory is given back
 *
 * Payload lies in TCP's receive memory, which is held; that of an FPDU which segments cut, or which had markers, is copied into a memory of
 * this queue. With the queue or that memory full, streams are busy: TCP stalls, and its window closes.
 */
import { BlockCopier, type Cycles } from '../../../../base/index.ts';
import { AtomicRequest, ReadRequest, SegmentHeader } from '../../../../protocol/iwarp/index.ts';
import { type BlockState, type ClockDomain, Fifo, type Wakeable } from '../../../../sim/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { ReceiveBuffers } from '../../receive-queue/index.ts';
import type { IwarpConfig } from '../iwarp-parameters.ts';
import type { TcpStreams } from '../streams.ts';
import type { RdmaConnection } from './rdma-connection.ts';

export const JobKind = {
  WRITE: 0,
  READ_RESPONSE: 1,
  SEND: 2,
  READ_REQUEST: 3,
  IMMEDIATE: 4,
  ATOMIC_REQUEST: 5,
  ATOMIC_RESPONSE: 6,
} as const;

/** Bytes of the shortest FPDU that is a job. */
const FPDU_BYTES_MIN = 20;
/** Bytes of the longest DDP segment, which a reader may have gathered before. */
const SEGMENT_BYTES_MAX = 0xffff;
const NOT_HELD = -1;

/** A tagged segment that arrived after a gap: it is placed at once, and delivered when the gap is closed. */
export interface EarlySegment {
  readonly steeringTag: number;
  readonly offset: number;
  readonly offsetTop: number;
  readonly lengthBytes: number;
  /** Why it was not placed: an answer of the translator, or 0. */
  refusal: number;
}

/** One received segment. */
export class PlacementJob {
  readonly index: number;
  kind: number = JobKind.WRITE;
  connection: RdmaConnection | undefined = undefined;
  readonly header = new SegmentHeader();
  bytes: Uint8Array = new Uint8Array(0);
  /** Place of the payload, and its length. */
  at = 0;
  lengthBytes = 0;
  /** True if it completes the message. */
  isEnd = false;
  /** Number of the segment among those of requests: see RdmaConnection.requestNumber. */
  number = 0;
  /** Cycle in which TCP handed it over, and from which on it can be worked on. */
  handedCycle = 0;
  arrivedCycle = 0;
  readonly request = new ReadRequest();
  readonly atomic = new AtomicRequest();
  /** First word of immediate data, and bytes of the WRITE before it. */
  immediate = 0;
  writtenBytes = 0;
  /** Set if it arrived after a gap: then it is placed, or, with {@link isReached}, delivered. */
  early: EarlySegment | undefined = undefined;
  isReached = false;
  /** TCP's handle for the memory of the payload; NOT_HELD if it needs none. */
  held = NOT_HELD;
  /** Bytes of {@link PlacementQueue}'s memory, those skipped at its end among them. */
  copiedBytes = 0;

  constructor(index: number) {
    this.index = index;
  }
}

export interface PlacementQueuePorts {
  readonly streams: TcpStreams;
  readonly placement: Wakeable;
}

/** Parts of the device that {@link PlacementQueue} uses. */
export interface PlacementQueueSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'receiveLatencyCycles' | 'receiveBytesPerCycle'>;
  readonly iwarp: Pick<IwarpConfig, 'placementSegments' | 'earlySegments'>;
  /** Bytes that TCP may hand over before a stream can say that it is busy. */
  readonly burstBytesMax: number;
}

export class PlacementQueue implements ReceiveBuffers {
  readonly receivePacketsMax: number;
  /** Jobs to be worked on, by their indices. */
  readonly waiting: Fifo;
  readonly #domain: ClockDomain;
  readonly #latencyCycles: number;
  readonly #bytesPerCycle: number;
  readonly #reserve: number;
  readonly #rows: PlacementJob[] = [];
  readonly #copier = new BlockCopier();
  /** Bytes that a burst may add to it, and room for a segment that does not fit in the rest at its end. */
  readonly #copyReserve: number;
  readonly #copies: Uint8Array;
  #copyAt = 0;
  #copiedBytes = 0;
  /** Number of jobs whose memory is not released: they are freed in order. */
  #usedCount = 0;
  #next = 0;
  /** A stream was busy: TCP is notified of room. */
  #hasStalled = false;
  #streams!: TcpStreams;
  #placement!: Wakeable;

  constructor({ domain, config, iwarp, burstBytesMax }: PlacementQueueSetup) {
    this.#domain = domain;
    this.#latencyCycles = config.receiveLatencyCycles;
    this.#bytesPerCycle = config.receiveBytesPerCycle;
    this.#reserve = Math.ceil(burstBytesMax / FPDU_BYTES_MIN) + 1 + iwarp.earlySegments;
    this.#copyReserve = burstBytesMax + 2 * SEGMENT_BYTES_MAX;
    this.#copies = new Uint8Array(2 * this.#copyReserve);
    this.receivePacketsMax = iwarp.placementSegments + this.#reserve;
    this.waiting = new Fifo({
      name: 'received DDP segments',
      capacity: this.receivePacketsMax,
      whenFull: 'never: streams are busy before, and TCP delivers no frame to them',
    });
  }

  connect({ streams, placement }: PlacementQueuePorts): void {
    this.#streams = streams;
    this.#placement = placement;
  }

  get heldCount(): number {
    return this.#usedCount;
  }

  /** True while the segments of another frame may find no place. */
  get isBusy(): boolean {
    const isBusy =
      this.#usedCount + this.#reserve > this.receivePacketsMax ||
      this.#copiedBytes + this.#copyReserve > this.#copies.length;
    if (isBusy) this.#hasStalled = true;
    return isBusy;
  }

  jobOf(index: number): PlacementJob {
    return this.#rows[index]!;
  }

  /** Appends a segment of `connection` and has its payload kept. */
  add(
    kind: number,
    connection: RdmaConnection,
    header: SegmentHeader,
    bytes: Uint8Array,
    at: number,
    lengthBytes: number,
  ): PlacementJob {
    const job = this.#take();
    job.kind = kind;
    job.connection = connection;
    copyHeader(header, job.header);
    job.lengthBytes = lengthBytes;
    job.isEnd = false;
    job.early = undefined;
    job.isReached = false;
    this.#keep(job, bytes, at);
    const cycle = this.#domain.cycle + this.#latencyCycles + Math.ceil(lengthBytes / this.#bytesPerCycle);
    job.handedCycle = this.#domain.cycle;
    job.arrivedCycle = cycle;
    this.waiting.push(job.index, cycle);
    this.#placement.wake(cycle);
    return job;
  }

  /** Releases the memory of the oldest job: jobs end in order. */
  consume(name: number): void {
    const job = this.#rows[name]!;
    job.connection = undefined;
    if (job.held !== NOT_HELD) this.#streams.release(job.held);
    this.#copiedBytes -= job.copiedBytes;
    this.#usedCount--;
    if (!this.#hasStalled || this.isBusy) return;
    this.#hasStalled = false;
    this.#streams.placed(this.#domain.cycle);
  }

  get fifos(): readonly Fifo[] {
    return [this.waiting];
  }

  /** Forgets that streams were busy; the placement stage has finished all jobs. */
  reset(): void {
    this.#hasStalled = false;
    this.#next = 0;
    this.#copyAt = 0;
  }

  inspect(): BlockState {
    return {
      waiting: this.waiting.values,
      used: this.#usedCount,
      copiedBytes: this.#copiedBytes,
      hasStalled: this.#hasStalled,
    };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: Cycles): void {
    this.waiting.rebase(cycles);
    for (const job of this.#rows) {
      job.handedCycle -= cycles;
      job.arrivedCycle -= cycles;
    }
  }

  #take(): PlacementJob {
    const index = this.#next;
    this.#next = (index + 1) % this.receivePacketsMax;
    if (index === this.#rows.length) this.#rows.push(new PlacementJob(index));
    this.#usedCount++;
    return this.#rows[index]!;
  }

  #keep(job: PlacementJob, bytes: Uint8Array, at: number): void {
    job.held = NOT_HELD;
    job.copiedBytes = 0;
    job.bytes = bytes;
    job.at = at;
    if (job.lengthBytes === 0) return;
    job.held = this.#streams.hold(bytes, at);
    if (job.held === NOT_HELD) this.#copy(job, bytes, at);
  }

  #copy(job: PlacementJob, bytes: Uint8Array, at: number): void {
    const { lengthBytes } = job;
    const rest = this.#copies.length - this.#copyAt;
    const skipped = lengthBytes > rest ? rest : 0;
    const to = skipped > 0 ? 0 : this.#copyAt;
    this.#copier.copy(this.#copies, to, bytes, at, lengthBytes);
    this.#copyAt = (to + lengthBytes) % this.#copies.length;
    job.bytes = this.#copies;
    job.at = to;
    job.copiedBytes = skipped + lengthBytes;
    this.#copiedBytes += job.copiedBytes;
  }
}

function copyHeader(from: SegmentHeader, to: SegmentHeader): void {
  to.opcode = from.opcode;
  to.isTagged = from.isTagged;
  to.isLast = from.isLast;
  to.steeringTag = from.steeringTag;
  to.offset = from.offset;
  to.offsetTop = from.offsetTop;
  to.queue = from.queue;
  to.message = from.message;
  to.messageOffset = from.messageOffset;
}

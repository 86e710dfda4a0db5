/**
 * Places received DDP segments in host memory, one at a time in the order of their arrival, and delivers messages:
 *
 *     WRITE, READ response ─► right of the QP ─► STag, bounds, right of the region ─► payload ─► (READ is complete)
 *        after a gap ─► the same without effect on the stream; when the gap is closed ─► STag … again ─► (READ is complete)
 *     SEND ─► receive WQE ─► payload ─► key invalidated ─► completion
 *     immediate data ─► receive WQE ─► completion
 *     READ or atomic request ─► READs of the stream: see read-responder.ts
 *     atomic response ─► key of the request, bounds, right ─► old value ─► (atomic is complete)
 *
 * When something is not on chip, a function returns WAIT and is entered again at the same step. An error ends the stream (stream-ends.ts):
 * segments that arrived after it are dropped.
 */
import { CqeSyndrome, QpState, ReceiveOpcode } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import {
  IwarpError,
  MARKER_DISTANCE_BYTES,
  QuotedSegment,
  RdmapOpcode,
} from '../../../../protocol/iwarp/index.ts';
import { BlockAccount, type BlockState, type ClockDomain } from '../../../../sim/index.ts';
import {
  ABSENT,
  DONE,
  FULL,
  NONE_POSTED,
  REFUSED,
  type StepAnswer,
  UNREADABLE,
  WAIT,
} from '../../answers.ts';
import type { CompletionWriter } from '../../completion/index.ts';
import type { CostAttribution } from '../../costs/index.ts';
import type { ReceiveTurns } from '../../frames/index.ts';
import type { KeyUnit } from '../../keys/index.ts';
import {
  BAD_KEY,
  type ContextCache,
  type ContextPort,
  type ContextUser,
  MISSING_RIGHT,
  PAGE_FAULT,
  type PageFaults,
  PENDING,
  PORT_RECEIVER,
  RIGHT_LOCAL_WRITE,
  RIGHT_REMOTE_WRITE,
  SIDE_REQUESTER,
  SIDE_RESPONDER,
  type TranslationPort,
  type Translator,
} from '../../memory/index.ts';
import {
  noRecord,
  QP_RIGHT_WRITE,
  type QpSlot,
  type QueuePair,
  type SendRecord,
} from '../../objects/index.ts';
import {
  receiverStalls,
  STALL_COMPLETION,
  STALL_CONTEXT,
  STALL_KEYS,
  STALL_TRANSLATION,
} from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { PayloadWriter, ReceiveScatter } from '../../receive-queue/index.ts';
import type { RequestCompletion } from '../../requester/index.ts';
import type { PacketReceiver } from '../../transport/index.ts';
import type { IwarpConfig } from '../iwarp-parameters.ts';
import { JobKind, type PlacementJob, type PlacementQueue } from './placement-queue.ts';
import type { RdmaConnection } from './rdma-connection.ts';
import type { RdmaConnections } from './rdma-connections.ts';
import type { StreamEnds } from './stream-ends.ts';
import { taggedErrorOf } from './stream-errors.ts';

const STEP_BEGIN = 0;
const STEP_PAYLOAD = 1;
const STEP_INVALIDATE = 2;
const STEP_FINISH = 3;
/** Interval at which a requested page of an on-demand region is checked. */
const PAGE_POLL_CYCLES = 256;

export interface PlacementPorts {
  readonly writer: PayloadWriter;
  readonly scatter: ReceiveScatter;
  readonly completions: CompletionWriter;
  readonly completion: RequestCompletion;
  readonly keys: KeyUnit;
  readonly connections: RdmaConnections;
  readonly streamEnds: StreamEnds;
  readonly responder: { readArrived(connection: RdmaConnection, job: PlacementJob, cycle: Cycles): void };
  readonly ends: { completeLocally(pair: QueuePair, cycle: Cycles): void };
  readonly requests: { firstNumberOf(request: SendRecord): number };
}

/** Parts of the device that {@link Placement} uses. */
export interface PlacementSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'receiveBytesPerCycle' | 'receivePacketCycles' | 'receiveHeadCycles'>;
  readonly iwarp: Pick<IwarpConfig, 'crcBytesPerCycle' | 'markerCycles'>;
  readonly placementQueue: PlacementQueue;
  readonly qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
  readonly receiveTurns: ReceiveTurns | undefined;
  readonly costs: CostAttribution | undefined;
}

export class Placement implements PacketReceiver {
  readonly account = new BlockAccount('receiver', receiverStalls);
  readonly #domain: ClockDomain;
  readonly #config: PlacementSetup['config'];
  readonly #iwarp: PlacementSetup['iwarp'];
  readonly #queue: PlacementQueue;
  readonly #contexts: ContextPort;
  readonly #translation: TranslationPort;
  readonly #pageFaults: PageFaults;
  readonly #turns: ReceiveTurns | undefined;
  readonly #costs: CostAttribution | undefined;
  readonly #stage: number;
  readonly #quoted = new QuotedSegment();
  #ports!: PlacementPorts;
  #active: PlacementJob | undefined = undefined;
  #step = STEP_BEGIN;
  /** Payload bytes of the present job that are being written, and the syndrome with which its receive fails. */
  #placed = 0;
  #syndrome = 0;

  constructor(setup: PlacementSetup) {
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#iwarp = setup.iwarp;
    this.#queue = setup.placementQueue;
    this.#contexts = setup.qpcCache.port(PORT_RECEIVER);
    this.#translation = setup.translator.port(PORT_RECEIVER);
    this.#pageFaults = setup.pageFaults;
    this.#turns = setup.receiveTurns;
    this.#costs = setup.costs;
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: PlacementPorts): void {
    this.#ports = ports;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Room for a completion became free. */
  completionSpace(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_COMPLETION)) this.wake(cycle + 1);
  }

  isServing(qp: QpSlot): boolean {
    return this.#active?.connection?.pair.slot === qp;
  }

  get heldCount(): number {
    return this.#queue.waiting.count;
  }

  /** Gives the memory of all segments back. */
  reset(): void {
    this.#active = undefined;
    this.#step = STEP_BEGIN;
    this.#placed = 0;
    this.#syndrome = 0;
    const { waiting } = this.#queue;
    while (!waiting.isEmpty) this.#ports.writer.finish(~waiting.pop());
  }

  inspect(): BlockState {
    return { active: this.#active?.connection?.pair.slot ?? 'none', step: this.#step, placed: this.#placed };
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    const { waiting } = this.#queue;
    if (this.#turns?.isOthers(this)) return this.#await(this.#turns, cycle);
    this.#ports.streamEnds.run(cycle);
    if (waiting.headCycle > cycle) {
      this.account.rest(cycle);
      if (!waiting.isEmpty) this.wake(waiting.headCycle);
      return;
    }
    this.#turns?.take(this);
    const job = this.#queue.jobOf(waiting.head);
    if (this.#work(job, cycle) === WAIT) return;
    const busyCycles = this.#cyclesOf(job);
    this.#end(job);
    this.account.serve(cycle, busyCycles);
    this.#turns?.pass(cycle + busyCycles);
    this.wake(cycle + busyCycles);
  }

  /** The receiver of frames has its turn. */
  #await(turns: ReceiveTurns, cycle: Cycles): void {
    const { waiting } = this.#queue;
    if (waiting.headCycle <= cycle) turns.awaitNext(this);
    else if (!waiting.isEmpty) this.wake(waiting.headCycle);
  }

  /** The job is worked off, or dropped: its memory is given back when its payload has left. */
  #end(job: PlacementJob): void {
    if (this.#active !== undefined) this.#contexts.used();
    this.#costs?.rests(PORT_RECEIVER);
    job.connection!.jobCount--;
    this.#active = undefined;
    this.#step = STEP_BEGIN;
    this.#placed = 0;
    this.#syndrome = 0;
    this.#ports.writer.finish(~this.#queue.waiting.pop());
  }

  /** Cycles for the header, the payload, its CRC and the markers in it, whichever takes longest. */
  #cyclesOf({ lengthBytes, connection }: PlacementJob): number {
    const { receivePacketCycles, receiveHeadCycles, receiveBytesPerCycle } = this.#config;
    const { traits } = connection!;
    const crcCycles = traits.hasCrc ? Math.ceil(lengthBytes / this.#iwarp.crcBytesPerCycle) : 0;
    const moveCycles =
      lengthBytes === 0 ? 0 : receiveHeadCycles + Math.ceil(lengthBytes / receiveBytesPerCycle);
    const markers = traits.receivesMarkers ? Math.floor(lengthBytes / MARKER_DISTANCE_BYTES) : 0;
    const pathCycles = Math.max(moveCycles, crcCycles) + markers * this.#iwarp.markerCycles;
    return Math.max(pathCycles, receivePacketCycles);
  }

  #work(job: PlacementJob, cycle: Cycles): StepAnswer {
    const connection = job.connection!;
    const { pair } = connection;
    if (!this.#isWanted(connection)) {
      if (this.#active !== undefined) this.#ports.keys.abandonRemote();
      return REFUSED;
    }
    if (this.#active === undefined && this.#costs !== undefined) this.#noteWork(this.#costs, job);
    this.#active = job;
    if (!this.#contexts.access(pair.slot, true)) {
      this.account.stall(cycle, STALL_CONTEXT);
      return WAIT;
    }
    switch (job.kind) {
      case JobKind.SEND:
        return this.#send(job, pair, cycle);
      case JobKind.IMMEDIATE:
        return this.#immediate(job, pair, cycle);
      case JobKind.ATOMIC_RESPONSE:
        return this.#atomicResult(job, connection, cycle);
      case JobKind.READ_REQUEST:
      case JobKind.ATOMIC_REQUEST:
        // After FIN nothing is answered.
        if (connection.state === 'RTS') this.#ports.responder.readArrived(connection, job, cycle);
        return DONE;
      default:
        return this.#tagged(job, connection, cycle);
    }
  }

  /** The stream has not ended, and its QP takes segments. */
  #isWanted(connection: RdmaConnection): boolean {
    const { state } = connection.pair;
    const isOpen = connection.state === 'RTS' || connection.state === 'CLOSING';
    return (
      isOpen && this.#ports.connections.isLive(connection) && state >= QpState.RTR && state !== QpState.ERR
    );
  }

  /** A segment after a gap has no number yet: its writes count as unmarked. */
  #noteWork(costs: CostAttribution, { kind, connection, number, early, isReached }: PlacementJob): void {
    if (early !== undefined && !isReached) return;
    const { pair, isLooped } = connection!;
    if (kind === JobKind.READ_RESPONSE || kind === JobKind.ATOMIC_RESPONSE) {
      const read = oldestRead(pair);
      return costs.worksOnAnswerOf(PORT_RECEIVER, pair, this.#ports.requests.firstNumberOf(read));
    }
    costs.worksOnNewPacket(PORT_RECEIVER, {
      sourceQpn: pair.remoteQpn,
      number,
      portIndex: pair.portIndex,
      isLoopback: isLooped,
    });
  }

  // ---- tagged ----

  #tagged(job: PlacementJob, connection: RdmaConnection, cycle: Cycles): StepAnswer {
    if (job.isReached) return this.#reached(job, connection, cycle);
    const { pair } = connection;
    const isWrite = job.kind === JobKind.WRITE;
    if (isWrite && job.lengthBytes > 0 && (pair.remoteRights & QP_RIGHT_WRITE) === 0)
      return this.#refuseTagged(job, MISSING_RIGHT, cycle);
    const { steeringTag, offset, offsetTop } = job.header;
    while (this.#placed < job.lengthBytes) {
      const left = job.lengthBytes - this.#placed;
      const address = offset + this.#placed;
      const found = this.#translation.translate(
        steeringTag,
        pair.pd,
        address,
        offsetTop,
        left,
        RIGHT_REMOTE_WRITE,
        pair,
      );
      if (found === PAGE_FAULT) {
        const wanted = { key: steeringTag, address, addressTop: offsetTop, lengthBytes: left, isWrite: true };
        if (this.#pageFaults.raise(pair.slot, { side: SIDE_RESPONDER, ...wanted }, cycle))
          return this.#awaitPage(cycle);
      }
      if (found >= BAD_KEY) return this.#refuseTagged(job, found, cycle);
      const moved = this.#ports.scatter.write(found, left, job.bytes, job.at + this.#placed, cycle);
      if (moved === WAIT) return WAIT;
      this.#placed += moved;
    }
    if (!isWrite && job.isEnd) this.#readIsPlaced(connection, job, cycle);
    return DONE;
  }

  /**
   * The gap before a segment is closed. Its key may have become invalid since it was placed, by what was in the gap, and
   * what had no right then ends the stream only now.
   */
  #reached(job: PlacementJob, connection: RdmaConnection, cycle: Cycles): StepAnswer {
    const { pair } = connection;
    const { steeringTag, offset, offsetTop, lengthBytes, refusal } = job.early!;
    const found =
      refusal === 0
        ? this.#translation.translate(
            steeringTag,
            pair.pd,
            offset,
            offsetTop,
            lengthBytes,
            RIGHT_REMOTE_WRITE,
            pair,
          )
        : refusal;
    if (found === PENDING) {
      this.account.stall(cycle, STALL_TRANSLATION);
      return WAIT;
    }
    // The payload of a page that was taken away since has been placed before.
    if (found >= BAD_KEY && (found !== PAGE_FAULT || refusal !== 0))
      return this.#refuseTagged(job, found, cycle);
    if (refusal === 0 && found !== PAGE_FAULT) this.#translation.used();
    if (job.kind === JobKind.READ_RESPONSE && job.isEnd) this.#readIsPlaced(connection, job, cycle);
    return DONE;
  }

  #awaitPage(cycle: Cycles): typeof WAIT {
    this.wake(cycle + PAGE_POLL_CYCLES);
    return WAIT;
  }

  #refuseTagged(job: PlacementJob, answer: number, cycle: Cycles): typeof REFUSED | typeof WAIT {
    if (job.early !== undefined && !job.isReached) {
      job.early.refusal = answer;
      return REFUSED;
    }
    return this.#refuseAnswer(job, taggedErrorOf(answer), cycle);
  }

  /** The sink of a READ or atomic that this side has named wrongly fails the request, too. */
  #refuseAnswer(job: PlacementJob, error: number, cycle: Cycles): typeof REFUSED | typeof WAIT {
    const { pair } = job.connection!;
    const head = pair.recordHead;
    const isOfHead = job.kind !== JobKind.WRITE && head !== noRecord && head.isReadOrAtomic === 1;
    if (isOfHead && this.#ports.completions.isFull) {
      this.account.stall(cycle, STALL_COMPLETION);
      return WAIT;
    }
    this.#fail(job, error, cycle);
    if (isOfHead) this.#ports.completion.fail(pair, CqeSyndrome.LOCAL_PROT_ERR, cycle);
    return REFUSED;
  }

  /** The oldest READ or atomic is complete: it completes after all that was posted before it (RFC 5040, 5.5). */
  #readIsPlaced(connection: RdmaConnection, { handedCycle }: PlacementJob, cycle: Cycles): void {
    const { pair } = connection;
    if (connection.takeReadyAnswer()) return this.#ports.connections.readyAnswered(connection, cycle);
    const read = oldestRead(pair);
    if (read === noRecord) return;
    read.isDone = 1;
    read.stream.handedCycle = handedCycle;
    pair.fenceWriteCount = this.#ports.writer.requestedCount;
    this.#ports.ends.completeLocally(pair, cycle);
  }

  // ---- atomics ----

  /** Writes the old value to where the oldest atomic wants it. */
  #atomicResult(job: PlacementJob, connection: RdmaConnection, cycle: Cycles): StepAnswer {
    const { pair } = connection;
    while (this.#placed < job.lengthBytes) {
      const target = this.#targetOf(oldestRead(pair));
      const { key, address, addressTop, lengthBytes } = target;
      const found = this.#translation.translate(
        key,
        pair.pd,
        address,
        addressTop,
        lengthBytes,
        RIGHT_LOCAL_WRITE,
        pair,
      );
      if (found === PAGE_FAULT) {
        const wanted = { side: SIDE_REQUESTER, ...target, isWrite: true };
        if (this.#pageFaults.raise(pair.slot, wanted, cycle)) return this.#awaitPage(cycle);
      }
      if (found >= BAD_KEY) return this.#refuseAnswer(job, IwarpError.OPERATION_CATASTROPHIC_STREAM, cycle);
      const moved = this.#ports.scatter.write(found, lengthBytes, job.bytes, job.at + this.#placed, cycle);
      if (moved === WAIT) return WAIT;
      this.#placed += moved;
    }
    this.#readIsPlaced(connection, job, cycle);
    return DONE;
  }

  /** Where the next bytes of an atomic's result go. Its segments have 8 bytes together. */
  #targetOf(atomic: SendRecord) {
    let position = this.#placed;
    let index = 0;
    while (position >= atomic.segment(index).bytes) position -= atomic.segment(index++).bytes;
    const { key, address, addressTop, bytes } = atomic.segment(index);
    return { key, address: address + position, addressTop, lengthBytes: bytes - position };
  }

  // ---- SEND and immediate data ----

  /** Immediate data take a receive, and leave its buffer as it is. */
  #immediate(job: PlacementJob, pair: QueuePair, cycle: Cycles): StepAnswer {
    const taken = this.#takeReceive(job, pair, cycle);
    if (taken !== DONE) return taken;
    const { completions } = this.#ports;
    if (completions.isFull) {
      this.account.stall(cycle, STALL_COMPLETION);
      return WAIT;
    }
    pair.hasReceiveWqe = 0;
    const completion = completions.nextReceive(pair);
    completion.opcode = ReceiveOpcode.RDMA_WRITE_IMM;
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.byteCount = job.writtenBytes;
    completion.immediate = job.immediate | 0;
    completion.isSolicited = isSolicited(job.header.opcode) ? 1 : 0;
    completions.post(completion, cycle);
    return DONE;
  }

  #send(job: PlacementJob, pair: QueuePair, cycle: Cycles): StepAnswer {
    if (this.#step === STEP_BEGIN) {
      const taken = this.#takeReceive(job, pair, cycle);
      if (taken !== DONE) return taken;
      this.#step = STEP_PAYLOAD;
    }
    if (this.#step === STEP_PAYLOAD) {
      const placed = this.#placeSend(job, pair, cycle);
      if (placed !== DONE) return placed;
      this.#step = STEP_INVALIDATE;
    }
    if (this.#step === STEP_INVALIDATE && job.isEnd && this.#syndrome === 0) {
      if (!this.#invalidate(job, pair, cycle)) return WAIT;
    }
    this.#step = STEP_FINISH;
    if (this.#syndrome === 0 && !job.isEnd) return DONE;
    if (this.#ports.completions.isFull) {
      this.account.stall(cycle, STALL_COMPLETION);
      return WAIT;
    }
    if (this.#syndrome === 0) this.#complete(job, pair, cycle);
    else this.#failReceive(job, pair, cycle);
    return DONE;
  }

  /** The first segment of a message takes a receive. */
  #takeReceive(job: PlacementJob, pair: QueuePair, cycle: Cycles): StepAnswer {
    if (pair.hasReceiveWqe === 1) return DONE;
    const { scatter } = this.#ports;
    const taken = scatter.take(pair.slot, job.arrivedCycle, cycle);
    if (taken === NONE_POSTED) this.#fail(job, IwarpError.UNTAGGED_NO_BUFFER, cycle);
    if (taken === UNREADABLE) this.#fail(job, IwarpError.OPERATION_CATASTROPHIC_STREAM, cycle);
    if (taken === NONE_POSTED || taken === UNREADABLE) return REFUSED;
    if (taken === DONE && job.isEnd) scatter.takeInline(pair, job.lengthBytes);
    return taken;
  }

  #placeSend(job: PlacementJob, pair: QueuePair, cycle: Cycles): StepAnswer {
    while (this.#placed < job.lengthBytes && this.#syndrome === 0) {
      const left = job.lengthBytes - this.#placed;
      const from = job.at + this.#placed;
      const moved = this.#ports.scatter.place(pair.slot, left, job.bytes, from, cycle);
      if (moved === WAIT) return WAIT;
      if (moved === ABSENT) return this.#awaitPage(cycle);
      if (moved === FULL) this.#syndrome = CqeSyndrome.LOCAL_LENGTH_ERR;
      else if (moved === REFUSED) this.#syndrome = CqeSyndrome.LOCAL_PROT_ERR;
      else this.#placed += moved;
    }
    return DONE;
  }

  /** The key is invalid when the receive completes (RFC 5040, 5.3). False: it is not yet. */
  #invalidate({ header }: PlacementJob, pair: QueuePair, cycle: Cycles): boolean {
    if (!invalidates(header.opcode)) return true;
    const answer = this.#ports.keys.invalidateFor(pair, pair.pd, header.steeringTag, cycle);
    if (answer === WAIT) {
      this.account.stall(cycle, STALL_KEYS);
      return false;
    }
    this.#syndrome = answer;
    return true;
  }

  #complete({ header }: PlacementJob, pair: QueuePair, cycle: Cycles): void {
    const { completions } = this.#ports;
    const { opcode } = header;
    pair.hasReceiveWqe = 0;
    const completion = completions.nextReceive(pair);
    completion.opcode = invalidates(opcode) ? ReceiveOpcode.SEND_INVAL : ReceiveOpcode.SEND;
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.byteCount = pair.messageBytes;
    completion.isInlined = pair.isInlined;
    if (invalidates(opcode)) completion.immediate = header.steeringTag | 0;
    completion.isSolicited = isSolicited(opcode) ? 1 : 0;
    completions.post(completion, cycle);
  }

  /** The receive completes in error, and the stream ends. */
  #failReceive(job: PlacementJob, pair: QueuePair, cycle: Cycles): void {
    const { completions } = this.#ports;
    const syndrome = this.#syndrome;
    pair.hasReceiveWqe = 0;
    const completion = completions.nextReceive(pair);
    completion.wqeCounter = pair.receiveWqeCounter;
    completion.syndrome = syndrome;
    completions.post(completion, cycle);
    this.#fail(job, receiveErrorOf(syndrome), cycle);
  }

  #fail({ header, lengthBytes, early, connection }: PlacementJob, error: number, cycle: Cycles): void {
    this.#quoted.quoteHeader(header, header.bytes + (early?.lengthBytes ?? lengthBytes));
    this.#ports.streamEnds.fail(connection!, error, this.#quoted, cycle);
  }
}

/** The oldest READ whose response was not placed. */
function oldestRead({ recordHead }: QueuePair): SendRecord {
  let record = recordHead;
  while (record !== noRecord && (record.isReadOrAtomic === 0 || record.isDone === 1)) record = record.next;
  return record;
}

const invalidates = (opcode: number): boolean =>
  opcode === RdmapOpcode.SEND_INVALIDATE || opcode === RdmapOpcode.SEND_SOLICITED_INVALIDATE;

const isSolicited = (opcode: number): boolean =>
  opcode === RdmapOpcode.SEND_SOLICITED ||
  opcode === RdmapOpcode.SEND_SOLICITED_INVALIDATE ||
  opcode === RdmapOpcode.IMMEDIATE_SOLICITED;

/** RFC 5041, 7.2; RFC 5040, 4.8: a receive that software has described wrongly is no fault of the peer. */
function receiveErrorOf(syndrome: number): number {
  if (syndrome === CqeSyndrome.LOCAL_LENGTH_ERR) return IwarpError.UNTAGGED_TOO_LONG;
  return syndrome === CqeSyndrome.REMOTE_INVAL_REQ_ERR
    ? IwarpError.PROTECTION_CANNOT_INVALIDATE
    : IwarpError.OPERATION_CATASTROPHIC_STREAM;
}

/**
 * The requester: takes up the WQE of the QP that the scheduler chose and turns it into packets, whatever transport carries them.
 *
 *   scheduler ──QP──> take up WQE ──record──> per packet: translate, DMA read of the payload ──> packet queue
 *
 * WQEs become records in record-maker.ts, packets are made in request-packets.ts; this file decides which QP is served and
 * what it waits for. One packet at a time, in order: a translation miss or a full fifo stops the requester (and is accounted for),
 * as in a pipeline without reordering. A QP whose context is not on chip is parked while the context is read, and other QPs are
 * served; when the maximum number of contexts is being read, the next miss stops the requester.
 * Gathered data may arrive in any order; the packet queue keeps the packets'.
 * After `burstPackets` packets another QP gets its turn. Checks of the WQE itself are made here, those of the remote
 * side by the peer. Windows, credits and headers are the transport's (transport/). Clauses: IBTA vol 1, 10.8.3.3 (ordering and fence).
 */

import { CqeSyndrome, QpState, WqeOpcode } from '../../../abi/index.ts';
import { type Cycles, NEVER } from '../../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, Fifo } from '../../../sim/index.ts';
import { ABSENT, DONE, type REFUSED, WAIT } from '../answers.ts';
import type { CostAttribution } from '../costs/index.ts';
import type { SendFormat } from '../host-interface/index.ts';
import type { KeyUnit } from '../keys/index.ts';
import { type ContextCache, type ContextPort, type ContextUser, PORT_REQUESTER } from '../memory/index.ts';
import {
  ETHERNET_OPCODE_BASE,
  enlarged,
  noRecord,
  type QpSlot,
  type QpTable,
  type QueuePair,
  type SendRecord,
  type SendRecords,
  wqeBlocksOf,
} from '../objects/index.ts';
import type { PacketSlot, ReadUnit } from '../packets/index.ts';
import type { HcaConfig } from '../parameters.ts';
import {
  isReadOrAtomic,
  NOT_PARKED,
  PARKED_CONTEXT,
  PARKED_DRAINING,
  PARKED_ERROR,
  PARKED_FENCE,
  PARKED_KEYS,
  PARKED_ORDER,
  PARKED_PAGE_FAULT,
  PARKED_READ_LIMIT,
  PARKED_RECORDS,
  PARKED_TRANSPORT_WINDOW,
  PARKED_WINDOW,
  type SendScheduler,
  type WqeFetch,
  type WqeLines,
} from '../send-queue/index.ts';
import type { PacketSink, RequestTransport } from '../transport/index.ts';
import { ContextRegisters } from './context-registers.ts';
import { RecordMaker, type RecordMakerSetup } from './record-maker.ts';
import { RequestCosts, type RequestCostsConfig } from './request-costs.ts';
import {
  RequestPackets,
  type RequestPacketsSetup,
  requesterStalls,
  STALL_CONTEXT,
  STALL_RATE_LIMIT,
  STALL_RECORDS,
  STALL_TRANSMIT_BUFFER,
  STALL_TRANSPORT_WINDOW,
} from './request-packets.ts';

const { LOCAL_PROT_ERR } = CqeSyndrome;
const { RTS, SQD } = QpState;
const { LOCAL_INVAL, RDMA_READ } = WqeOpcode;

/** The QP has nothing to send now: the requester requests another from the scheduler. */
const NOTHING = 0;

/** Received payload on its way to memory: see PayloadWriter. */
export interface PayloadProgress {
  /** Writes that have left. */
  readonly doneCount: number;
}

export interface RequesterPorts {
  readonly scheduler: SendScheduler;
  readonly wqeFetch: WqeFetch;
  readonly transmitter: PacketSink;
  readonly payload: PayloadProgress;
  readonly ends: LocalEnds;
  readonly keys: KeyUnit;
}

/** Completes requests that no response of the peer completes. */
export interface LocalEnds {
  /** The record at the head of its QP's list has an error found on this side, or needs no acknowledgement. */
  completeLocally(pair: QueuePair, cycle: Cycles): void;
}

/** Parts of the device that {@link Requester} uses. */
export interface RequesterSetup extends RecordMakerSetup, RequestPacketsSetup {
  readonly domain: ClockDomain;
  readonly config: RequestPacketsSetup['config'] &
    RequestCostsConfig &
    Pick<
      HcaConfig,
      | 'readRequestCycles'
      | 'outstandingWqesPerQp'
      | 'wqePrefetchCount'
      | 'burstPackets'
      | 'sendContextRegisters'
      | 'sendContextLoadCycles'
    >;
  readonly qps: QpTable;
  readonly sramView: DataView;
  readonly qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly records: SendRecords;
  readonly lines: WqeLines;
  readonly readUnit: ReadUnit;
  readonly costs: CostAttribution | undefined;
  /** Transports of connections and datagrams, and of the rings of an Ethernet port. */
  readonly requestTransport: RequestTransport;
  readonly frameRequests: RequestTransport;
}

export class Requester {
  readonly account: BlockAccount;
  readonly #domain: ClockDomain;
  readonly #config: RequesterSetup['config'];
  readonly #qps: QpTable;
  readonly #sramView: DataView;
  readonly #sends: SendFormat;
  readonly #readUnit: ReadUnit;
  readonly #costs: CostAttribution | undefined;
  readonly #records: SendRecords;
  readonly #packets: RequestPackets;
  readonly #maker: RecordMaker;
  readonly #lines: WqeLines;
  readonly #contexts: ContextPort;
  readonly #stage: number;
  readonly #requestCosts: RequestCosts;
  readonly #registers: ContextRegisters;
  readonly #transport: RequestTransport;
  readonly #frames: RequestTransport;
  /** Values of the configuration. */
  readonly #packetCycles: number;
  readonly #readRequestCycles: number;
  readonly #windowWqes: number;
  /** QPs that found no free record, in order, each once. */
  readonly #waitingForRecord: Fifo;
  #isWaitingForRecord = new Uint8Array(0);
  #scheduler!: SendScheduler;
  #fetch!: WqeFetch;
  #payload!: PayloadProgress;
  #ends!: LocalEnds;
  #keys!: KeyUnit;
  /** QPs whose next request is fenced while the payload of their READs is on its way to memory. */
  readonly #behindPayload: QueuePair[] = [];
  /** QPs whose next request was parked for the transport's window; some may have been resumed since. */
  #behindWindow: QueuePair[] = [];

  /** QP being served, and packets sent in its turn. */
  #active: QueuePair | undefined = undefined;
  #burst = 0;

  constructor(setup: RequesterSetup) {
    this.account = new BlockAccount('requester', requesterStalls(setup.requestTransport));
    this.#transport = setup.requestTransport;
    this.#frames = setup.frameRequests;
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#qps = setup.qps;
    this.#sramView = setup.sramView;
    this.#sends = setup.sends;
    this.#readUnit = setup.readUnit;
    this.#costs = setup.costs;
    this.#records = setup.records;
    this.#lines = setup.lines;
    this.#contexts = setup.qpcCache.port(PORT_REQUESTER);
    this.#requestCosts = new RequestCosts(setup.config);
    this.#registers = new ContextRegisters(setup.config);
    this.#packetCycles = setup.config.requestPacketCycles;
    this.#readRequestCycles = setup.config.readRequestCycles;
    this.#windowWqes = setup.config.outstandingWqesPerQp;
    this.#maker = new RecordMaker(setup);
    this.#waitingForRecord = new Fifo({
      name: 'QPs that wait for a record',
      capacity: setup.qps.slotCount,
      whenFull: 'never: each QP stands here at most once',
    });
    this.#packets = new RequestPackets(setup, this.account, this);
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  /** QPs that wait for a record, and the one being served. */
  get heldCount(): number {
    return this.#waitingForRecord.count + (this.#active === undefined ? 0 : 1);
  }

  connect({ scheduler, wqeFetch, transmitter, payload, ends, keys }: RequesterPorts): void {
    this.#scheduler = scheduler;
    this.#fetch = wqeFetch;
    this.#payload = payload;
    this.#ends = ends;
    this.#keys = keys;
    this.#packets.connect({ transmitter });
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    this.#waitingForRecord.enlarge(slotCount);
    this.#isWaitingForRecord = enlarged(this.#isWaitingForRecord, slotCount);
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** A slot of the packet queue became free. */
  slotFreed(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_TRANSMIT_BUFFER)) this.wake(cycle + 1);
  }

  /** A packet was handed to the wire port. */
  requestSent(packet: PacketSlot, cycle: Cycles): void {
    if (packet.isLast) packet.request.transmittedCycle = cycle;
    this.#transportOf(packet.pair).sent(packet, cycle);
  }

  /** The pages that a QP requested are present, or refused. */
  pagesAnswered(qp: QpSlot, cycle: Cycles): void {
    const pair = this.#qps.rows[qp]!;
    if (pair.parkedFor === PARKED_PAGE_FAULT) this.#scheduler.unpark(pair, cycle + 1);
  }

  /** The context of a QP has been read: the QP is served from `cycle` on, though another may have its line by then. */
  contextFetched(qp: QpSlot, cycle: Cycles): void {
    const pair = this.#qps.rows[qp]!;
    pair.isFetchingContext = 0;
    pair.inPipelineCount--;
    const isParked = pair.parkedFor === PARKED_CONTEXT;
    if (isParked || this.#active === pair) pair.hasFetchedContext = 1;
    if (isParked) this.#scheduler.unparkFirst(pair, cycle);
    else this.wake(cycle);
  }

  /** An operation on keys is done, or refused: the QP continues, or fails once all earlier requests are complete. */
  keyOperationEnded(pair: QueuePair, request: SendRecord, syndrome: number, cycle: Cycles): void {
    // Earlier packets may be being retransmitted: the QP must still send them.
    request.syndrome = syndrome;
    if (syndrome === 0) request.isDone = 1;
    else if (pair.parkedFor === PARKED_KEYS) this.#scheduler.park(pair, PARKED_ERROR);
    if (pair.recordHead === request) this.#ends.completeLocally(pair, cycle);
    if (pair.parkedFor === PARKED_KEYS) this.#scheduler.unpark(pair, cycle + 1);
  }

  /** Received payload has left for memory. */
  payloadLeft(cycle: Cycles): void {
    const waiting = this.#behindPayload;
    for (let at = waiting.length - 1; at >= 0; at--) {
      const pair = waiting[at]!;
      if (this.#payload.doneCount < pair.fenceWriteCount) continue;
      waiting.splice(at, 1);
      if (pair.parkedFor === PARKED_FENCE) this.#scheduler.unpark(pair, cycle + 1);
    }
  }

  /** A record became free. */
  recordFreed(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_RECORDS)) this.wake(cycle + 1);
  }

  /** True while the requester has a packet of this QP half gathered. */
  isServing(qp: QpSlot): boolean {
    return this.#active?.slot === qp;
  }

  reset(): void {
    this.#active = undefined;
    this.#packets.reset();
    this.#registers.reset();
    this.#behindPayload.length = 0;
    this.#behindWindow = [];
    this.#waitingForRecord.clear();
    this.#isWaitingForRecord.fill(0);
  }

  get fifos(): readonly Fifo[] {
    return [this.#waitingForRecord];
  }

  inspect(): BlockState {
    return {
      active: this.#active?.slot ?? 'none',
      openPacket: this.#packets.isOpen,
      waitingForRecord: this.#waitingForRecord.values,
      waitingForPayload: this.#behindPayload.map(({ slot }) => slot),
      waitingForWindow: this.#behindWindow.filter(waitsForWindow).map(({ slot }) => slot),
    };
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    const scheduler = this.#scheduler;
    if (this.#active === undefined) {
      if (!this.#waitingForRecord.isEmpty && this.#records.freeCount > 0) this.#resumeWaiting(cycle);
      this.#active = scheduler.take(cycle);
      if (this.#active === undefined) return this.#findNothing(cycle);
      this.#burst = 0;
    }
    const pair = this.#active;
    const busyCycles = this.#serve(pair, cycle);
    if (busyCycles === WAIT) return;
    pair.hasFetchedContext = 0;
    if (busyCycles === NOTHING) {
      this.#active = undefined;
      return this.#retryAt(cycle + 1);
    }
    this.#contexts.used(pair.hasMissedContext === 1);
    pair.hasMissedContext = 0;
    this.account.serve(cycle, busyCycles);
    const freeCycle = cycle + busyCycles;
    if (this.#active !== undefined) return this.wake(freeCycle);
    const next = scheduler.nextCycle;
    // Two calls and no choice, since the next cycle may be Infinity: see build/README.md.
    if (next <= freeCycle) this.wake(freeCycle);
    else if (next < NEVER) this.wake(next);
  }

  /** Schedules the next search for a QP at `cycle`, or later if no QP can be ready before. */
  #retryAt(cycle: Cycles): void {
    const isWaitedFor = !this.#waitingForRecord.isEmpty || this.#behindWindow.length > 0;
    const isNoted = this.account.isResting && !isWaitedFor;
    const next = isNoted ? this.#scheduler.nextCycle : cycle;
    if (next < NEVER) this.wake(next > cycle ? next : cycle);
  }

  /** Accounts for a cycle in which no QP can be served. */
  #findNothing(cycle: Cycles): void {
    if (!this.#waitingForRecord.isEmpty) this.account.stall(cycle, STALL_RECORDS);
    else if (this.#contexts.awaitedCount > 0) this.account.stall(cycle, STALL_CONTEXT);
    else if (this.#behindWindow.length > 0 && this.#isBehindWindow())
      this.account.stall(cycle, STALL_TRANSPORT_WINDOW);
    else if (this.#scheduler.hasPaced) this.account.stall(cycle, STALL_RATE_LIMIT);
    else this.account.rest(cycle);
    const next = this.#scheduler.nextCycle;
    if (next < NEVER) this.wake(next > cycle ? next : cycle + 1);
  }

  #transportOf({ opcodeBase }: QueuePair): RequestTransport {
    return opcodeBase === ETHERNET_OPCODE_BASE ? this.#frames : this.#transport;
  }

  /** Executes one step for `pair`. Returns its cycles, NOTHING or WAIT. */
  #serve(pair: QueuePair, cycle: Cycles): number {
    this.#packets.abandonStale(pair, cycle);
    const { state } = pair;
    if ((state !== RTS && state !== SQD) || pair.parkedFor !== NOT_PARKED) {
      this.#fetch.release(pair, cycle);
      return NOTHING;
    }
    if (this.#costs !== undefined) this.#noteWork(this.#costs, pair);
    if (!this.#contexts.access(pair.slot, true, pair.hasFetchedContext === 1))
      return this.#waitForContext(pair, cycle);
    const transport = this.#transportOf(pair);
    if (!this.#packets.isOpen) transport.choosePacket(pair);
    let busyCycles = 0;
    if (pair.recordCursor === noRecord) {
      const taken = this.#takeUp(pair, cycle);
      if (taken !== DONE) return taken;
      busyCycles = this.#requestCosts.takeUp(pair.recordTail) + this.#registers.load(pair.slot);
      if (pair.recordCursor === noRecord) {
        this.#endTurn(pair, pair.recordTail, cycle);
        return busyCycles;
      }
    }
    const request = pair.recordCursor;
    if (pair.pacedCycle > cycle && !this.#packets.isOpen) {
      this.#waitForRate(pair, request, busyCycles, cycle);
      return busyCycles;
    }
    if (!this.#packets.mayOpen(pair, request, transport)) {
      this.#parkForWindow(pair);
      this.#active = undefined;
      return busyCycles;
    }
    const sent = this.#packets.send(pair, request, transport, cycle);
    if (sent === WAIT) return this.#waitBehind(busyCycles, cycle);
    if (sent !== DONE) return busyCycles + this.#leavePacket(sent, pair, request, cycle);
    this.#afterPacket(pair, request, cycle);
    busyCycles += this.#requestCosts.packet(request, this.#packets.payloadBytes);
    if (request.opcode !== RDMA_READ) return busyCycles;
    return this.#readUnit.occupy(cycle, busyCycles, this.#readRequestCycles);
  }

  /** Waits after starting a WQE, which takes its cycles although its packet has to wait. */
  #waitBehind(busyCycles: Cycles, cycle: Cycles): typeof WAIT {
    if (busyCycles === 0) return WAIT;
    this.account.serve(cycle, busyCycles);
    this.wake(cycle + busyCycles);
    return WAIT;
  }

  /** Serves other QPs while the context is read, unless no read can begin or a packet is half gathered. */
  #waitForContext(pair: QueuePair, cycle: Cycles): typeof NOTHING | typeof WAIT {
    this.account.stall(cycle, STALL_CONTEXT);
    pair.hasMissedContext = 1;
    if (this.#contexts.isTurnedAway) return WAIT;
    if (pair.isFetchingContext === 0) {
      pair.isFetchingContext = 1;
      pair.inPipelineCount++;
    }
    if (this.#packets.isOpen) return WAIT;
    this.#scheduler.park(pair, PARKED_CONTEXT);
    return NOTHING;
  }

  /** Works on the request that is being sent, or on the next one of the queue. */
  #noteWork(costs: CostAttribution, pair: QueuePair): void {
    const { recordCursor, sqCounter } = pair;
    costs.worksOnRequest(
      PORT_REQUESTER,
      pair,
      recordCursor === noRecord ? sqCounter : recordCursor.wqeCounter,
    );
  }

  /** Makes a record of the next WQE. NOTHING: the QP is parked, or no WQE is on chip. */
  #takeUp(pair: QueuePair, cycle: Cycles): typeof DONE | typeof NOTHING {
    const line = pair.wqeLine;
    // If half of a WQE is on chip, that half is kept until the rest arrives.
    if (line.partBlocks === 0 || line.validCount > 0) this.#fetch.release(pair, cycle);
    if (line.validCount === 0) {
      if (pair.hasDoorbell === 1 || line.mayHaveMore === 1) this.#fetch.ask(pair, cycle);
      return NOTHING;
    }
    const at = line.placeOf(line.firstCounter, pair.sqStrideBytes);
    const reason = this.#reasonToPark(pair, at);
    if (reason !== NOT_PARKED) {
      this.#scheduler.park(pair, reason);
      return NOTHING;
    }
    if (this.#records.freeCount === 0) {
      this.#waitForRecord(pair);
      return NOTHING;
    }
    const request = this.#maker.make(pair, line, at, this.#transportOf(pair), cycle);
    if (request === noRecord) {
      this.#parkForWindow(pair);
      return NOTHING;
    }
    if (request.isKeyOperation === 1 && request.syndrome === 0) this.#keys.add(pair, cycle);
    else if (request.packetCount === 0) this.#endWithoutPackets(pair, request, cycle);
    const isRing = pair.opcodeBase === ETHERNET_OPCODE_BASE;
    const blocks = isRing ? wqeBlocksOf(request.wqeBytes, pair.sqStrideBytes) : 1;
    this.#lines.use(line, blocks);
    // More WQEs are looked for while the last ones on chip are executed: a prefetch that ran out of them would stop the QP.
    if (line.mayHaveMore === 1 && line.validCount < this.#config.wqePrefetchCount)
      this.#fetch.ask(pair, cycle);
    pair.sqCounter = (pair.sqCounter + blocks) & 0xffff;
    if (pair.recordCount > this.#windowWqes) throw new RangeError('send window overrun');
    return DONE;
  }

  /** Serves other QPs until the rate of this one allows its next packet. */
  #waitForRate(pair: QueuePair, request: SendRecord, busyCycles: Cycles, cycle: Cycles): void {
    request.waitsForRate(cycle, pair.pacedCycle);
    this.#scheduler.makeReadyAt(pair, pair.pacedCycle);
    this.#active = undefined;
    // The stall is accounted for from then on, if no other QP is served.
    this.wake(cycle + Math.max(1, busyCycles));
  }

  #parkForWindow(pair: QueuePair): void {
    this.#scheduler.park(pair, PARKED_TRANSPORT_WINDOW);
    if (!this.#behindWindow.includes(pair)) this.#behindWindow.push(pair);
  }

  /** Whether a QP waits for the transport's window; forgets those that do no longer. */
  #isBehindWindow(): boolean {
    this.#behindWindow = this.#behindWindow.filter(waitsForWindow);
    return this.#behindWindow.length > 0;
  }

  /** Serves other QPs, whose packets may free a record. */
  #waitForRecord(pair: QueuePair): void {
    const qp = pair.slot;
    this.#scheduler.park(pair, PARKED_RECORDS);
    if (this.#isWaitingForRecord[qp] === 1) return;
    this.#isWaitingForRecord[qp] = 1;
    this.#waitingForRecord.push(qp, 0);
  }

  #resumeWaiting(cycle: Cycles): void {
    const qp = this.#waitingForRecord.pop();
    this.#isWaitingForRecord[qp] = 0;
    const pair = this.#qps.rows[qp]!;
    if (pair.parkedFor === PARKED_RECORDS) this.#scheduler.unpark(pair, cycle);
    if (!this.#waitingForRecord.isEmpty) this.wake(cycle + 1);
  }

  /** Why the WQE at `at` cannot be started now. Most need not be read for that. */
  #reasonToPark(pair: QueuePair, at: number): number {
    if (pair.state === SQD) return PARKED_DRAINING;
    const { recordTail } = pair;
    if (recordTail.syndrome !== 0) return PARKED_ERROR;
    if (recordTail.isKeyOperation === 1 && recordTail.isDone === 0) return PARKED_KEYS;
    if (pair.recordCount >= this.#windowWqes) return PARKED_WINDOW;
    if (pair.readsOutstanding > 0) {
      const reason = this.#reasonOfReads(pair, at);
      if (reason !== NOT_PARKED) return reason;
    }
    if (pair.fenceWriteCount > this.#payload.doneCount && this.#sends.isFencedAt(this.#sramView, at))
      return this.#waitForPayload(pair);
    const opcode = this.#sends.opcodeAt(this.#sramView, at);
    // Earlier requests may still use the key that is to be invalidated.
    if (opcode === LOCAL_INVAL && pair.recordCount > 0) return PARKED_ORDER;
    return this.#transportOf(pair).reasonToPark(pair, opcode);
  }

  /**
   * A fenced request may send the data of earlier READs: its own reads of memory must not overtake those writes
   * (10.8.3.3).
   */
  #waitForPayload(pair: QueuePair): number {
    if (!this.#behindPayload.includes(pair)) this.#behindPayload.push(pair);
    return PARKED_FENCE;
  }

  /** Returns the reason for which outstanding READs and atomics block the WQE at `at`. */
  #reasonOfReads(pair: QueuePair, at: number): number {
    if (this.#sends.isFencedAt(this.#sramView, at)) return PARKED_FENCE;
    const isAtLimit = pair.readsOutstanding >= pair.readsOutstandingMax;
    return isAtLimit && isReadOrAtomic(this.#sends.opcodeAt(this.#sramView, at))
      ? PARKED_READ_LIMIT
      : NOT_PARKED;
  }

  /** A WQE that cannot be executed, or a NOP. */
  #endWithoutPackets(pair: QueuePair, request: SendRecord, cycle: Cycles): void {
    const isHead = pair.recordHead === request;
    if (request.syndrome !== 0) {
      this.#scheduler.park(pair, PARKED_ERROR);
      if (isHead) this.#ends.completeLocally(pair, cycle);
    } else if (isHead) {
      this.#ends.completeLocally(pair, cycle);
    }
  }

  /** Leaves the packet: it is resumed when its page is present, or fails. Returns the cycles that takes. */
  #leavePacket(
    left: typeof ABSENT | typeof REFUSED,
    pair: QueuePair,
    request: SendRecord,
    cycle: Cycles,
  ): number {
    this.#packets.abandon(cycle);
    this.#active = undefined;
    if (left === ABSENT) this.#scheduler.park(pair, PARKED_PAGE_FAULT);
    else this.#failRecord(pair, request, LOCAL_PROT_ERR, cycle);
    return 1;
  }

  #afterPacket(pair: QueuePair, request: SendRecord, cycle: Cycles): void {
    const sent = request.opcode === RDMA_READ ? request.packetCount : pair.packetCursor + 1;
    this.#burst++;
    if (sent >= request.packetCount) {
      moveCursor(pair, request.next);
      this.#endTurn(pair, request, cycle);
    } else {
      pair.packetCursor = sent;
      if (this.#burst >= this.#config.burstPackets || this.#scheduler.hasPacedAt(cycle)) {
        this.#active = undefined;
        this.#scheduler.makeReady(pair, cycle + this.#packetCycles);
      }
    }
  }

  #endTurn(pair: QueuePair, request: SendRecord, cycle: Cycles): void {
    this.#active = undefined;
    this.#scheduler.makeReadyLater(pair, cycle + this.#requestCosts.interval(pair, request));
  }

  /** A segment was refused: the packet is invalidated, and the record fails once all before it are complete. */
  #failRecord(pair: QueuePair, request: SendRecord, syndrome: number, cycle: Cycles): void {
    request.syndrome = syndrome;
    pair.recordCursor = noRecord;
    this.#scheduler.park(pair, PARKED_ERROR);
    if (pair.recordHead === request) this.#ends.completeLocally(pair, cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#waitingForRecord.rebase(cycles);
  }
}

const waitsForWindow = ({ parkedFor }: QueuePair): boolean => parkedFor === PARKED_TRANSPORT_WINDOW;

/** Moves to the next record with packets to send: after a rewind there may be several. */
function moveCursor(pair: QueuePair, following: SendRecord): void {
  let next = following;
  while (next !== noRecord && next.packetCount === 0) next = next.next;
  pair.recordCursor = next;
  pair.packetCursor = next.responsesReceived;
}

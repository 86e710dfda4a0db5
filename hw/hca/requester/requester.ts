/**
 * The requester: takes up the WQE of the QP that the scheduler chose and turns it into packets.
 *
 *   scheduler ──QP──> take up WQE ──record──> per packet: translate, DMA read of the payload ──> packet queue
 *
 * WQEs become records in record-maker.ts, packets are made in request-packets.ts; here is whose turn it is and what is to be
 * waited for. One packet at a time, in order: a translation miss or a full fifo stops the requester (and is accounted for), as
 * in a pipeline without reordering. A QP whose context is not on chip is parked while that is read, and others are served; when as
 * many are read as may be at once, the next one that misses stops the requester.
 * Gathered data may arrive in any order; the packet queue keeps the packets'.
 * After `burstPackets` packets another QP gets its turn. Checks of the WQE itself are made here, those of the remote
 * side by the responder. Clauses: IBTA vol 1, 9.7 (RC), 10.8.3.3 (ordering and fence), 9.7.7.2 (end-to-end credits).
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
  ENDED_BY_RNR_DELAY,
  ETHERNET_OPCODE_BASE,
  endAttempts,
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
  PARKED_CREDITS,
  PARKED_DRAINING,
  PARKED_ERROR,
  PARKED_FENCE,
  PARKED_KEYS,
  PARKED_ORDER,
  PARKED_PAGE_FAULT,
  PARKED_PSNS,
  PARKED_READ_LIMIT,
  PARKED_RECORDS,
  PARKED_RNR,
  PARKED_WINDOW,
  type SendScheduler,
  takesCredit,
  type WqeFetch,
  type WqeLines,
} from '../send-queue/index.ts';
import { RecordMaker, type RecordMakerSetup } from './record-maker.ts';
import { RequestCosts, type RequestCostsConfig } from './request-costs.ts';
import {
  type PacketSink,
  RequestPackets,
  type RequestPacketsSetup,
  requesterStalls,
  STALL_CONTEXT,
  STALL_PSN_WINDOW,
  STALL_RECORDS,
  STALL_TRANSMIT_BUFFER,
} from './request-packets.ts';
import type { RetryTimers } from './retry-timers.ts';

const { LOCAL_PROT_ERR } = CqeSyndrome;
const { RTS, SQD } = QpState;
const { LOCAL_INVAL, RDMA_READ } = WqeOpcode;

/** The QP has nothing to send now: ask the scheduler for another. */
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
  readonly timers: RetryTimers;
  readonly payload: PayloadProgress;
  readonly ends: LocalEnds;
  readonly keys: KeyUnit;
}

/** Where requests end that no answer of the peer ends. */
export interface LocalEnds {
  /** The record at the head of its QP's list has an error found on this side, or needs no acknowledgement. */
  completeLocally(pair: QueuePair, cycle: Cycles): void;
  /** A packet of an unreliable service has left. */
  completeOnSend(request: SendRecord, pair: QueuePair, isLast: boolean, cycle: Cycles): void;
}

/** Parts of the device that {@link Requester} uses. */
export interface RequesterSetup extends RecordMakerSetup, RequestPacketsSetup {
  readonly domain: ClockDomain;
  readonly config: RequestPacketsSetup['config'] &
    RequestCostsConfig &
    Pick<HcaConfig, 'readRequestCycles' | 'outstandingWqesPerQp' | 'wqePrefetchCount' | 'burstPackets'>;
  readonly qps: QpTable;
  readonly sramView: DataView;
  readonly qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly records: SendRecords;
  readonly lines: WqeLines;
  readonly readUnit: ReadUnit;
  readonly costs: CostAttribution | undefined;
}

export class Requester {
  readonly account = new BlockAccount('requester', requesterStalls);
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
  /** Of the configuration. */
  readonly #packetCycles: number;
  readonly #readRequestCycles: number;
  readonly #windowWqes: number;
  /** QPs that found no record free, in turn, each once. */
  readonly #waitingForRecord: Fifo;
  #isWaitingForRecord = new Uint8Array(0);
  #scheduler!: SendScheduler;
  #fetch!: WqeFetch;
  #timers!: RetryTimers;
  #payload!: PayloadProgress;
  #ends!: LocalEnds;
  #keys!: KeyUnit;
  /** QPs whose next request is fenced, and what READs brought for it is on its way to memory. */
  readonly #behindPayload: QueuePair[] = [];
  /** QPs whose next request was parked for its PSNs; some may have been resumed since. */
  #behindPsns: QueuePair[] = [];

  /** QP being served, and packets sent in its turn. */
  #active: QueuePair | undefined = undefined;
  #burst = 0;

  constructor(setup: RequesterSetup) {
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

  connect({ scheduler, wqeFetch, transmitter, timers, payload, ends, keys }: RequesterPorts): void {
    this.#scheduler = scheduler;
    this.#fetch = wqeFetch;
    this.#timers = timers;
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

  /** A packet was handed to the wire port: the answer is awaited, or there will be none. */
  requestSent({ request, pair, isLast, psn }: PacketSlot, cycle: Cycles): void {
    if (isLast) request.transmittedCycle = cycle;
    if (pair.opcodeBase === 0) this.#timers.sentAt(pair, request, psn, cycle);
    else this.#ends.completeOnSend(request, pair, isLast, cycle);
  }

  /** The RNR delay of a QP is over. */
  rnrWaitOver(pair: QueuePair, cycle: Cycles): void {
    endAttempts(pair.recordCursor, cycle, ENDED_BY_RNR_DELAY);
    if (pair.parkedFor === PARKED_RNR) this.#scheduler.unpark(pair, cycle + 1);
  }

  /** The pages that a QP has asked for are there, or refused. */
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

  /** An operation on keys has been carried out, or refused: the QP goes on, or fails once all before it is complete. */
  keyOperationEnded(pair: QueuePair, request: SendRecord, syndrome: number, cycle: Cycles): void {
    // Packets that went before may be under way again: they stay what the QP is to send.
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
    this.#behindPayload.length = 0;
    this.#behindPsns = [];
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
      waitingForPsns: this.#behindPsns.filter(waitsForPsns).map(({ slot }) => slot),
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
    const isWaitedFor = !this.#waitingForRecord.isEmpty || this.#behindPsns.length > 0;
    const isNoted = this.account.isResting && !isWaitedFor;
    const next = isNoted ? this.#scheduler.nextCycle : cycle;
    if (next < NEVER) this.wake(next > cycle ? next : cycle);
  }

  /** No QP may be served now. */
  #findNothing(cycle: Cycles): void {
    if (!this.#waitingForRecord.isEmpty) this.account.stall(cycle, STALL_RECORDS);
    else if (this.#contexts.awaitedCount > 0) this.account.stall(cycle, STALL_CONTEXT);
    else if (this.#behindPsns.length > 0 && this.#isBehindPsns()) this.account.stall(cycle, STALL_PSN_WINDOW);
    else this.account.rest(cycle);
    const next = this.#scheduler.nextCycle;
    if (next < NEVER) this.wake(next > cycle ? next : cycle + 1);
  }

  /** One step for `pair`: cycles it takes, NOTHING or WAIT. */
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
    let busyCycles = 0;
    if (pair.recordCursor === noRecord) {
      const taken = this.#takeUp(pair, cycle);
      if (taken !== DONE) return taken;
      busyCycles = this.#requestCosts.takeUp(pair.recordTail);
      if (pair.recordCursor === noRecord) {
        this.#endTurn(pair, pair.recordTail, cycle);
        return busyCycles;
      }
    }
    const request = pair.recordCursor;
    const sent = this.#packets.send(pair, request, cycle);
    if (sent === WAIT) return this.#waitBehind(busyCycles, cycle);
    if (sent !== DONE) return busyCycles + this.#leavePacket(sent, pair, request, cycle);
    this.#afterPacket(pair, request, cycle);
    busyCycles += this.#requestCosts.packet(request, this.#packets.payloadBytes);
    if (request.opcode !== RDMA_READ) return busyCycles;
    return this.#readUnit.occupy(cycle, busyCycles, this.#readRequestCycles);
  }

  /** A WQE has been taken up, which takes its cycles, though its packet has to wait. */
  #waitBehind(busyCycles: Cycles, cycle: Cycles): typeof WAIT {
    if (busyCycles === 0) return WAIT;
    this.account.serve(cycle, busyCycles);
    this.wake(cycle + busyCycles);
    return WAIT;
  }

  /** Lets other QPs go on while the context is read, unless no read can be begun or a packet is half gathered. */
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
    // Of a WQE half of which is there, that half is kept until the rest is.
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
    const request = this.#maker.make(pair, line, at, cycle);
    if (request === noRecord) {
      this.#scheduler.park(pair, PARKED_PSNS);
      if (!this.#behindPsns.includes(pair)) this.#behindPsns.push(pair);
      return NOTHING;
    }
    this.#costs?.numbered(pair, request);
    if (request.isKeyOperation === 1 && request.syndrome === 0) this.#keys.add(pair, cycle);
    else if (request.psnCount === 0) this.#endWithoutPackets(pair, request, cycle);
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

  /** Whether a QP waits for its PSNs; forgets those that do no longer. */
  #isBehindPsns(): boolean {
    this.#behindPsns = this.#behindPsns.filter(waitsForPsns);
    return this.#behindPsns.length > 0;
  }

  /** Lets other QPs go on, whose packets may be what frees a record. */
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
    // What went before may use the key that is to be invalidated.
    if (opcode === LOCAL_INVAL && pair.recordCount > 0) return PARKED_ORDER;
    // With no credit left one message may still go out as a probe, when nothing else is under way (9.7.7.2.5).
    const limit = pair.ssnLimit;
    const isBeyondCredits = limit !== -1 && pair.recordCount > 0 && ((limit - pair.ssn - 1) & 0x800000) !== 0;
    return isBeyondCredits && takesCredit(opcode) ? PARKED_CREDITS : NOT_PARKED;
  }

  /** A fenced request may send what READs have brought: its own reads of memory must not overtake those writes (10.8.3.3). */
  #waitForPayload(pair: QueuePair): number {
    if (!this.#behindPayload.includes(pair)) this.#behindPayload.push(pair);
    return PARKED_FENCE;
  }

  /** What READs and atomics under way forbid the WQE at `at`. */
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

  /** The packet is resumed when its page is there, or fails. Returns the cycles that takes. */
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
    const sent = request.opcode === RDMA_READ ? request.psnCount : pair.packetCursor + 1;
    this.#burst++;
    if (sent >= request.psnCount) {
      moveCursor(pair, request.next);
      this.#endTurn(pair, request, cycle);
    } else {
      pair.packetCursor = sent;
      if (this.#burst >= this.#config.burstPackets) {
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

const waitsForPsns = ({ parkedFor }: QueuePair): boolean => parkedFor === PARKED_PSNS;

/** To the next record that has packets to send: after going back there may be several. */
function moveCursor(pair: QueuePair, following: SendRecord): void {
  let next = following;
  while (next !== noRecord && next.psnCount === 0) next = next.next;
  pair.recordCursor = next;
  pair.packetCursor = next.responsesReceived;
}

/**
 * Fetches receive WQEs: keeps, for the receive queues in use, a line of the next few WQEs on chip.
 *
 *   receiver ──take──> line ──(running low)──> doorbell record read ──> WQE read ──> line
 *
 * The doorbell record is read only when every WQE known to be posted is used up; a counter once read stays true,
 * since software only moves it forward. An SRQ is a linked list: its line holds one WQE, and the next index is read
 * from the WQE consumed (interface sheet 6.5, 6.8).
 */

import { EventType } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, Fifo, stallReasons } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import { DONE, NONE_POSTED, type ReceiveAnswer, UNREADABLE, WAIT } from '../answers.ts';
import type { CostAttribution } from '../costs/index.ts';
import type { ReceiveFormat } from '../host-interface/index.ts';
import {
  BAD_KEY,
  type ContextCache,
  type ContextUser,
  type DmaReads,
  PENDING,
  PORT_RECEIVE_FETCH,
  PORT_RECEIVER,
  type Translator,
} from '../memory/index.ts';
import {
  ASKED,
  IDLE,
  NO_LINE,
  type QpSlot,
  type QpTable,
  READING_RECORD,
  READING_WQES,
  RECORD_READ,
  ReceiveQueueState,
  type SrqSlot,
  type SrqTable,
} from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';
import { RECEIVE_LINE_BYTES, ReceiveWqeLines } from './receive-wqe-lines.ts';

const RECORD_READS_MAX = 8;
/** QP slots are below: QPNs have 24 bits. */
const SRQ_BASE = 2 ** 24;
const stalls = stallReasons('translation', 'dma', 'context', 'lines');
const { translation: STALL_TRANSLATION, dma: STALL_DMA, context: STALL_CONTEXT, lines: STALL_LINES } = stalls;

export interface ReceiveWqeFetchPorts {
  /** Woken when a queue has WQEs, or is known to have none. */
  readonly receiver: { wake(cycle: Cycles): void };
  readonly flusher: {
    /**
     * A read of memory that {@link ReceiveWqeFetch.refreshPosted} requested is over.
     */
    recordRead(queue: number, cycle: Cycles): void;
  };
  readonly asyncEvents: {
    post(type: number, objectNumber: number, syndrome: number, cycle: Cycles): void;
  };
}

/** Parts of the device that {@link ReceiveWqeFetch} uses. */
export interface ReceiveWqeFetchSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'receiveQueueLineCount' | 'receivePrefetchCount'>;
  readonly dmaRead: DmaReads;
  readonly qps: QpTable;
  readonly srqs: SrqTable;
  readonly sramView: DataView;
  readonly format: ReceiveFormat;
  readonly translator: Translator;
  readonly srqcCache: ContextCache<ContextUser<'srqc'>>;
  readonly costs: CostAttribution | undefined;
  allocateSram(lengthBytes: number): number;
}

export class ReceiveWqeFetch {
  readonly account = new BlockAccount('receiveWqeFetch', stalls);
  hitCount = 0;
  missCount = 0;
  /** Offset in the HCA's memory of the WQE found by {@link take}, its byte length and its counter or index. */
  foundOffset = 0;
  foundBytes = 0;
  foundCounter = 0;

  readonly #domain: ClockDomain;
  readonly #config: ReceiveWqeFetchSetup['config'];
  readonly #dmaRead: DmaReads;
  readonly #qps: QpTable;
  readonly #srqs: SrqTable;
  readonly #sramView: DataView;
  readonly #format: ReceiveFormat;
  readonly #translator: Translator;
  readonly #srqcCache: ContextCache<ContextUser<'srqc'>>;
  readonly #costs: CostAttribution | undefined;
  #ports!: ReceiveWqeFetchPorts;
  readonly #recordsOffset: number;
  readonly #lines: ReceiveWqeLines;
  readonly #recordRequester: number;
  readonly #wqeRequester: number;
  readonly #stage: number;
  /** Queues to examine, each once: see {@link ReceiveQueueState.isQueued}. */
  readonly #work: Fifo;
  /**
   * Queue states by QP slot, which is the queue's number, and by SRQ slot, to which {@link SRQ_BASE} is added. Created
   * on first use: most QPs of many share a queue.
   */
  readonly #ofQps: (ReceiveQueueState | undefined)[] = [];
  readonly #ofSrqs: (ReceiveQueueState | undefined)[] = [];
  /** Reads of doorbell records begun and done; they end in order, and each has a place of its own until then. */
  #recordsBegun = 0;
  #recordsDone = 0;
  /** Queue that the last read into each line was for. */
  readonly #readFor: Int32Array;

  constructor(setup: ReceiveWqeFetchSetup) {
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#dmaRead = setup.dmaRead;
    this.#qps = setup.qps;
    this.#srqs = setup.srqs;
    this.#sramView = setup.sramView;
    this.#format = setup.format;
    this.#translator = setup.translator;
    this.#srqcCache = setup.srqcCache;
    this.#costs = setup.costs;
    const { qps, srqs } = setup;
    const lines = setup.config.receiveQueueLineCount;
    const sramOffset = setup.allocateSram(
      lines * RECEIVE_LINE_BYTES + RECORD_READS_MAX * setup.format.recordBytes,
    );
    this.#lines = new ReceiveWqeLines(lines, sramOffset);
    this.#recordsOffset = sramOffset + lines * RECEIVE_LINE_BYTES;
    this.#work = new Fifo({
      name: 'receive queues to examine',
      capacity: qps.slotCount + srqs.slotCount,
      whenFull: 'never: each queue stands here at most once',
    });
    this.#readFor = new Int32Array(lines);
    const space = (): void => this.wake(setup.domain.cycle + 1);
    this.#recordRequester = setup.dmaRead.addRequester(
      {
        name: 'receiveRecord',
        trafficClass: TrafficClass.doorbellRecord,
        fifoDepth: RECORD_READS_MAX,
        weight: 2,
      },
      { done: (queue, status, cycle) => this.#recordDone(queue, status, cycle), space },
    );
    this.#wqeRequester = setup.dmaRead.addRequester(
      { name: 'receiveWqeRead', trafficClass: TrafficClass.wqeRead, fifoDepth: 8, weight: 2 },
      { done: (line, status, cycle) => this.#wqesDone(line, status, cycle), space },
    );
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: ReceiveWqeFetchPorts): void {
    this.#ports = ports;
  }

  /** See SlotUser: of QPs, or of SRQs. */
  slotsGrown(): void {
    while (this.#ofQps.length < this.#qps.slotCount) this.#ofQps.push(undefined);
    while (this.#ofSrqs.length < this.#srqs.slotCount) this.#ofSrqs.push(undefined);
    this.#work.enlarge(this.#qps.slotCount + this.#srqs.slotCount);
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Number of a QP's receive queue: its own, or its SRQ's; -1 when it has none. */
  queueOf(qp: QpSlot): number {
    const pair = this.#qps.rows[qp]!;
    const srqn = pair.srqn;
    if (srqn === -1) return pair.hasReceiveQueue === 1 ? qp : -1;
    const srq = this.#srqs.slotOf(srqn);
    return srq === -1 ? -1 : SRQ_BASE + srq;
  }

  get evictionCount(): number {
    return this.#lines.evictionCount;
  }

  /** Lines in use, queues that wait for their turn, and reads of doorbell records under way. */
  get heldCount(): number {
    return this.#lines.heldCount + this.#work.count + this.#recordsBegun - this.#recordsDone;
  }

  /** Opens a new queue without known state. */
  open(queue: number): void {
    const state = this.#stateOf(queue);
    this.#lines.close(state);
    state.begin();
  }

  /** Closes a destroyed queue. The result of a read of its record is ignored. */
  close(queue: number): void {
    const state = this.#stateOf(queue);
    this.#lines.close(state);
    state.phase = IDLE;
  }

  srqQueue(srq: SrqSlot): number {
    return SRQ_BASE + srq;
  }

  /** WQEs known to be posted and not consumed, for which end-to-end credits are granted. */
  knownAvailable(queue: number): number {
    return this.#stateOf(queue).available;
  }

  postedCounter(queue: number): number {
    return this.#stateOf(queue).posted;
  }

  /** The doorbell record as it was last read, a big-endian dword. */
  recordWord(queue: number): number {
    return this.#stateOf(queue).recordWord;
  }

  consumedCounter(queue: number): number {
    return this.#stateOf(queue).consumed;
  }

  /** True while a DMA read for the queue is under way. */
  isBusy(queue: number): boolean {
    const { phase, readsUnderWay } = this.#stateOf(queue);
    return phase !== IDLE || readsUnderWay > 0;
  }

  /**
   * Takes the next WQE, for a packet that has waited since `arrivedCycle`. WAIT: the receiver is woken and retries.
   * NONE_POSTED: memory was polled after the packet's arrival, and no WQE was posted: one poll decides for all packets
   * that arrived before it.
   */
  take(queue: number, arrivedCycle: Cycles, cycle: Cycles): ReceiveAnswer {
    const state = this.#stateOf(queue);
    if (state.hasFailed === 1) return UNREADABLE;
    const { line } = state;
    if (line !== NO_LINE && this.#lines.hasWqe(line)) {
      this.#consume(queue, line, cycle);
      return DONE;
    }
    if (state.emptyCycle >= arrivedCycle) {
      // Several packets arrived meanwhile, and more may follow: the next poll proceeds while these are dropped.
      if (++state.emptyAnswerCount === 2) this.#ask(queue, cycle);
      return NONE_POSTED;
    }
    if (state.phase !== IDLE) return WAIT;
    this.missCount++;
    this.#ask(queue, cycle);
    return WAIT;
  }

  /** Polls for WQEs before the first message arrives. */
  prefetch(queue: number, cycle: Cycles): void {
    this.#ask(queue, cycle);
  }

  /** Reads the doorbell record afresh (flush of a QP in error); {@link knownAvailable} is then up to date. */
  refreshPosted(queue: number, cycle: Cycles): void {
    const state = this.#stateOf(queue);
    state.posted = state.consumed;
    this.#lines.empty(state);
    this.#ask(queue, cycle);
  }

  /** Counts one WQE as consumed without looking at it: a flushed one. Returns its counter. */
  consumeUnseen(queue: number): number {
    const state = this.#stateOf(queue);
    const counter = state.consumed;
    state.consumed = (counter + 1) & 0xffff;
    return counter;
  }

  reset(): void {
    this.#work.clear();
    this.#lines.reset();
    this.#recordsBegun = 0;
    this.#recordsDone = 0;
    for (const states of [this.#ofQps, this.#ofSrqs]) {
      for (const state of states) {
        if (state === undefined) continue;
        state.phase = IDLE;
        state.readsUnderWay = 0;
        state.isQueued = 0;
      }
    }
  }

  get fifos(): readonly Fifo[] {
    return [this.#work];
  }

  inspect(): BlockState {
    return {
      lines: this.#lines.heldCount,
      work: this.#work.values,
      recordReads: this.#recordsBegun - this.#recordsDone,
    };
  }

  #consume(queue: number, line: number, cycle: Cycles): void {
    const state = this.#stateOf(queue);
    const stride = this.#strideBytes(queue);
    const offset = this.#lines.use(line, stride);
    const isShared = queue >= SRQ_BASE;
    this.hitCount++;
    if (isShared) {
      this.foundCounter = state.nextIndex;
      state.nextIndex = this.#format.nextIndexAt(this.#sramView, offset);
      this.foundOffset = offset + this.#format.sharedHeaderBytes;
      this.foundBytes = stride - this.#format.sharedHeaderBytes;
    } else {
      this.foundCounter = state.consumed;
      this.foundOffset = offset;
      this.foundBytes = stride;
    }
    state.consumed = (state.consumed + 1) & 0xffff;
    if (this.#lines.isUsedUp(line) && state.available > 0) this.#ask(queue, cycle);
    if (isShared) this.#checkLimit(queue, cycle);
  }

  /** Fewer WQEs than the limit are known of: software may have posted more since. */
  #checkLimit(queue: number, cycle: Cycles): void {
    const limit = this.#srqs.limit[queue - SRQ_BASE]!;
    if (limit === 0 || this.knownAvailable(queue) >= limit) return;
    this.#stateOf(queue).needsPoll = 1;
    this.#ask(queue, cycle);
  }

  /** The record has just been read: fewer WQEs than the limit are posted. */
  #raiseLimitEvent(queue: number, cycle: Cycles): void {
    const srqs = this.#srqs;
    const srq = queue - SRQ_BASE;
    if (srqs.limit[srq] === 0 || this.knownAvailable(queue) >= srqs.limit[srq]!) return;
    srqs.limit[srq] = 0;
    this.#ports.asyncEvents.post(EventType.SRQ_LIMIT, srqs.numberOf[srq]!, 0, cycle);
  }

  #ask(queue: number, cycle: Cycles): void {
    const state = this.#stateOf(queue);
    if (state.phase !== IDLE) return;
    state.phase = ASKED;
    if (this.#costs !== undefined) state.owner = this.#costs.ownerOf(PORT_RECEIVER);
    this.#enter(queue, state, cycle + 1);
  }

  #enter(queue: number, state: ReceiveQueueState, cycle: Cycles): void {
    if (state.isQueued === 0) {
      state.isQueued = 1;
      this.#work.push(queue, cycle);
    }
    this.wake(cycle);
  }

  #leave(state: ReceiveQueueState): void {
    state.isQueued = 0;
    this.#work.pop();
  }

  #run(cycle: Cycles): void {
    const domain = this.#domain;
    if (this.account.freeCycle > cycle) return domain.wake(this.#stage, this.account.freeCycle);
    if (this.#work.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#work.isEmpty) domain.wake(this.#stage, this.#work.headCycle);
      return;
    }
    const queue = this.#work.head;
    const state = this.#stateOf(queue);
    if (state.phase !== ASKED && state.phase !== RECORD_READ) {
      // The queue was closed while it waited here.
      this.#leave(state);
      this.account.serve(cycle, 1);
      return domain.wake(this.#stage, cycle + 1);
    }
    this.#costs?.worksFor(PORT_RECEIVE_FETCH, state.owner);
    const stall =
      state.phase === ASKED && (state.available === 0 || state.needsPoll === 1)
        ? this.#readRecord(queue, cycle)
        : this.#readWqes(queue, cycle);
    if (stall !== -1) return this.account.stall(cycle, stall);
    this.#leave(state);
    this.account.serve(cycle, 1);
    if (!this.#work.isEmpty) domain.wake(this.#stage, Math.max(cycle + 1, this.#work.headCycle));
  }

  #readRecord(queue: number, cycle: Cycles): number {
    if (!this.#dmaRead.canRequest(this.#recordRequester)) return STALL_DMA;
    const address =
      queue < SRQ_BASE ? this.#qps.rows[queue]!.doorbellRecord : this.#srqs.doorbellRecord[queue - SRQ_BASE]!;
    const state = this.#stateOf(queue);
    state.phase = READING_RECORD;
    state.pollCycle = cycle;
    state.readsUnderWay++;
    const place = this.#recordPlace(this.#recordsBegun++);
    this.#dmaRead.request(this.#recordRequester, address, this.#format.recordBytes, place, queue);
    return -1;
  }

  #recordDone(queue: number, status: number, cycle: Cycles): void {
    const state = this.#stateOf(queue);
    const place = this.#recordPlace(this.#recordsDone++);
    state.readsUnderWay--;
    if (state.phase !== READING_RECORD) return;
    if (status !== 0) {
      this.#end(queue, cycle, 1);
      return this.#ports.flusher.recordRead(queue, cycle);
    }
    state.recordWord = this.#sramView.getInt32(place);
    state.posted = this.#format.postedAt(this.#sramView, place);
    if (state.needsPoll === 1) {
      state.needsPoll = 0;
      this.#raiseLimitEvent(queue, cycle);
    }
    this.#ports.flusher.recordRead(queue, cycle);
    if (state.available === 0) {
      state.emptyCycle = state.pollCycle;
      state.emptyAnswerCount = 0;
      return this.#end(queue, cycle, 0);
    }
    state.phase = RECORD_READ;
    this.#enter(queue, state, cycle + 1);
  }

  #readWqes(queue: number, cycle: Cycles): number {
    const translator = this.#translator;
    const qps = this.#qps;
    const srqs = this.#srqs;
    if (!this.#dmaRead.canRequest(this.#wqeRequester)) return STALL_DMA;
    const state = this.#stateOf(queue);
    const stride = this.#strideBytes(queue);
    const isShared = queue >= SRQ_BASE;
    const srq = queue - SRQ_BASE;
    if (isShared && !this.#srqcCache.access(PORT_RECEIVE_FETCH, srq, true)) return STALL_CONTEXT;
    const logCount = isShared ? srqs.logCount[srq]! : qps.rows[queue]!.rqLogCount;
    const index = isShared ? state.nextIndex : state.consumed & ((1 << logCount) - 1);
    const limit = isShared
      ? 1
      : Math.min(this.#config.receivePrefetchCount, state.available, (1 << logCount) - index);
    const wqes = Math.max(1, Math.min(limit, Math.floor(RECEIVE_LINE_BYTES / stride)));
    const mttOffset = isShared ? srqs.mttOffset[srq]! : qps.rows[queue]!.bufferMttOffset;
    const pageBytes = isShared ? srqs.pageBytes[srq]! : qps.rows[queue]!.bufferPageBytes;
    const byte = (isShared ? srqs.firstByte[srq]! : qps.rows[queue]!.rqOffset) + index * stride;
    const found = translator.translateBuffer(PORT_RECEIVE_FETCH, mttOffset, pageBytes, byte, wqes * stride);
    if (found === PENDING) return STALL_TRANSLATION;
    if (found >= BAD_KEY) {
      this.#end(queue, cycle, 1);
      return -1;
    }
    const whole = Math.max(1, Math.floor(translator.contiguousBytes / stride));
    const line = this.#lines.beginFill(state, queue, whole);
    if (line === -1) return STALL_LINES;
    state.phase = READING_WQES;
    this.#readFor[line] = queue;
    state.readsUnderWay++;
    const target = this.#lines.offsetOf(line);
    this.#dmaRead.request(this.#wqeRequester, translator.physicalAddress, whole * stride, target, line);
    translator.port(PORT_RECEIVE_FETCH).usedBuffer();
    if (isShared) this.#srqcCache.port(PORT_RECEIVE_FETCH).used();
    return -1;
  }

  #wqesDone(line: number, status: number, cycle: Cycles): void {
    this.#stateOf(this.#readFor[line]!).readsUnderWay--;
    this.#domain.wake(this.#stage, cycle + 1);
    const queue = this.#lines.endFill(line);
    if (queue === -1 || this.#stateOf(queue).phase !== READING_WQES) return;
    this.#lines.publish(line);
    this.#end(queue, cycle, status === 0 ? 0 : 1);
  }

  #end(queue: number, cycle: Cycles, failed: number): void {
    const state = this.#stateOf(queue);
    state.phase = IDLE;
    if (failed === 1) state.hasFailed = 1;
    this.#ports.receiver.wake(cycle + 1);
  }

  #strideBytes(queue: number): number {
    return queue < SRQ_BASE
      ? this.#qps.rows[queue]!.rqStrideBytes
      : this.#srqs.strideBytes[queue - SRQ_BASE]!;
  }

  #stateOf(queue: number): ReceiveQueueState {
    return queue < SRQ_BASE ? stateAt(this.#ofQps, queue) : stateAt(this.#ofSrqs, queue - SRQ_BASE);
  }

  /** Doorbell records are stored after the lines, one place for each read that can be in flight. */
  #recordPlace(read: number): number {
    return this.#recordsOffset + (read % RECORD_READS_MAX) * this.#format.recordBytes;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#work.rebase(cycles);
    for (const states of [this.#ofQps, this.#ofSrqs]) for (const state of states) state?.rebase(cycles);
  }
}

function stateAt(states: (ReceiveQueueState | undefined)[], slot: number): ReceiveQueueState {
  const known = states[slot];
  if (known !== undefined) return known;
  const state = new ReceiveQueueState();
  states[slot] = state;
  return state;
}

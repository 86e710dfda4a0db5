/**
 * Fetches receive WQEs: keeps, for the receive queues in use, a line of the next few WQEs on chip.
 *
 *   receiver ──take──> line ──(running low)──> doorbell record read ──> WQE read ──> line
 *
 * The doorbell record is read only when every WQE known to be posted is used up; a counter once read stays true,
 * since software only moves it forward. An SRQ is a linked list: its line holds one WQE, and the next index is read
 * from the WQE consumed (interface sheet 6.5, 6.8).
 */
import { receiveRecord } from '../../abi/doorbells.ts';
import { srqNextSegment } from '../../abi/wqe.ts';
import { BlockAccount, Fifo } from '../../sim/index.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import * as translatorConstants from './translator.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { PORT_RECEIVE_FETCH } = coreConstants;
const { BAD_KEY, PENDING } = translatorConstants;

const LINE_BYTES = 1024;
const RECORD_BYTES = 4;
const STALL_TRANSLATION = 0;
const STALL_DMA = 1;
const STALL_CONTEXT = 2;
const STALL_LINES = 3;
/** In place of a queue: the line is free, or a read into it is under way for a queue that is gone. */
const FREE = -1;
const ABANDONED = -2;

/** What {@link ReceiveWqeFetch.take} found. */
export const TAKE_FOUND = 0;
export const TAKE_PENDING = 1;
export const TAKE_EMPTY = 2;
export const TAKE_FAILED = 3;

const IDLE = 0;
const ASKED = 1;
const READING_RECORD = 2;
const RECORD_READ = 3;
const READING_WQES = 4;

export class ReceiveWqeFetch {
  readonly account = new BlockAccount('receiveWqeFetch', ['translation', 'dma', 'context', 'lines']);
  hitCount = 0;
  missCount = 0;
  evictionCount = 0;
  /** Offset in the HCA's memory of the WQE found by {@link take}, its byte length and its counter or index. */
  foundOffset = 0;
  foundBytes = 0;
  foundCounter = 0;

  readonly #core: HcaCore;
  readonly #wakeReceiver: (cycle: number) => void;
  readonly #srqBase: number;
  readonly #sramOffset: number;
  readonly #lineCount: number;
  readonly #recordRequester: number;
  readonly #wqeRequester: number;
  readonly #stage: number;
  readonly #work: Fifo;
  /** By receive queue: QP slots first, SRQ slots behind them. Counters are 16 bits. */
  readonly #line: Int32Array;
  readonly #phase: Uint8Array;
  readonly #posted: Int32Array;
  readonly #consumed: Int32Array;
  readonly #nextIndex: Int32Array;
  /** The receiver has asked since the look began: a look that finds nothing is an answer to it. */
  readonly #isAwaited: Uint8Array;
  readonly #isKnownEmpty: Uint8Array;
  readonly #hasFailed: Uint8Array;
  readonly #readsUnderWay: Uint8Array;
  /** The record is to be read although WQEs are known: whether the limit is reached is decided by what memory says. */
  readonly #needsLook: Uint8Array;
  /** By line. */
  readonly #queueOfLine: Int32Array;
  readonly #readFor: Int32Array;
  readonly #firstCounter: Int32Array;
  readonly #lineWqes: Int32Array;
  readonly #lineUsed: Int32Array;
  readonly #stamp: Float64Array;
  #clock = 0;

  /** @param sramOffset of {@link receiveFetchSramBytes} bytes */
  constructor(
    core: HcaCore,
    wqeClass: number,
    recordClass: number,
    sramOffset: number,
    wakeReceiver: (cycle: number) => void,
  ) {
    this.#core = core;
    this.#wakeReceiver = wakeReceiver;
    this.#srqBase = core.qps.capacity;
    const queues = core.qps.capacity + core.srqs.capacity;
    const lines = core.config.receiveQueueLineCount;
    this.#lineCount = lines;
    this.#sramOffset = sramOffset;
    this.#work = new Fifo(queues);
    this.#line = new Int32Array(queues).fill(-1);
    this.#phase = new Uint8Array(queues);
    this.#posted = new Int32Array(queues);
    this.#consumed = new Int32Array(queues);
    this.#nextIndex = new Int32Array(queues);
    this.#isAwaited = new Uint8Array(queues);
    this.#isKnownEmpty = new Uint8Array(queues);
    this.#hasFailed = new Uint8Array(queues);
    this.#readsUnderWay = new Uint8Array(queues);
    this.#needsLook = new Uint8Array(queues);
    this.#queueOfLine = new Int32Array(lines).fill(FREE);
    this.#readFor = new Int32Array(lines);
    this.#firstCounter = new Int32Array(lines);
    this.#lineWqes = new Int32Array(lines);
    this.#lineUsed = new Int32Array(lines);
    this.#stamp = new Float64Array(lines);
    this.#recordRequester = core.dmaRead.addRequester(
      { name: 'receiveRecord', trafficClass: recordClass, fifoDepth: 8, weight: 2 },
      (queue, status, cycle) => this.#recordDone(queue, status, cycle),
    );
    this.#wqeRequester = core.dmaRead.addRequester(
      { name: 'receiveWqeRead', trafficClass: wqeClass, fifoDepth: 8, weight: 2 },
      (line, status, cycle) => this.#wqesDone(line, status, cycle),
    );
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    const wake = (cycle: number): void => core.domain.wake(this.#stage, cycle);
    core.translator.attach(PORT_RECEIVE_FETCH, wake);
    core.srqcCache.attach(PORT_RECEIVE_FETCH, wake);
    core.dmaRead.onSpace(this.#recordRequester, () => wake(core.domain.cycle + 1));
    core.dmaRead.onSpace(this.#wqeRequester, () => wake(core.domain.cycle + 1));
  }

  /** Number of a QP's receive queue: its own, or its SRQ's; -1 when it has none. */
  queueOf(qp: number): number {
    const { qps, srqs } = this.#core;
    const pair = qps.rows[qp]!;
    const srqn = pair.srqn;
    if (srqn === -1) return pair.hasReceiveQueue === 1 ? qp : -1;
    const srq = srqs.slotOf(srqn);
    return srq === -1 ? -1 : this.#srqBase + srq;
  }

  /** The queue is new: nothing of it is known. */
  open(queue: number): void {
    for (const counters of [this.#posted, this.#consumed, this.#nextIndex]) counters[queue] = 0;
    for (const flags of [this.#phase, this.#isAwaited, this.#isKnownEmpty, this.#hasFailed, this.#needsLook])
      flags[queue] = 0;
    this.#line[queue] = -1;
  }

  /** The queue is gone: its line is free, once a read under way has landed in it. A record under way means nothing. */
  close(queue: number): void {
    const line = this.#line[queue]!;
    if (line !== -1) this.#queueOfLine[line] = this.#phase[queue] === READING_WQES ? ABANDONED : FREE;
    this.#line[queue] = -1;
    this.#phase[queue] = IDLE;
  }

  srqQueue(srq: number): number {
    return this.#srqBase + srq;
  }

  /** WQEs known to be posted and not consumed: what end-to-end credits are granted for. */
  knownAvailable(queue: number): number {
    return (this.#posted[queue]! - this.#consumed[queue]!) & 0xffff;
  }

  postedCounter(queue: number): number {
    return this.#posted[queue]!;
  }

  consumedCounter(queue: number): number {
    return this.#consumed[queue]!;
  }

  /** True while a DMA read for the queue is under way. */
  isBusy(queue: number): boolean {
    return this.#phase[queue] !== IDLE || this.#readsUnderWay[queue]! > 0;
  }

  /** Takes the next WQE. PENDING: the receiver is woken and asks again. EMPTY: memory was looked at, none is posted. */
  take(queue: number, cycle: number): number {
    if (this.#hasFailed[queue] === 1) return TAKE_FAILED;
    const line = this.#line[queue]!;
    if (line !== -1 && this.#lineUsed[line]! < this.#lineWqes[line]!) {
      this.#consume(queue, line, cycle);
      return TAKE_FOUND;
    }
    if (this.#phase[queue] !== IDLE) return TAKE_PENDING;
    if (this.#isKnownEmpty[queue] === 1) {
      this.#isKnownEmpty[queue] = 0;
      return TAKE_EMPTY;
    }
    this.missCount++;
    this.#isAwaited[queue] = 1;
    this.#ask(queue, cycle);
    return TAKE_PENDING;
  }

  /** Looks for WQEs before the first message comes. */
  prefetch(queue: number, cycle: number): void {
    this.#ask(queue, cycle);
  }

  /** Reads the doorbell record afresh (flush of a QP in error); {@link knownAvailable} then tells. */
  refreshPosted(queue: number, cycle: number): void {
    this.#posted[queue] = this.#consumed[queue]!;
    this.#isKnownEmpty[queue] = 0;
    if (this.#line[queue] !== -1) this.#lineWqes[this.#line[queue]!] = 0;
    this.#ask(queue, cycle);
  }

  /** Counts one WQE as consumed without looking at it: a flushed one. Returns its counter. */
  consumeUnseen(queue: number): number {
    const counter = this.#consumed[queue]!;
    this.#consumed[queue] = (counter + 1) & 0xffff;
    return counter;
  }

  /** Called when a queue's limit event has to be sent, with the SRQ slot. */
  onLimit: ((srq: number, cycle: number) => void) | undefined;
  /** Called when a look at memory that {@link refreshPosted} asked for is over. */
  onRefreshed: ((queue: number, cycle: number) => void) | undefined;

  reset(): void {
    this.#work.clear();
    this.#line.fill(-1);
    this.#queueOfLine.fill(FREE);
    this.#phase.fill(IDLE);
    this.#readsUnderWay.fill(0);
  }

  #consume(queue: number, line: number, cycle: number): void {
    const { sramView } = this.#core;
    const stride = this.#strideBytes(queue);
    const offset = this.#lineOffset(line) + this.#lineUsed[line]! * stride;
    this.hitCount++;
    this.#stamp[line] = ++this.#clock;
    if (queue >= this.#srqBase) {
      this.foundCounter = this.#nextIndex[queue]!;
      this.#nextIndex[queue] = srqNextSegment.fields.nextWqeIndex.get(sramView, offset);
      this.foundOffset = offset + srqNextSegment.sizeBytes;
      this.foundBytes = stride - srqNextSegment.sizeBytes;
    } else {
      this.foundCounter = this.#consumed[queue]!;
      this.foundOffset = offset;
      this.foundBytes = stride;
    }
    this.#lineUsed[line] = this.#lineUsed[line]! + 1;
    this.#consumed[queue] = (this.#consumed[queue]! + 1) & 0xffff;
    if (this.#lineUsed[line] === this.#lineWqes[line] && this.knownAvailable(queue) > 0)
      this.#ask(queue, cycle);
    if (queue >= this.#srqBase) this.#checkLimit(queue, cycle);
  }

  /** Fewer WQEs than the limit are known of: software may have posted more since. */
  #checkLimit(queue: number, cycle: number): void {
    const limit = this.#core.srqs.limit[queue - this.#srqBase]!;
    if (limit === 0 || this.knownAvailable(queue) >= limit) return;
    this.#needsLook[queue] = 1;
    this.#ask(queue, cycle);
  }

  /** The record has just been read: fewer WQEs than the limit are posted. */
  #tellOfLimit(queue: number, cycle: number): void {
    const { srqs } = this.#core;
    const srq = queue - this.#srqBase;
    if (srqs.limit[srq] === 0 || this.knownAvailable(queue) >= srqs.limit[srq]!) return;
    srqs.limit[srq] = 0;
    this.onLimit?.(srq, cycle);
  }

  #ask(queue: number, cycle: number): void {
    if (this.#phase[queue] !== IDLE) return;
    this.#phase[queue] = ASKED;
    this.#work.push(queue, cycle + 1);
    this.#core.domain.wake(this.#stage, cycle + 1);
  }

  #run(cycle: number): void {
    const { domain } = this.#core;
    if (this.account.freeCycle > cycle) return domain.wake(this.#stage, this.account.freeCycle);
    if (this.#work.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#work.isEmpty) domain.wake(this.#stage, this.#work.headCycle);
      return;
    }
    const queue = this.#work.head;
    if (this.#phase[queue] !== ASKED && this.#phase[queue] !== RECORD_READ) {
      // The queue was closed while it waited here.
      this.#work.pop();
      this.account.serve(cycle, 1);
      return domain.wake(this.#stage, cycle + 1);
    }
    const stall =
      this.#phase[queue] === ASKED && (this.knownAvailable(queue) === 0 || this.#needsLook[queue] === 1)
        ? this.#readRecord(queue)
        : this.#readWqes(queue, cycle);
    if (stall !== -1) return this.account.stall(cycle, stall);
    this.#work.pop();
    this.account.serve(cycle, 1);
    if (!this.#work.isEmpty) domain.wake(this.#stage, Math.max(cycle + 1, this.#work.headCycle));
  }

  #readRecord(queue: number): number {
    const { dmaRead, qps, srqs } = this.#core;
    if (!dmaRead.canRequest(this.#recordRequester)) return STALL_DMA;
    const address =
      queue < this.#srqBase ? qps.rows[queue]!.doorbellRecord : srqs.doorbellRecord[queue - this.#srqBase]!;
    this.#phase[queue] = READING_RECORD;
    this.#readsUnderWay[queue] = this.#readsUnderWay[queue]! + 1;
    dmaRead.request(this.#recordRequester, address, RECORD_BYTES, this.#recordOffset(queue), queue);
    return -1;
  }

  #recordDone(queue: number, status: number, cycle: number): void {
    const { sramView, domain } = this.#core;
    this.#readsUnderWay[queue] = this.#readsUnderWay[queue]! - 1;
    if (this.#phase[queue] !== READING_RECORD) return;
    if (status !== 0) return this.#end(queue, cycle, 1);
    this.#posted[queue] = receiveRecord.fields.postedCounter.get(sramView, this.#recordOffset(queue));
    if (this.#needsLook[queue] === 1) {
      this.#needsLook[queue] = 0;
      this.#tellOfLimit(queue, cycle);
    }
    if (this.onRefreshed !== undefined) this.onRefreshed(queue, cycle);
    if (this.knownAvailable(queue) === 0) {
      this.#isKnownEmpty[queue] = this.#isAwaited[queue]!;
      return this.#end(queue, cycle, 0);
    }
    this.#phase[queue] = RECORD_READ;
    this.#work.push(queue, cycle + 1);
    domain.wake(this.#stage, cycle + 1);
  }

  #readWqes(queue: number, cycle: number): number {
    const { dmaRead, translator, qps, srqs, srqcCache, config } = this.#core;
    if (!dmaRead.canRequest(this.#wqeRequester)) return STALL_DMA;
    const stride = this.#strideBytes(queue);
    const isShared = queue >= this.#srqBase;
    const srq = queue - this.#srqBase;
    if (isShared && !srqcCache.access(PORT_RECEIVE_FETCH, srq, true)) return STALL_CONTEXT;
    const logCount = isShared ? srqs.logCount[srq]! : qps.rows[queue]!.rqLogCount;
    const index = isShared ? this.#nextIndex[queue]! : this.#consumed[queue]! & ((1 << logCount) - 1);
    const limit = isShared
      ? 1
      : Math.min(config.receivePrefetchCount, this.knownAvailable(queue), (1 << logCount) - index);
    const wqes = Math.max(1, Math.min(limit, Math.floor(LINE_BYTES / stride)));
    const mttOffset = isShared ? srqs.mttOffset[srq]! : qps.rows[queue]!.bufferMttOffset;
    const pageBytes = isShared ? srqs.pageBytes[srq]! : qps.rows[queue]!.bufferPageBytes;
    const byte = (isShared ? srqs.firstByte[srq]! : qps.rows[queue]!.rqOffset) + index * stride;
    const found = translator.translateBuffer(PORT_RECEIVE_FETCH, mttOffset, pageBytes, byte, wqes * stride);
    if (found === PENDING) return STALL_TRANSLATION;
    if (found >= BAD_KEY) {
      this.#end(queue, cycle, 1);
      return -1;
    }
    const line = this.#claim(queue);
    if (line === -1) return STALL_LINES;
    const whole = Math.max(1, Math.floor(translator.contiguousBytes / stride));
    this.#firstCounter[line] = index;
    this.#lineWqes[line] = 0;
    this.#lineUsed[line] = whole;
    this.#phase[queue] = READING_WQES;
    this.#readFor[line] = queue;
    this.#readsUnderWay[queue] = this.#readsUnderWay[queue]! + 1;
    dmaRead.request(
      this.#wqeRequester,
      translator.physicalAddress,
      whole * stride,
      this.#lineOffset(line),
      line,
    );
    return -1;
  }

  #wqesDone(line: number, status: number, cycle: number): void {
    const queue = this.#queueOfLine[line]!;
    const reader = this.#readFor[line]!;
    this.#readsUnderWay[reader] = this.#readsUnderWay[reader]! - 1;
    this.#core.domain.wake(this.#stage, cycle + 1);
    if (queue === ABANDONED) this.#queueOfLine[line] = FREE;
    if (queue < 0 || this.#phase[queue] !== READING_WQES) return;
    this.#lineWqes[line] = this.#lineUsed[line]!;
    this.#lineUsed[line] = 0;
    this.#end(queue, cycle, status === 0 ? 0 : 1);
  }

  #end(queue: number, cycle: number, failed: number): void {
    this.#phase[queue] = IDLE;
    this.#isAwaited[queue] = 0;
    if (failed === 1) this.#hasFailed[queue] = 1;
    this.#wakeReceiver(cycle + 1);
  }

  /** The queue's own line, a free one, or the least recently used that is not being filled; -1 when all are. */
  #claim(queue: number): number {
    let victim = this.#line[queue]!;
    for (let line = 0; victim === -1 && line < this.#lineCount; line++)
      if (this.#queueOfLine[line] === FREE) victim = line;
    if (victim === -1) {
      for (let line = 0; line < this.#lineCount; line++) {
        const holder = this.#queueOfLine[line]!;
        if (holder === ABANDONED || this.#phase[holder] === READING_WQES) continue;
        if (victim === -1 || this.#stamp[line]! < this.#stamp[victim]!) victim = line;
      }
      if (victim === -1) return -1;
      this.evictionCount++;
      this.#line[this.#queueOfLine[victim]!] = -1;
    }
    this.#queueOfLine[victim] = queue;
    this.#line[queue] = victim;
    this.#stamp[victim] = ++this.#clock;
    return victim;
  }

  #strideBytes(queue: number): number {
    const { qps, srqs } = this.#core;
    return queue < this.#srqBase ? qps.rows[queue]!.rqStrideBytes : srqs.strideBytes[queue - this.#srqBase]!;
  }

  #lineOffset(line: number): number {
    return this.#sramOffset + line * LINE_BYTES;
  }

  /** Doorbell records land behind the lines, one place for each of the reads that can be under way. */
  #recordOffset(queue: number): number {
    return this.#sramOffset + this.#lineCount * LINE_BYTES + queue * RECORD_BYTES;
  }
}

/** Bytes of the HCA's memory that the receive-WQE fetch needs. */
export function receiveFetchSramBytes(lines: number, queues: number): number {
  return lines * LINE_BYTES + queues * RECORD_BYTES;
}

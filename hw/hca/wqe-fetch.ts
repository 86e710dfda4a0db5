/**
 * Fetches send WQEs: for each QP that asks, translates the place of its next WQE and reads a few WQEs from there by
 * DMA into a line of the WQE cache.
 *
 *   requester ──ask──> fifo of QPs ──> translate ──> DMA read ──> scan owner bits ──> scheduler
 *
 * A read never passes the end of the ring. What lies behind the valid WQEs is read and thrown away, as a
 * prefetcher does: the doorbell does not say how many WQEs there are. So a read that fails may be of no WQE: the next one
 * alone is read again, and only if that fails, too, the queue is unusable.
 */
import { QpState } from '../../abi/qpc.ts';
import { BlockAccount, Fifo } from '../../sim/index.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import * as translatorConstants from './translator.ts';
import type { WqeLines } from './wqe-lines.ts';
import * as wqeLines from './wqe-lines.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { PORT_WQE_FETCH } = coreConstants;
const { BAD_KEY, PENDING } = translatorConstants;
const { WQE_LINE_BYTES } = wqeLines;

const STALL_TRANSLATION = 0;
const STALL_DMA = 1;
const STALL_LINES = 2;

export interface WqeFetchListener {
  /** The QP's line holds what memory held; it may hold no valid WQE. */
  wqesFetched(qp: number, cycle: number): void;
  /** The WQEs could not be read: the queue is unusable. */
  wqeFetchFailed(qp: number, cycle: number): void;
}

export class WqeFetch {
  readonly account = new BlockAccount('wqeFetch', ['translation', 'dma', 'lines']);
  readonly #core: HcaCore;
  readonly #lines: WqeLines;
  readonly #listener: WqeFetchListener;
  readonly #asked: Fifo;
  readonly #requester: number;
  readonly #stage: number;
  readonly #blocksInLine: Int32Array;
  readonly #firstFetched: Int32Array;
  readonly #fetchBegun: Float64Array;
  /** Whether a doorbell had been rung when the fetch began; and QPs whose next fetch is of one WQE. */
  readonly #hadDoorbell: Uint8Array;
  readonly #isCareful: Uint8Array;
  #outstanding = 0;

  constructor(core: HcaCore, lines: WqeLines, trafficClass: number, listener: WqeFetchListener) {
    this.#core = core;
    this.#lines = lines;
    this.#listener = listener;
    this.#asked = new Fifo(core.qps.capacity);
    this.#blocksInLine = new Int32Array(lines.count);
    this.#firstFetched = new Int32Array(lines.count);
    this.#fetchBegun = new Float64Array(lines.count);
    this.#hadDoorbell = new Uint8Array(lines.count);
    this.#isCareful = new Uint8Array(core.qps.capacity);
    const fifoDepth = core.config.wqeFetchOutstanding;
    this.#requester = core.dmaRead.addRequester(
      { name: 'wqeRead', trafficClass, fifoDepth, weight: 4 },
      (line, status, cycle) => this.#readDone(line, status, cycle),
    );
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    core.translator.attach(PORT_WQE_FETCH, (cycle) => core.domain.wake(this.#stage, cycle));
    core.dmaRead.onSpace(this.#requester, () => core.domain.wake(this.#stage, core.domain.cycle + 1));
  }

  /** The requester wants WQEs of `qp` that are not on chip. At most one fetch per QP is under way. */
  ask(qp: number, cycle: number): void {
    const pair = this.#core.qps.rows[qp]!;
    if (pair.isFetching === 1) return;
    pair.isFetching = 1;
    pair.inPipelineCount++;
    this.#lines.missCount++;
    this.#asked.push(qp, cycle + 1);
    this.#core.domain.wake(this.#stage, cycle + 1);
  }

  /** The requester has looked at the QP's line, which may now be given up. */
  release(qp: number, cycle: number): void {
    const line = this.#core.qps.rows[qp]!.wqeLine;
    if (line === -1) return;
    const held = this.#lines.rows[line]!;
    if (held.isLocked === 0) return;
    held.isLocked = 0;
    this.#core.domain.wake(this.#stage, cycle + 1);
  }

  reset(): void {
    this.#asked.clear();
    this.#outstanding = 0;
    this.#lines.reset();
  }

  #run(cycle: number): void {
    const { domain } = this.#core;
    if (this.account.freeCycle > cycle) return domain.wake(this.#stage, this.account.freeCycle);
    if (this.#asked.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#asked.isEmpty) domain.wake(this.#stage, this.#asked.headCycle);
      return;
    }
    if (this.#fetch(this.#asked.head, cycle)) {
      this.#asked.pop();
      this.account.serve(cycle, 1);
      if (!this.#asked.isEmpty) domain.wake(this.#stage, Math.max(cycle + 1, this.#asked.headCycle));
    }
  }

  /** Begins one fetch; false when it has to wait. */
  #fetch(qp: number, cycle: number): boolean {
    const { qps, translator, dmaRead, config } = this.#core;
    const pair = qps.rows[qp]!;
    if (pair.state === QpState.RST) {
      // Destroyed while it waited here.
      this.#finish(qp);
      return true;
    }
    if (this.#outstanding >= config.wqeFetchOutstanding || !dmaRead.canRequest(this.#requester)) {
      this.account.stall(cycle, STALL_DMA);
      return false;
    }
    const stride = pair.sqStrideBytes;
    const logCount = pair.sqLogCount;
    const own = pair.wqeLine;
    const takenPlaces = own === -1 ? 0 : this.#lines.rows[own]!.validCount;
    const first = takenPlaces === 0 ? pair.sqCounter : this.#lines.endCounter(own);
    const index = first & ((1 << logCount) - 1);
    const places = WQE_LINE_BYTES / stride;
    const blocks = Math.min(
      this.#isCareful[qp] === 1 ? 1 : config.wqePrefetchCount,
      (1 << logCount) - index,
      places - (first & (places - 1)),
      places - takenPlaces,
    );
    const wanted = blocks * stride;
    const byte = pair.sqOffset + index * stride;
    const found = translator.translateBuffer(
      PORT_WQE_FETCH,
      pair.bufferMttOffset,
      pair.bufferPageBytes,
      byte,
      wanted,
    );
    if (found === PENDING) {
      this.account.stall(cycle, STALL_TRANSLATION);
      return false;
    }
    if (found >= BAD_KEY) {
      this.#finish(qp);
      this.#listener.wqeFetchFailed(qp, cycle);
      return true;
    }
    const line = this.#lines.claim(qp, own, this.#evict);
    if (line === -1) {
      this.account.stall(cycle, STALL_LINES);
      return false;
    }
    const whole = Math.floor(translator.contiguousBytes / stride) * stride;
    pair.wqeLine = line;
    this.#hadDoorbell[line] = pair.hasDoorbell;
    pair.hasDoorbell = 0;
    this.#lines.rows[line]!.isFetching = 1;
    this.#fetchBegun[line] = cycle;
    this.#firstFetched[line] = first;
    this.#blocksInLine[line] = whole / stride;
    this.#outstanding++;
    const target = this.#lines.placeOf(line, first, stride);
    dmaRead.request(this.#requester, translator.physicalAddress, whole, target, line);
    return true;
  }

  /** A QP that loses its line looks again into memory when it is next served. */
  readonly #evict = (qp: number): void => {
    const pair = this.#core.qps.rows[qp]!;
    const line = pair.wqeLine;
    const held = this.#lines.rows[line]!;
    if (held.validCount > 0 || held.mayHaveMore === 1) pair.hasDoorbell = 1;
    pair.wqeLine = -1;
  };

  #readDone(line: number, status: number, cycle: number): void {
    const { qps, sramView, domain } = this.#core;
    const held = this.#lines.rows[line]!;
    const qp = held.qp;
    held.isFetching = 0;
    this.#outstanding--;
    domain.wake(this.#stage, cycle + 1);
    if (qp === -1) return;
    this.#finish(qp);
    // The QP was destroyed meanwhile: the line is nobody's.
    const pair = qps.rows[qp]!;
    if (pair.wqeLine !== line) return this.#lines.free(line);
    const count = this.#blocksInLine[line]!;
    if (status !== 0) return this.#readFailed(qp, line, count, cycle);
    this.#isCareful[qp] = 0;
    held.isLocked = 1;
    const first = this.#firstFetched[line]!;
    for (let block = 0; block < count; block++)
      this.#lines.setTimes(line, first + block, this.#fetchBegun[line]!, cycle);
    this.#lines.scan(line, sramView, first, count, pair.sqStrideBytes, pair.sqLogCount);
    this.#listener.wqesFetched(qp, cycle);
  }

  /** What could not be read may be no WQE at all: the next one alone is read again, unless it alone was, and was posted. */
  #readFailed(qp: number, line: number, count: number, cycle: number): void {
    const { qps } = this.#core;
    const isPosted = count === 1 && this.#hadDoorbell[line] === 1;
    if (this.#isCareful[qp] === 1 || isPosted) {
      this.#isCareful[qp] = 0;
      return this.#listener.wqeFetchFailed(qp, cycle);
    }
    this.#isCareful[qp] = 1;
    qps.rows[qp]!.hasDoorbell = 1;
    this.ask(qp, cycle);
  }

  #finish(qp: number): void {
    const pair = this.#core.qps.rows[qp]!;
    pair.isFetching = 0;
    pair.inPipelineCount--;
  }
}

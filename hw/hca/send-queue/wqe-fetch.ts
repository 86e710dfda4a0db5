/**
 * Fetches send WQEs: for each requesting QP, translates the address of its next WQE and reads a few WQEs from there by
 * DMA into a line of the WQE cache.
 *
 *   requester ──ask──> fifo of QPs ──> translate ──> DMA read ──> scan owner bits ──> scheduler
 *
 * A read never passes the end of the ring. Bytes after the valid WQEs are read and discarded, as by a prefetcher,
 * because the doorbell does not tell the number of WQEs. A failed read may therefore concern no WQE at all: the next
 * WQE alone is read again, and the queue is unusable only if that read fails, too.
 */

import { QpState } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, Fifo, stallReasons } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { CostAttribution } from '../costs/index.ts';
import type { SendFormat } from '../host-interface/index.ts';
import { BAD_KEY, type DmaReads, PENDING, PORT_WQE_FETCH, type Translator } from '../memory/index.ts';
import {
  ETHERNET_OPCODE_BASE,
  enlarged,
  noLine,
  type QpSlot,
  type QpTable,
  type QueuePair,
  WQE_LINE_BYTES,
  type WqeLine,
} from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { WqeLines } from './wqe-lines.ts';

const { RST } = QpState;

const stalls = stallReasons('translation', 'dma', 'lines');
const { translation: STALL_TRANSLATION, dma: STALL_DMA, lines: STALL_LINES } = stalls;

export interface WqeFetchPorts {
  readonly arrivals: {
    /** The QP's line holds the bytes read from memory; they may contain no valid WQE. */
    wqesFetched(pair: QueuePair, cycle: Cycles): void;
  };
  readonly errors: {
    /** The WQEs could not be read: the queue is unusable. */
    queueFailed(qp: QpSlot, cycle: Cycles): void;
  };
}

/** The last fetch into a line. */
class LineFetch {
  /** Counter of its first WQE, and how many blocks of the ring it reads. */
  first = 0;
  blocks = 0;
  begunCycle = 0;
  /** Whether a doorbell had been rung when it began. */
  hadDoorbell = 0;
}

/** Parts of the device that {@link WqeFetch} uses. */
export interface WqeFetchSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'wqeFetchOutstanding' | 'wqePrefetchCount'>;
  readonly dmaRead: DmaReads;
  readonly qps: QpTable;
  readonly sramView: DataView;
  readonly translator: Translator;
  readonly lines: WqeLines;
  readonly sends: SendFormat;
  readonly costs: CostAttribution | undefined;
}

export class WqeFetch {
  readonly account = new BlockAccount('wqeFetch', stalls);
  readonly #domain: ClockDomain;
  readonly #config: WqeFetchSetup['config'];
  readonly #dmaRead: DmaReads;
  readonly #qps: QpTable;
  readonly #sramView: DataView;
  readonly #translator: Translator;
  readonly #sends: SendFormat;
  readonly #costs: CostAttribution | undefined;
  readonly #lines: WqeLines;
  #ports!: WqeFetchPorts;
  /**
   * QPs that requested a fetch, each once: a QP does not request again while fetching, and leaves the fifo before it is
   * notified of the end.
   */
  readonly #asked: Fifo;
  readonly #requester: number;
  readonly #stage: number;
  /** Fetches by line. */
  readonly #fetches: readonly LineFetch[];
  /** QPs whose next fetch is of one WQE. */
  #isCareful = new Uint8Array(0);
  #outstanding = 0;

  constructor(setup: WqeFetchSetup) {
    const { lines } = setup;
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#dmaRead = setup.dmaRead;
    this.#qps = setup.qps;
    this.#sramView = setup.sramView;
    this.#translator = setup.translator;
    this.#sends = setup.sends;
    this.#costs = setup.costs;
    this.#lines = lines;
    this.#asked = new Fifo({
      name: 'QPs that want WQEs',
      capacity: setup.qps.slotCount,
      whenFull: 'never: each QP stands here at most once',
    });
    this.#fetches = lines.rows.map(() => new LineFetch());
    const fifoDepth = setup.config.wqeFetchOutstanding;
    this.#requester = setup.dmaRead.addRequester(
      { name: 'wqeRead', trafficClass: TrafficClass.wqeRead, fifoDepth, weight: 4, placesEarly: true },
      {
        done: (line, status, cycle) => this.#readDone(line, status, cycle),
        space: () => this.wake(setup.domain.cycle + 1),
      },
    );
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: WqeFetchPorts): void {
    this.#ports = ports;
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    this.#asked.enlarge(slotCount);
    this.#isCareful = enlarged(this.#isCareful, slotCount);
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** The requester wants WQEs of `pair` that are not on chip. At most one fetch per QP is under way. */
  ask(pair: QueuePair, cycle: Cycles): void {
    if (pair.isFetching === 1) return;
    pair.isFetching = 1;
    pair.inPipelineCount++;
    this.#asked.push(pair.slot, cycle + 1);
    this.wake(cycle + 1);
  }

  /** The requester has read the QP's line, which may now be evicted. */
  release(pair: QueuePair, cycle: Cycles): void {
    const line = pair.wqeLine;
    if (line.isLocked === 0) return;
    line.isLocked = 0;
    this.#retry(cycle);
  }

  /** Fetches requested and in flight. */
  get heldCount(): number {
    return this.#asked.count + this.#outstanding;
  }

  reset(): void {
    this.#asked.clear();
    this.#outstanding = 0;
    this.#lines.reset();
  }

  get fifos(): readonly Fifo[] {
    return [this.#asked];
  }

  inspect(): BlockState {
    return { asked: this.#asked.values, fetches: this.#outstanding, lines: this.#lines.heldCount };
  }

  /** A line or DMA room became free: the QPs that wait are tried again. */
  #retry(cycle: Cycles): void {
    if (!this.#asked.isEmpty) this.#domain.wake(this.#stage, cycle + 1);
  }

  #run(cycle: Cycles): void {
    const domain = this.#domain;
    if (this.account.freeCycle > cycle) return domain.wake(this.#stage, this.account.freeCycle);
    if (this.#asked.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#asked.isEmpty) domain.wake(this.#stage, this.#asked.headCycle);
      return;
    }
    if (this.#fetch(this.#qps.rows[this.#asked.head]!, cycle)) {
      this.account.serve(cycle, 1);
      if (!this.#asked.isEmpty) domain.wake(this.#stage, Math.max(cycle + 1, this.#asked.headCycle));
    }
  }

  /** Begins the fetch of the QP that requested first, and removes it from the fifo; returns false if it has to wait. */
  #fetch(pair: QueuePair, cycle: Cycles): boolean {
    if (pair.state === RST) {
      // The QP was destroyed while it waited here.
      this.#asked.pop();
      this.#finish(pair);
      return true;
    }
    if (this.#outstanding >= this.#config.wqeFetchOutstanding || !this.#dmaRead.canRequest(this.#requester)) {
      this.account.stall(cycle, STALL_DMA);
      return false;
    }
    const stride = pair.sqStrideBytes;
    const own = pair.wqeLine;
    const first = own.validCount === 0 ? pair.sqCounter + own.partBlocks : own.endCounter + own.partBlocks;
    const index = first & ((1 << pair.sqLogCount) - 1);
    this.#costs?.worksOnRequest(PORT_WQE_FETCH, pair, first & 0xffff);
    const byte = pair.sqOffset + index * stride;
    const wanted = this.#blocksToFetch(pair, first, index) * stride;
    const found = this.#translator.translateBuffer(
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
      this.#asked.pop();
      this.#finish(pair);
      this.#ports.errors.queueFailed(pair.slot, cycle);
      return true;
    }
    const line = this.#lines.claim(pair.slot, own);
    if (line === noLine) {
      this.account.stall(cycle, STALL_LINES);
      return false;
    }
    this.#asked.pop();
    this.#begin(pair, line, first, cycle);
    return true;
  }

  /** Returns the WQEs that one read fetches, starting with the one with counter `first` at `index` of the ring. */
  #blocksToFetch(pair: QueuePair, first: number, index: number): number {
    const places = WQE_LINE_BYTES / pair.sqStrideBytes;
    return Math.min(
      this.#isCareful[pair.slot] === 1 ? 1 : this.#config.wqePrefetchCount,
      (1 << pair.sqLogCount) - index,
      places - (first & (places - 1)),
      places - pair.wqeLine.validCount - pair.wqeLine.partBlocks,
    );
  }

  /** Reads from the address just translated into `line`. */
  #begin(pair: QueuePair, line: WqeLine, first: number, cycle: Cycles): void {
    const translator = this.#translator;
    const stride = pair.sqStrideBytes;
    const blocks = Math.floor(translator.contiguousBytes / stride);
    pair.wqeLine = line;
    line.isFetching = 1;
    const fetch = this.#fetches[line.number]!;
    fetch.hadDoorbell = pair.hasDoorbell;
    fetch.begunCycle = cycle;
    fetch.first = first;
    fetch.blocks = blocks;
    pair.hasDoorbell = 0;
    this.#outstanding++;
    const target = line.placeOf(first, stride);
    this.#dmaRead.request(this.#requester, translator.physicalAddress, blocks * stride, target, line.number);
    translator.port(PORT_WQE_FETCH).usedBuffer();
    this.#lines.readCount++;
  }

  #readDone(number: number, status: number, cycle: Cycles): void {
    const line = this.#lines.rows[number]!;
    const { qp } = line;
    line.isFetching = 0;
    this.#outstanding--;
    this.#retry(cycle);
    if (qp === -1) return;
    const pair = this.#qps.rows[qp]!;
    this.#finish(pair);
    // The QP was destroyed meanwhile: the line is free.
    if (pair.wqeLine !== line) return line.free();
    const { begunCycle, first, blocks, hadDoorbell } = this.#fetches[number]!;
    if (status !== 0) return this.#readFailed(pair, blocks === 1 && hadDoorbell === 1, cycle);
    this.#isCareful[qp] = 0;
    line.isLocked = 1;
    for (let block = 0; block < blocks; block++) line.setTimes(first + block, begunCycle, cycle);
    if (pair.opcodeBase === ETHERNET_OPCODE_BASE)
      line.scanBlocks(this.#sends, this.#sramView, first, blocks, pair.sqStrideBytes, pair.sqLogCount);
    else line.scan(this.#sends, this.#sramView, first, blocks, pair.sqStrideBytes, pair.sqLogCount);
    this.#ports.arrivals.wqesFetched(pair, cycle);
  }

  /**
   * Handles a failed read, which may concern no WQE at all: reads the next WQE alone, unless this read was of it alone.
   * @param isPosted it alone was, and was rung for
   */
  #readFailed(pair: QueuePair, isPosted: boolean, cycle: Cycles): void {
    const qp = pair.slot;
    if (this.#isCareful[qp] === 1 || isPosted) {
      this.#isCareful[qp] = 0;
      return this.#ports.errors.queueFailed(qp, cycle);
    }
    this.#isCareful[qp] = 1;
    pair.hasDoorbell = 1;
    this.ask(pair, cycle);
  }

  #finish(pair: QueuePair): void {
    pair.isFetching = 0;
    pair.inPipelineCount--;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#asked.rebase(cycles);
    for (const fetch of this.#fetches) fetch.begunCycle -= cycles;
    for (const line of this.#lines.rows) line.rebase(cycles);
  }
}

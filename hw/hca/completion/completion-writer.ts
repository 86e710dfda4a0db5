/**
 * The completion writer: writes CQEs into completion queues by DMA, in the order in which they were posted.
 *
 *   receiver, acknowledgements, flush ──> fifo ──> CQ context ──> room? ──> translate ──> staging, DMA write ──> notifier ──> EQ
 *
 * A CQE leaves after all payload requested before it, because the write engine keeps one order. The consumer counter is
 * read from the doorbell record only when the queue looks full; when it is full, the CQ goes to overflow with an
 * asynchronous event, and its QPs to error (interface sheet 6.6, 6.10).
 */

import { CqErrorSyndrome, QueueStatus } from '../../../abi/index.ts';
import { type Cycles, mask24, NEVER } from '../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  NOT_STALLED,
  stallReasons,
} from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { CostAttribution } from '../costs/index.ts';
import type { CompletionFormat } from '../host-interface/index.ts';
import {
  BAD_KEY,
  type ContextCache,
  type ContextUser,
  type DmaReads,
  PENDING,
  PORT_COMPLETION,
  PORT_RECEIVER,
  type Translator,
} from '../memory/index.ts';
import {
  type Cqn,
  type CqSlot,
  type CqTable,
  type QpSlot,
  type QpTable,
  type QueuePair,
  XRC_SERVICE,
} from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { OperationLedger } from '../statistics/index.ts';
import {
  type CompletionEvents,
  CompletionNotifier,
  type CompletionNotifierSetup,
  forgetConsumed,
} from './cq-arm.ts';
import { CqeStaging, type CqeStagingSetup, RESIZE_RECORD } from './cqe-staging.ts';
import { PostedCompletion } from './posted-completion.ts';

const stalls = stallReasons('context', 'translation', 'dma', 'consumer', 'events');
const {
  context: STALL_CONTEXT,
  translation: STALL_TRANSLATION,
  dma: STALL_DMA,
  consumer: STALL_CONSUMER,
  events: STALL_EVENTS,
} = stalls;

export interface CompletionWriterPorts {
  readonly ends: {
    /** The CQE of a send record was handed to the DMA engine's last TLP at `cycle`. */
    cqeIssued(record: number, cycle: Cycles): void;
    /** The CQE of a send record is discarded because its CQ no longer exists. */
    cqeDiscarded(record: number, cycle: Cycles): void;
    /** Room became free. */
    completionSpace(cycle: Cycles): void;
  };
  readonly errors: {
    /** Notes that the CQ accepts no more CQEs: its QPs go to error. */
    cqFailed(cq: CqSlot, syndrome: number, cycle: Cycles): void;
  };
  readonly eventQueues: CompletionEvents;
}

/** A resize by MODIFY_CQ: the position of the old buffer, whose last entry announces the new one. */
interface Resize {
  readonly cq: CqSlot;
  readonly logEntries: number;
  readonly pageBytes: number;
  readonly mttOffset: number;
}

/** Parts of the device that {@link CompletionWriter} uses. */
export interface CompletionWriterSetup extends CqeStagingSetup, CompletionNotifierSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'completionFifoDepth' | 'completionCycles'>;
  readonly dmaRead: DmaReads;
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly sramView: DataView;
  readonly format: CompletionFormat;
  readonly translator: Translator;
  readonly cqcCache: ContextCache<ContextUser<'cqc'>>;
  readonly operations: OperationLedger;
  readonly costs: CostAttribution | undefined;
  allocateSram(lengthBytes: number): number;
}

export class CompletionWriter {
  readonly account = new BlockAccount('completionWriter', stalls);
  discardedCount = 0;
  readonly notifier: CompletionNotifier;
  readonly #domain: ClockDomain;
  readonly #config: CompletionWriterSetup['config'];
  readonly #dmaRead: DmaReads;
  readonly #qps: QpTable;
  readonly #cqs: CqTable;
  readonly #sramView: DataView;
  readonly #format: CompletionFormat;
  readonly #translator: Translator;
  readonly #cqcCache: ContextCache<ContextUser<'cqc'>>;
  readonly #operations: OperationLedger;
  readonly #costs: CostAttribution | undefined;
  readonly #staging: CqeStaging;
  readonly #stage: number;
  readonly #readRequester: number;
  #ports!: CompletionWriterPorts;

  /** The fifo. */
  readonly #posted: readonly PostedCompletion[];
  readonly #capacity: number;
  #head = 0;
  #count = 0;
  readonly #recordSram: number;
  #isReadingConsumer = false;
  /** CQ whose doorbell record has just been read, so that it is read once per CQE at most. */
  #consumerReadOf = -1;
  /** A resize under way; MODIFY_CQ is one command at a time. */
  #resize: Resize | undefined;
  #isResizing = false;
  /** CQ whose doorbell record is being read. */
  #readingConsumerOf = -1;

  constructor(setup: CompletionWriterSetup) {
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#dmaRead = setup.dmaRead;
    this.#qps = setup.qps;
    this.#cqs = setup.cqs;
    this.#sramView = setup.sramView;
    this.#format = setup.format;
    this.#translator = setup.translator;
    this.#cqcCache = setup.cqcCache;
    this.#operations = setup.operations;
    this.#costs = setup.costs;
    const capacity = setup.config.completionFifoDepth;
    this.#capacity = capacity;
    this.#posted = Array.from({ length: capacity }, () => new PostedCompletion());
    this.#staging = new CqeStaging(setup, this);
    this.#recordSram = setup.allocateSram(setup.format.recordBytes);
    this.#readRequester = setup.dmaRead.addRequester(
      { name: 'cqRecord', trafficClass: TrafficClass.doorbellRecord, fifoDepth: 1, weight: 2 },
      { done: (cq, status, cycle) => this.#consumerRead(cq, status, cycle) },
    );
    this.notifier = new CompletionNotifier(setup, this);
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: CompletionWriterPorts): void {
    this.#ports = ports;
    this.notifier.connect({ eventQueues: ports.eventQueues });
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  get isFull(): boolean {
    return this.#count === this.#capacity;
  }

  /** Completions on their way, events that have fired, a resize, a read of a doorbell record. */
  get heldCount(): number {
    const pending = this.notifier.heldCount + (this.#isResizing ? 1 : 0) + (this.#isReadingConsumer ? 1 : 0);
    return this.#count + pending;
  }

  hasRoom(completions: number): boolean {
    return this.#count + completions <= this.#capacity;
  }

  /**
   * Returns the row of the next completion, for a CQ's number and a QP's slot, which the caller fills in and {@link
   * post}s. It is initialised as a successful empty receive without a send record. The caller has checked {@link
   * isFull}.
   */
  next(cqn: Cqn, qp: QpSlot): PostedCompletion {
    let at = this.#head + this.#count;
    if (at >= this.#capacity) at -= this.#capacity;
    const posted = this.#posted[at]!;
    posted.cq = this.#cqs.slotOf(cqn);
    posted.qp = qp;
    posted.qpn = this.#qps.numberOf[qp]!;
    posted.clear();
    if (this.#costs !== undefined) posted.owner = this.#costs.ownerOf(PORT_RECEIVER);
    return posted;
  }

  /** The next completion, likewise, as that of a QP's receive, which of an XRC target names the SRQ. */
  nextReceive(pair: QueuePair): PostedCompletion {
    const posted = this.next(pair.receiveCqn, pair.slot);
    if (pair.serviceBits === XRC_SERVICE) posted.source = pair.srqn;
    return posted;
  }

  /**
   * Posts the completion that {@link next} returned.
   */
  post({ cq, qp }: PostedCompletion, cycle: Cycles): void {
    this.#count++;
    this.#qps.rows[qp]!.inPipelineCount++;
    if (cq !== -1) this.#cqs.rows[cq]!.inPipelineCount++;
    this.#domain.wake(this.#stage, cycle + 1);
  }

  /** Resizes a CQ (MODIFY_CQ): the last entry of the old buffer announces that the rest is in the new one. */
  postResize(cq: CqSlot, oldLogEntries: number, oldPageBytes: number, oldMttOffset: number): void {
    this.#isResizing = true;
    this.#resize = { cq, logEntries: oldLogEntries, pageBytes: oldPageBytes, mttOffset: oldMttOffset };
    const queue = this.#cqs.rows[cq]!;
    queue.inPipelineCount++;
    this.#domain.wake(this.#stage, this.#domain.cycle + 1);
  }

  /** True from {@link postResize} until the last entry of the old buffer has left. */
  get isResizing(): boolean {
    return this.#isResizing;
  }

  /** True while the CQ has CQEs on their way, or an event to be posted, or its doorbell record is being read. */
  isBusy(cq: CqSlot): boolean {
    const isRead = this.#isReadingConsumer && this.#readingConsumerOf === cq;
    return this.#cqs.rows[cq]!.inPipelineCount > 0 || isRead || this.notifier.isBusy(cq);
  }

  /** True while the completion of a receive that an XRC target has taken from the SRQ of this number waits here. */
  holdsReceiveOf(srqn: number): boolean {
    const { rows } = this.#qps;
    for (let count = 0; count < this.#count; count++) {
      const { isSend, source, qp } = this.#posted[(this.#head + count) % this.#capacity]!;
      if (!isSend && source === srqn && rows[qp]!.serviceBits === XRC_SERVICE) return true;
    }
    return false;
  }

  /** See CqeWriter. */
  cqeIssued(cq: CqSlot, record: number, cycle: Cycles): void {
    this.#cqs.rows[cq]!.inPipelineCount--;
    if (record >= 0) this.#ports.ends.cqeIssued(record, cycle);
    else if (record === RESIZE_RECORD) this.#isResizing = false;
  }

  reset(): void {
    this.#head = 0;
    this.#count = 0;
    this.notifier.reset();
    this.#isReadingConsumer = false;
    this.#resize = undefined;
    this.#isResizing = false;
  }

  inspect(): BlockState {
    return {
      completions: this.#count,
      isResizing: this.#isResizing,
      isReadingConsumer: this.#isReadingConsumer,
      events: this.notifier.heldCount,
    };
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.#domain.wake(this.#stage, this.account.freeCycle);
    if (!this.#notify(cycle)) return this.account.stall(cycle, STALL_EVENTS);
    // All CQEs issued so far went into the old buffer; all that wait here will go into the new one.
    if (this.#resize !== undefined) {
      const stall = this.#writeResize(this.#resize);
      if (stall !== NOT_STALLED) return this.account.stall(cycle, stall);
    }
    if (this.#count === 0) return this.account.rest(cycle);
    const stall = this.#write(this.#posted[this.#head]!, cycle);
    if (stall !== NOT_STALLED) return this.account.stall(cycle, stall);
    this.#pop(cycle);
    this.account.serve(cycle, this.#config.completionCycles);
    if (this.#count > 0 || this.notifier.hasFired || this.#resize !== undefined)
      this.#domain.wake(this.#stage, cycle + this.#config.completionCycles);
  }

  /**
   * Posts events first: an event that has fired is posted before the next CQE may raise another. Returns false if there
   * is no room.
   */
  #notify(cycle: Cycles): boolean {
    const { notifier } = this;
    if (!notifier.post(cycle)) return false;
    if (notifier.dueCycle <= cycle) {
      notifier.fireDue(cycle);
      if (!notifier.post(cycle)) return false;
    }
    // An arm request that arrived while the stage was already awake is due later than that.
    const { dueCycle } = notifier;
    if (dueCycle < NEVER) this.#domain.wake(this.#stage, Math.max(cycle + 1, dueCycle));
    return true;
  }

  /** Writes a completion. Returns NOT_STALLED, or why it has to wait. */
  #write(posted: PostedCompletion, cycle: Cycles): number {
    const cqs = this.#cqs;
    const translator = this.#translator;
    const { cq } = posted;
    if (cq === -1 || cqs.rows[cq]!.status !== QueueStatus.OK) {
      this.#discard(posted, cycle);
      return NOT_STALLED;
    }
    const costs = this.#costs;
    if (costs !== undefined) costs.worksFor(PORT_COMPLETION, ownerOf(costs, posted));
    if (!this.#cqcCache.access(PORT_COMPLETION, cq, true)) return STALL_CONTEXT;
    if (!this.#hasRoom(cq)) {
      if (this.#consumerReadOf !== cq) {
        this.#readConsumer(cq);
        return STALL_CONSUMER;
      }
      this.#consumerReadOf = -1;
      this.#fail(cq, CqErrorSyndrome.OVERRUN, cycle);
      this.#discard(posted, cycle);
      return NOT_STALLED;
    }
    const queue = cqs.rows[cq]!;
    const { entryBytes } = this.#format;
    const entry = queue.producer & ((1 << queue.logEntries) - 1);
    const byte = queue.firstByte + entry * entryBytes;
    const found = translator.translateBuffer(
      PORT_COMPLETION,
      queue.mttOffset,
      queue.pageBytes,
      byte,
      entryBytes,
    );
    if (found === PENDING) return STALL_TRANSLATION;
    if (found >= BAD_KEY) {
      this.#fail(cq, CqErrorSyndrome.ACCESS, cycle);
      this.#discard(posted, cycle);
      return NOT_STALLED;
    }
    if (!this.#staging.hasRoom) return STALL_DMA;
    this.#consumerReadOf = -1;
    this.#staging.issue(posted, cq, queue, translator.physicalAddress);
    translator.port(PORT_COMPLETION).usedBuffer();
    this.#cqcCache.port(PORT_COMPLETION).used();
    queue.producer = (queue.producer + 1) & mask24;
    costs?.completed(PORT_COMPLETION, cqs.numberOf[cq]!);
    this.notifier.issued(cq, posted.isSolicited === 1 || posted.syndrome !== 0, cycle);
    return NOT_STALLED;
  }

  #hasRoom(cq: CqSlot): boolean {
    const queue = this.#cqs.rows[cq]!;
    if (queue.ignoreOverrun === 1) return true;
    return ((queue.producer - queue.consumer) & mask24) < 1 << queue.logEntries;
  }

  #readConsumer(cq: CqSlot): void {
    if (this.#isReadingConsumer || !this.#dmaRead.canRequest(this.#readRequester)) return;
    this.#isReadingConsumer = true;
    this.#readingConsumerOf = cq;
    this.#dmaRead.request(
      this.#readRequester,
      this.#cqs.rows[cq]!.doorbellRecord,
      this.#format.recordBytes,
      this.#recordSram,
      cq,
    );
  }

  #consumerRead(cq: CqSlot, status: number, cycle: Cycles): void {
    if (status === 0) {
      const queue = this.#cqs.rows[cq]!;
      queue.consumer = this.#format.consumerAt(this.#sramView, this.#recordSram);
      forgetConsumed(queue);
    }
    this.#isReadingConsumer = false;
    this.#consumerReadOf = cq;
    this.#domain.wake(this.#stage, cycle + 1);
  }

  /**
   * Writes the resize CQE into the old buffer; it occupies one place of the producer counter. Returns NOT_STALLED or
   * the stall.
   */
  #writeResize(resize: Resize): number {
    const { cq, logEntries, pageBytes, mttOffset } = resize;
    const queue = this.#cqs.rows[cq]!;
    const { entryBytes } = this.#format;
    const byte = (queue.producer & ((1 << logEntries) - 1)) * entryBytes;
    const found = this.#translator.translateBuffer(PORT_COMPLETION, mttOffset, pageBytes, byte, entryBytes);
    if (found === PENDING) return STALL_TRANSLATION;
    if (!this.#staging.hasRoom) return STALL_DMA;
    this.#resize = undefined;
    if (found >= BAD_KEY) {
      this.#isResizing = false;
      queue.inPipelineCount--;
      return NOT_STALLED;
    }
    this.#staging.issueResize(cq, queue, logEntries, this.#translator.physicalAddress);
    queue.producer = (queue.producer + 1) & mask24;
    return NOT_STALLED;
  }

  #fail(cq: CqSlot, syndrome: number, cycle: Cycles): void {
    const isOverrun = syndrome === CqErrorSyndrome.OVERRUN;
    this.#cqs.rows[cq]!.status = isOverrun ? QueueStatus.OVERFLOW : QueueStatus.WRITE_FAILURE;
    this.#ports.errors.cqFailed(cq, syndrome, cycle);
  }

  #discard(posted: PostedCompletion, cycle: Cycles): void {
    this.discardedCount++;
    const { cq, qp, opcode } = posted;
    if (cq !== -1) this.#cqs.rows[cq]!.inPipelineCount--;
    if (posted.record !== -1) this.#ports.ends.cqeDiscarded(posted.record, cycle);
    else if (posted.isSend) this.#operations.unstartedDiscarded(this.#operations.operationOf(qp, opcode));
  }

  #pop(cycle: Cycles): void {
    const { qp } = this.#posted[this.#head]!;
    this.#qps.rows[qp]!.inPipelineCount--;
    this.#head = this.#head + 1 === this.#capacity ? 0 : this.#head + 1;
    this.#count--;
    this.#ports.ends.completionSpace(cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.notifier.rebase(cycles);
  }
}

/** Returns the owner that pays for the CQE; for a send it is the request that the CQE names. */
function ownerOf(costs: CostAttribution, { isSend, qpn, wqeCounter, owner }: PostedCompletion): number {
  return isSend ? costs.requestOwner(qpn, wqeCounter) : owner;
}

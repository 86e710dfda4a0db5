/**
 * The completion writer: writes CQEs into completion queues by DMA, in the order in which they were posted, and
 * raises completion events.
 *
 *   receiver, acknowledgements, flush ──> fifo ──> CQ context ──> room? ──> translate ──> DMA write ──> arm check ──> EQ
 *
 * A CQE leaves behind all payload requested before it, because the write engine keeps one order. The consumer
 * counter is read from the doorbell record only when the queue looks full; when it is full, the CQ goes to
 * overflow with an asynchronous event, and its QPs to error (interface sheet 6.6, 6.10).
 */
import { QueueStatus } from '../../abi/cqc.ts';
import * as cqeConstants from '../../abi/cqe.ts';
import { CqeOpcode, cqe, cqeBytes, errorCqe } from '../../abi/cqe.ts';
import { CqArmCommand, cqRecord } from '../../abi/doorbells.ts';
import { CqErrorSyndrome } from '../../abi/eqe.ts';
import { BlockAccount, Fifo } from '../../sim/index.ts';
import * as cqTable from './completion-queue.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import * as translatorConstants from './translator.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { cqeOwnerOffset } = cqeConstants;
const { PORT_COMPLETION } = coreConstants;
const { CQ_ARMED_NEXT, CQ_ARMED_SOLICITED, CQ_NOT_ARMED } = cqTable;
const { BAD_KEY, PENDING } = translatorConstants;

const STALL_CONTEXT = 0;
const STALL_TRANSLATION = 1;
const STALL_DMA = 2;
const STALL_CONSUMER = 3;
const STALL_EVENTS = 4;

const COUNTER_MASK = 0xffffff;
const HALF_COUNTER = 0x800000;

/** Whether one 24-bit counter is ahead of another, by less than half of its range. */
function isBeyond(counter: number, other: number): boolean {
  const ahead = (counter - other) & COUNTER_MASK;
  return ahead > 0 && ahead < HALF_COUNTER;
}
/** More staging slots than the fifo has places: one CQE is being written while the fifo is full. */
const CQE_FIFO_DEPTH = 16;
const CQE_STAGING_SLOTS = 32;
const RECORD_BYTES = 8;

export interface CompletionListener {
  /** The CQE of a send record (or -1) was handed to the DMA engine's last TLP at `cycle`. */
  cqeIssued(record: number, cycle: number): void;
  /** There is no CQ to take the CQE of a send record: nobody will know of its end. */
  cqeDiscarded(record: number, cycle: number): void;
  /** The CQ cannot take CQEs any more: its QPs go to error. */
  cqFailed(cq: number, syndrome: number, cycle: number): void;
  /** Room became free. */
  completionSpace(cycle: number): void;
}

export interface CompletionEvents {
  canPost(): boolean;
  postCompletion(eqn: number, cqn: number, cycle: number): void;
  onSpace(listener: (cycle: number) => void): void;
}

export class CompletionWriter {
  readonly account = new BlockAccount('completionWriter', [
    'context',
    'translation',
    'dma',
    'consumer',
    'events',
  ]);
  moderatedEventCount = 0;
  discardedCount = 0;
  readonly #core: HcaCore;
  readonly #events: CompletionEvents;
  readonly #stage: number;
  readonly #writeRequester: number;
  readonly #readRequester: number;
  readonly #timerHandler: number;
  #listener: CompletionListener | undefined;

  readonly #capacity: number;
  readonly #cqn: Int32Array;
  readonly #qp: Int32Array;
  readonly #qpn: Int32Array;
  readonly #record: Int32Array;
  readonly #wqeCounter: Int32Array;
  readonly #opcode: Uint8Array;
  readonly #isSend: Uint8Array;
  readonly #syndrome: Uint8Array;
  readonly #isSolicited: Uint8Array;
  readonly #byteCount: Float64Array;
  readonly #immediate: Int32Array;
  readonly #sourceLid: Int32Array;
  /** Of a datagram: the word with the source QPN, and the service level. */
  readonly #source: Int32Array;
  readonly #serviceLevel: Uint8Array;
  #head = 0;
  #count = 0;
  /** Staging area of CQEs on their way, and of doorbell records read. */
  readonly #cqeSram: number;
  readonly #recordSram: number;
  readonly #cqeSlots: number;
  #cqeSlot = 0;
  readonly #recordOfSlot: Int32Array;
  readonly #cqOfSlot: Int32Array;
  #isReadingConsumer = false;
  /** CQ whose doorbell record has just been read, so that it is read once per CQE at most. */
  #consumerReadOf = -1;
  /** A completion event that still has to be posted. */
  #eventFor = -1;
  /** CQs whose event an arm request or a timer has released, each at most once. */
  readonly #due: Fifo;
  readonly #isDue: Uint8Array;
  /** A resize under way; MODIFY_CQ is one command at a time. */
  #resize: { cq: number; logEntries: number; pageBytes: number; mttOffset: number } | undefined;

  /** @param sramOffset of {@link CompletionWriter.sramBytes} bytes */
  constructor(
    core: HcaCore,
    events: CompletionEvents,
    cqeClass: number,
    recordClass: number,
    sramOffset: number,
  ) {
    this.#core = core;
    this.#events = events;
    const capacity = core.config.completionFifoDepth;
    this.#capacity = capacity;
    this.#cqn = new Int32Array(capacity);
    this.#qp = new Int32Array(capacity);
    this.#qpn = new Int32Array(capacity);
    this.#record = new Int32Array(capacity);
    this.#wqeCounter = new Int32Array(capacity);
    this.#opcode = new Uint8Array(capacity);
    this.#isSend = new Uint8Array(capacity);
    this.#syndrome = new Uint8Array(capacity);
    this.#isSolicited = new Uint8Array(capacity);
    this.#byteCount = new Float64Array(capacity);
    this.#immediate = new Int32Array(capacity);
    this.#sourceLid = new Int32Array(capacity);
    this.#source = new Int32Array(capacity);
    this.#serviceLevel = new Uint8Array(capacity);
    this.#cqeSlots = CQE_STAGING_SLOTS;
    this.#due = new Fifo(core.cqs.capacity);
    this.#isDue = new Uint8Array(core.cqs.capacity);
    this.#cqeSram = sramOffset;
    this.#recordSram = sramOffset + this.#cqeSlots * cqeBytes;
    this.#recordOfSlot = new Int32Array(this.#cqeSlots).fill(-1);
    this.#cqOfSlot = new Int32Array(this.#cqeSlots).fill(-1);
    this.#writeRequester = core.dmaWrite.addRequester(
      { name: 'cqe', trafficClass: cqeClass, fifoDepth: CQE_FIFO_DEPTH },
      (slot, cycle) => this.#written(slot, cycle),
    );
    this.#readRequester = core.dmaRead.addRequester(
      { name: 'cqRecord', trafficClass: recordClass, fifoDepth: 1, weight: 2 },
      (cq, status, cycle) => this.#consumerRead(cq, status, cycle),
    );
    this.#timerHandler = core.lp.queue.addHandler((cq, generation) => this.#moderationDue(cq, generation));
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    const wake = (cycle: number): void => core.domain.wake(this.#stage, cycle);
    core.translator.attach(PORT_COMPLETION, wake);
    core.cqcCache.attach(PORT_COMPLETION, wake);
    core.dmaWrite.onSpace(this.#writeRequester, () => wake(core.domain.cycle + 1));
    events.onSpace(wake);
  }

  static readonly sramBytes = CQE_STAGING_SLOTS * cqeBytes + 64;

  connect(listener: CompletionListener): void {
    this.#listener = listener;
  }

  get isFull(): boolean {
    return this.#count === this.#capacity;
  }

  hasRoom(completions: number): boolean {
    return this.#count + completions <= this.#capacity;
  }

  /**
   * Posts a completion; the caller has checked {@link isFull}.
   * @param record send record released when the CQE is issued, or -1; @param syndrome 0, or that of an error CQE
   */
  post(
    cqn: number,
    qp: number,
    record: number,
    isSend: number,
    opcode: number,
    wqeCounter: number,
    byteCount: number,
    immediate: number,
    isSolicited: number,
    syndrome: number,
    sourceLid: number,
    cycle: number,
  ): void {
    const { qps, cqs } = this.#core;
    const at = (this.#head + this.#count++) % this.#capacity;
    this.#cqn[at] = cqn;
    this.#qp[at] = qp;
    this.#qpn[at] = qps.numberOf[qp]!;
    this.#record[at] = record;
    this.#isSend[at] = isSend;
    this.#opcode[at] = opcode;
    this.#wqeCounter[at] = wqeCounter;
    this.#byteCount[at] = byteCount;
    this.#immediate[at] = immediate;
    this.#isSolicited[at] = isSolicited;
    this.#syndrome[at] = syndrome;
    this.#sourceLid[at] = sourceLid;
    this.#source[at] = this.#nextSource;
    this.#serviceLevel[at] = this.#nextServiceLevel;
    this.#nextSource = 0;
    this.#nextServiceLevel = 0;
    const pair = qps.rows[qp]!;
    pair.inPipelineCount++;
    const cq = cqs.slotOf(cqn);
    if (cq !== -1) cqs.rows[cq]!.inPipelineCount++;
    this.#core.domain.wake(this.#stage, cycle + 1);
  }

  #nextSource = 0;
  #nextServiceLevel = 0;

  /**
   * Says of the completion posted next where its datagram came from.
   * @param source the CQE's word 08: GRH flag, path bits, source QPN
   */
  describeSource(source: number, serviceLevel: number): void {
    this.#nextSource = source;
    this.#nextServiceLevel = serviceLevel;
  }

  /**
   * A CQ arm doorbell. Stale requests have been dropped by the doorbell decoder. Fires at once for CQEs that are neither
   * consumed nor told of by an earlier event, which the context keeps as its last notified counter: a program that arms
   * before it polls gets one event for a CQE, not two.
   */
  arm(cq: number, command: number, consumer: number, cycle: number): void {
    const { cqs } = this.#core;
    const queue = cqs.rows[cq]!;
    queue.consumer = consumer;
    queue.armState = command === CqArmCommand.SOLICITED ? CQ_ARMED_SOLICITED : CQ_ARMED_NEXT;
    queue.heldCount = 0;
    const latest = queue.armState === CQ_ARMED_NEXT ? queue.producer : queue.solicitedProducer;
    if (isBeyond(latest, consumer) && isBeyond(latest, queue.lastNotified)) this.#makeDue(cq, cycle + 1);
  }

  /** MODIFY_CQ resize: the last entry of the old buffer says that the rest is in the new one. */
  postResize(cq: number, oldLogEntries: number, oldPageBytes: number, oldMttOffset: number): void {
    const { cqs } = this.#core;
    this.#resize = { cq, logEntries: oldLogEntries, pageBytes: oldPageBytes, mttOffset: oldMttOffset };
    const queue = cqs.rows[cq]!;
    queue.inPipelineCount++;
    this.#core.domain.wake(this.#stage, this.#core.domain.cycle + 1);
  }

  reset(): void {
    this.#head = 0;
    this.#count = 0;
    this.#eventFor = -1;
    this.#due.clear();
    this.#isDue.fill(0);
    this.#isReadingConsumer = false;
    this.#resize = undefined;
  }

  #run(cycle: number): void {
    if (this.account.freeCycle > cycle) return this.#core.domain.wake(this.#stage, this.account.freeCycle);
    if (this.#eventFor !== -1 && !this.#postEvent(cycle)) return this.account.stall(cycle, STALL_EVENTS);
    if (this.#due.headCycle <= cycle) {
      this.#fireDue(cycle);
      // Posted before the next CQE may raise an event of its own.
      if (this.#eventFor !== -1 && !this.#postEvent(cycle)) return this.account.stall(cycle, STALL_EVENTS);
    }
    // An arm request that came while the stage was awake already is due later than that.
    if (!this.#due.isEmpty) this.#core.domain.wake(this.#stage, Math.max(cycle + 1, this.#due.headCycle));
    // All CQEs issued so far went into the old buffer, all that wait here go into the new one.
    if (this.#resize !== undefined) {
      const stall = this.#writeResize(this.#resize);
      if (stall !== -1) return this.account.stall(cycle, stall);
    }
    if (this.#count === 0) return this.account.rest(cycle);
    const stall = this.#write(this.#head, cycle);
    if (stall !== -1) return this.account.stall(cycle, stall);
    this.#pop(cycle);
    this.account.serve(cycle, this.#core.config.completionCycles);
    if (this.#count > 0 || this.#eventFor !== -1 || this.#resize !== undefined)
      this.#core.domain.wake(this.#stage, cycle + this.#core.config.completionCycles);
  }

  /** Writes the completion at `at`. Returns -1, or why it has to wait. */
  #write(at: number, cycle: number): number {
    const { cqs, cqcCache, translator, dmaWrite } = this.#core;
    const cq = cqs.slotOf(this.#cqn[at]!);
    if (cq === -1 || cqs.rows[cq]!.status !== QueueStatus.OK) {
      this.#discard(at, cycle);
      return -1;
    }
    if (!cqcCache.access(PORT_COMPLETION, cq, true)) return STALL_CONTEXT;
    if (!this.#hasRoom(cq)) {
      if (this.#consumerReadOf !== cq) {
        this.#readConsumer(cq);
        return STALL_CONSUMER;
      }
      this.#consumerReadOf = -1;
      this.#fail(cq, CqErrorSyndrome.OVERRUN, cycle);
      this.#discard(at, cycle);
      return -1;
    }
    const queue = cqs.rows[cq]!;
    const entry = queue.producer & ((1 << queue.logEntries) - 1);
    const byte = queue.firstByte + entry * cqeBytes;
    const found = translator.translateBuffer(
      PORT_COMPLETION,
      queue.mttOffset,
      queue.pageBytes,
      byte,
      cqeBytes,
    );
    if (found === PENDING) return STALL_TRANSLATION;
    if (found >= BAD_KEY) {
      this.#fail(cq, CqErrorSyndrome.ACCESS, cycle);
      this.#discard(at, cycle);
      return -1;
    }
    if (!dmaWrite.canRequest(this.#writeRequester)) return STALL_DMA;
    this.#consumerReadOf = -1;
    this.#issue(at, cq, translator.physicalAddress);
    this.#afterCqe(at, cq, cycle);
    return -1;
  }

  #hasRoom(cq: number): boolean {
    const { cqs } = this.#core;
    const queue = cqs.rows[cq]!;
    if (queue.ignoreOverrun === 1) return true;
    return ((queue.producer - queue.consumer) & COUNTER_MASK) < 1 << queue.logEntries;
  }

  #readConsumer(cq: number): void {
    const { cqs, dmaRead } = this.#core;
    if (this.#isReadingConsumer || !dmaRead.canRequest(this.#readRequester)) return;
    this.#isReadingConsumer = true;
    dmaRead.request(this.#readRequester, cqs.rows[cq]!.doorbellRecord, RECORD_BYTES, this.#recordSram, cq);
  }

  #consumerRead(cq: number, status: number, cycle: number): void {
    const { cqs, sramView, domain } = this.#core;
    if (status === 0)
      cqs.rows[cq]!.consumer = cqRecord.fields.consumerCounter.get(sramView, this.#recordSram);
    this.#isReadingConsumer = false;
    this.#consumerReadOf = cq;
    domain.wake(this.#stage, cycle + 1);
  }

  /** Builds the CQE in its staging slot, whose last user is done, and requests the write. */
  #issue(at: number, cq: number, address: number): void {
    const { cqs, sram, sramView, dmaWrite } = this.#core;
    const slot = this.#cqeSlot;
    this.#cqeSlot = (slot + 1) % this.#cqeSlots;
    const offset = this.#cqeSram + slot * cqeBytes;
    for (let byte = 0; byte < cqeBytes; byte += 4) sramView.setUint32(offset + byte, 0);
    const isError = this.#syndrome[at] !== 0;
    const queue = cqs.rows[cq]!;
    const ownerBit = (queue.producer >>> queue.logEntries) & 1;
    const opcode = isError ? CqeOpcode.ERROR : this.#opcode[at]!;
    const ownership =
      (ownerBit << cqe.fields.owner.shift) | (this.#isSend[at]! << cqe.fields.isSend.shift) | opcode;
    sramView.setUint8(offset + cqeOwnerOffset, ownership);
    if (isError) {
      const f = errorCqe.fields;
      f.qpn.set(sramView, offset, this.#qpn[at]!);
      f.wqeCounter.set(sramView, offset, this.#wqeCounter[at]!);
      f.syndrome.set(sramView, offset, this.#syndrome[at]!);
    } else {
      const f = cqe.fields;
      f.qpn.set(sramView, offset, this.#qpn[at]!);
      f.immediate.set(sramView, offset, this.#immediate[at]!);
      f.sourceLid.set(sramView, offset, this.#sourceLid[at]!);
      f.byteCount.set(sramView, offset, this.#byteCount[at]!);
      f.wqeCounter.set(sramView, offset, this.#wqeCounter[at]!);
      if (this.#source[at] !== 0) {
        sramView.setInt32(offset + f.sourceQpn.wordOffset, this.#source[at]!);
        f.serviceLevel.set(sramView, offset, this.#serviceLevel[at]!);
      }
    }
    this.#recordOfSlot[slot] = this.#record[at]!;
    this.#cqOfSlot[slot] = cq;
    dmaWrite.request(this.#writeRequester, address, cqeBytes, sram, offset, slot);
  }

  #afterCqe(at: number, cq: number, cycle: number): void {
    const { cqs } = this.#core;
    const queue = cqs.rows[cq]!;
    queue.producer = (queue.producer + 1) & COUNTER_MASK;
    const counts = this.#isSolicited[at] === 1 || this.#syndrome[at] !== 0;
    if (counts) queue.solicitedProducer = queue.producer;
    const isDue = queue.armState === CQ_ARMED_NEXT || (queue.armState === CQ_ARMED_SOLICITED && counts);
    if (isDue) this.#notify(cq, cycle);
  }

  /** Fires the event, or holds it back until enough CQEs have come or the period is over. */
  #notify(cq: number, cycle: number): void {
    const { cqs, lp, domain } = this.#core;
    const queue = cqs.rows[cq]!;
    queue.heldCount++;
    const isModerated = queue.moderationCount > 1 && queue.moderationPeriodPs > 0;
    if (!isModerated || queue.heldCount >= queue.moderationCount) return this.#fire(cq);
    this.moderatedEventCount++;
    if (queue.hasModerationTimer === 1) return;
    queue.hasModerationTimer = 1;
    const duePs = domain.clock.edgePs(cycle) + queue.moderationPeriodPs;
    lp.queue.schedule(duePs, this.#timerHandler, cq, queue.generation);
  }

  /** The moderation period is over. */
  #moderationDue(cq: number, generation: number): void {
    const { cqs, domain, lp } = this.#core;
    const queue = cqs.rows[cq]!;
    if (cqs.numberOf[cq] === -1 || generation !== queue.generation) return;
    queue.hasModerationTimer = 0;
    if (queue.heldCount === 0) return;
    if (queue.armState !== CQ_NOT_ARMED) this.#makeDue(cq, domain.clock.cycleAfter(lp.nowPs));
  }

  #makeDue(cq: number, cycle: number): void {
    if (this.#isDue[cq] === 1) return;
    this.#isDue[cq] = 1;
    this.#due.push(cq, cycle);
    this.#core.domain.wake(this.#stage, cycle);
  }

  #fireDue(cycle: number): void {
    const cq = this.#due.pop();
    this.#isDue[cq] = 0;
    if (this.#core.cqs.numberOf[cq] !== -1 && this.#core.cqs.rows[cq]!.armState !== CQ_NOT_ARMED)
      this.#fire(cq);
    this.#core.domain.wake(this.#stage, cycle + 1);
  }

  #fire(cq: number): void {
    const { cqs } = this.#core;
    const queue = cqs.rows[cq]!;
    queue.armState = CQ_NOT_ARMED;
    queue.lastNotified = queue.producer;
    queue.heldCount = 0;
    if (queue.hasModerationTimer === 1) {
      // The timer still in the queue belongs to the round that ends here.
      queue.hasModerationTimer = 0;
      queue.generation++;
    }
    queue.firedCount++;
    this.#eventFor = cq;
  }

  #postEvent(cycle: number): boolean {
    const { cqs } = this.#core;
    if (!this.#events.canPost()) return false;
    const cq = this.#eventFor;
    this.#eventFor = -1;
    if (cqs.numberOf[cq] !== -1) this.#events.postCompletion(cqs.rows[cq]!.eqn, cqs.numberOf[cq]!, cycle);
    return true;
  }

  /** Writes the resize CQE into the old buffer; it takes one place of the producer counter. Returns -1 or the stall. */
  #writeResize(resize: { cq: number; logEntries: number; pageBytes: number; mttOffset: number }): number {
    const { cqs, translator, dmaWrite, sram, sramView } = this.#core;
    const { cq, logEntries, pageBytes, mttOffset } = resize;
    const queue = cqs.rows[cq]!;
    const entry = queue.producer & ((1 << logEntries) - 1);
    const found = translator.translateBuffer(
      PORT_COMPLETION,
      mttOffset,
      pageBytes,
      entry * cqeBytes,
      cqeBytes,
    );
    if (found === PENDING) return STALL_TRANSLATION;
    if (!dmaWrite.canRequest(this.#writeRequester)) return STALL_DMA;
    this.#resize = undefined;
    if (found >= BAD_KEY) {
      queue.inPipelineCount--;
      return -1;
    }
    const slot = this.#cqeSlot;
    this.#cqeSlot = (slot + 1) % this.#cqeSlots;
    const offset = this.#cqeSram + slot * cqeBytes;
    for (let byte = 0; byte < cqeBytes; byte += 4) sramView.setUint32(offset + byte, 0);
    cqe.fields.opcode.set(sramView, offset, CqeOpcode.RESIZE);
    cqe.fields.owner.set(sramView, offset, (queue.producer >>> logEntries) & 1);
    queue.producer = (queue.producer + 1) & COUNTER_MASK;
    this.#recordOfSlot[slot] = -1;
    this.#cqOfSlot[slot] = cq;
    dmaWrite.request(this.#writeRequester, translator.physicalAddress, cqeBytes, sram, offset, slot);
    return -1;
  }

  #fail(cq: number, syndrome: number, cycle: number): void {
    const isOverrun = syndrome === CqErrorSyndrome.OVERRUN;
    this.#core.cqs.rows[cq]!.status = isOverrun ? QueueStatus.OVERFLOW : QueueStatus.WRITE_FAILURE;
    this.#listener!.cqFailed(cq, syndrome, cycle);
  }

  #discard(at: number, cycle: number): void {
    this.discardedCount++;
    const cq = this.#core.cqs.slotOf(this.#cqn[at]!);
    if (cq !== -1) this.#core.cqs.rows[cq]!.inPipelineCount--;
    if (this.#record[at] !== -1) this.#listener!.cqeDiscarded(this.#record[at]!, cycle);
  }

  #pop(cycle: number): void {
    const { qps } = this.#core;
    const qp = this.#qp[this.#head]!;
    qps.rows[qp]!.inPipelineCount--;
    this.#head = this.#head + 1 === this.#capacity ? 0 : this.#head + 1;
    this.#count--;
    this.#listener!.completionSpace(cycle);
  }

  #written(slot: number, cycle: number): void {
    const { cqs } = this.#core;
    const cq = this.#cqOfSlot[slot]!;
    cqs.rows[cq]!.inPipelineCount--;
    const record = this.#recordOfSlot[slot]!;
    if (record !== -1) this.#listener!.cqeIssued(record, cycle);
  }
}

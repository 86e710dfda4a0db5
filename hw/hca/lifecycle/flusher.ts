/**
 * Flushes the queues of QPs in error: every work request posted and not completed completes with syndrome "flushed",
 * send queue first, each exactly once (IBTA vol 1, 10.3.1).
 *
 *   records under way ──> WQEs in the send queue (fetched from memory) ──> receive WQEs up to the doorbell record
 *
 * A doorbell in the error state brings the QP back here. Receives posted in the error state ring no doorbell: for as long as the QP is
 * in error its record is monitored (root-complex/word-monitor.ts), and read again `errorFlushPollNs` after it has changed. A QP that
 * is left in error costs nothing. If only the send queue of a QP is in error, only that queue is flushed.
 */

import { CqeSyndrome, QpState } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  type LogicalProcess,
  stallReasons,
} from '../../../sim/index.ts';
import type { CompletionWriter, PostedCompletion } from '../completion/index.ts';
import type { SendFormat } from '../host-interface/index.ts';
import {
  ETHERNET_OPCODE_BASE,
  enlarged,
  noRecord,
  type QpSlot,
  type QpTable,
  type QueuePair,
  wqeBlocksOf,
} from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { ReceiveWqeFetch } from '../receive-queue/index.ts';
import type { RequestCompletion } from '../requester/index.ts';
import type { WqeFetch } from '../send-queue/index.ts';
import type { OperationLedger } from '../statistics/index.ts';

const { ERR, SQER } = QpState;

const stalls = stallReasons('completion');
const { completion: STALL_COMPLETION } = stalls;
const PHASE_NONE = 0;
const PHASE_SEND = 1;
const PHASE_POLL = 2;
const PHASE_RECEIVE = 3;

export interface FlusherPorts {
  readonly wqeFetch: WqeFetch;
  readonly receives: ReceiveWqeFetch;
  readonly completions: CompletionWriter;
  readonly completion: RequestCompletion;
}

/** Slots have at most 24 bits, as QP numbers. */
const SLOT_BITS = 24;
const SLOT_MASK = 2 ** SLOT_BITS - 1;
const GENERATION_MASK = 0x7f;

/** Reports of dwords of host memory that have changed: see hw/pcie/root-complex/word-monitor.ts. */
export interface WordMonitors {
  /** Requests a report when the big-endian dword at `address` differs from `word`; replaces the monitor of the same number. */
  monitor(number: number, address: number, word: number): void;
  endMonitor(number: number): void;
}

/** Parts of the device that {@link Flusher} uses. */
export interface FlusherSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'errorFlushPollNs'>;
  readonly monitors: WordMonitors;
  readonly qps: QpTable;
  readonly sramView: DataView;
  readonly sends: SendFormat;
  readonly operations: OperationLedger;
}

export class Flusher {
  readonly account = new BlockAccount('flusher', stalls);
  flushedCount = 0;
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #config: FlusherSetup['config'];
  readonly #monitors: WordMonitors;
  readonly #qps: QpTable;
  readonly #sramView: DataView;
  readonly #sends: SendFormat;
  readonly #operations: OperationLedger;
  #fetch!: WqeFetch;
  #receives!: ReceiveWqeFetch;
  #completions!: CompletionWriter;
  #requests!: RequestCompletion;
  /** QPs to be flushed, each once: see {@link #isQueued}. */
  readonly #work: Fifo;
  /**
   * QPs whose next poll is due, each once: see {@link #isPolled}. Timers add them, and the event queue may run timers
   * before or after responses of the same instant. They therefore move to {@link #work} at an edge, after everything
   * before it, if there is still a reason to poll.
   */
  readonly #polled: Fifo;
  #isPolled = new Uint8Array(0);
  #isQueued = new Uint8Array(0);
  #phase = new Uint8Array(0);
  #generation = new Int32Array(0);
  /** Whether a change of the QP's doorbell record is still to be reported. */
  #isMonitored = new Uint8Array(0);
  readonly #pollHandler: number;
  readonly #stage: number;

  constructor(setup: FlusherSetup) {
    this.#lp = setup.lp;
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#monitors = setup.monitors;
    this.#qps = setup.qps;
    this.#sramView = setup.sramView;
    this.#sends = setup.sends;
    this.#operations = setup.operations;
    this.#work = new Fifo({
      name: 'QPs to flush',
      capacity: setup.qps.slotCount,
      whenFull: 'never: each QP stands here at most once',
    });
    this.#polled = new Fifo({
      name: 'QPs to look at again',
      capacity: setup.qps.slotCount,
      whenFull: 'never: each QP stands here at most once',
    });
    this.#pollHandler = setup.lp.queue.addHandler((qp, generation) => this.#poll(qp, generation));
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect({ wqeFetch, receives, completions, completion }: FlusherPorts): void {
    this.#fetch = wqeFetch;
    this.#receives = receives;
    this.#completions = completions;
    this.#requests = completion;
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    this.#work.enlarge(slotCount);
    this.#polled.enlarge(slotCount);
    this.#isQueued = enlarged(this.#isQueued, slotCount);
    this.#isPolled = enlarged(this.#isPolled, slotCount);
    this.#phase = enlarged(this.#phase, slotCount);
    this.#generation = enlarged(this.#generation, slotCount);
    this.#isMonitored = enlarged(this.#isMonitored, slotCount);
  }

  /** QPs that wait for their turn. */
  get heldCount(): number {
    return this.#work.count + this.#polled.count;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Room for a completion became free. */
  completionSpace(cycle: Cycles): void {
    if (this.account.isStalledFor(STALL_COMPLETION)) this.wake(cycle + 1);
  }

  /** True while send work requests of a QP whose send queue is in error are being flushed. */
  isFlushingSends(qp: QpSlot): boolean {
    return this.#qps.rows[qp]!.state === SQER && this.#phase[qp] === PHASE_SEND;
  }

  /** Begins to flush a QP, or its send queue, that has just gone to error. */
  begin(qp: QpSlot, cycle: Cycles): void {
    this.#qps.rows[qp]!.hasDoorbell = 1;
    this.#phase[qp] = PHASE_SEND;
    this.#enter(qp, cycle);
  }

  /** A doorbell, or WQEs fetched, for a QP in error. */
  resume(qp: QpSlot, cycle: Cycles): void {
    if (this.#phase[qp] === PHASE_NONE) this.#phase[qp] = PHASE_SEND;
    this.#enter(qp, cycle);
  }

  /** Forgets the QP, which is destroyed or restarts. */
  forget(qp: QpSlot): void {
    this.#phase[qp] = PHASE_NONE;
    if (this.#isMonitored[qp] !== 0) {
      this.#isMonitored[qp] = 0;
      this.#monitors.endMonitor(this.#monitorOf(qp));
    }
    this.#generation[qp] = this.#generation[qp]! + 1;
  }

  /** Number of the monitor of a QP: its slot, and some bits of its generation, as a positive int32. */
  #monitorOf(qp: QpSlot): number {
    return ((this.#generation[qp]! & GENERATION_MASK) << SLOT_BITS) | qp;
  }

  /** The doorbell record of a QP has changed: it is read again when the period of polling is over. */
  recordChanged(monitor: number): void {
    const qp = monitor & SLOT_MASK;
    // A report that was in flight when the QP left the error state does not concern the slot's present QP.
    if (this.#isMonitored[qp] !== 1 || monitor !== this.#monitorOf(qp)) return;
    this.#isMonitored[qp] = 0;
    this.#schedulePoll(qp);
  }

  reset(): void {
    this.#work.clear();
    this.#polled.clear();
    this.#isQueued.fill(0);
    this.#isPolled.fill(0);
    this.#phase.fill(PHASE_NONE);
    for (const slot of this.#qps.liveSlots()) this.forget(slot);
  }

  #enter(qp: QpSlot, cycle: Cycles): void {
    this.#queue(qp, cycle + 1);
    this.wake(cycle + 1);
  }

  #queue(qp: QpSlot, cycle: Cycles): void {
    if (this.#isQueued[qp] !== 0) return;
    this.#isQueued[qp] = 1;
    this.#work.push(qp, cycle);
  }

  #run(cycle: Cycles): void {
    while (this.#polled.headCycle <= cycle) this.#examine(this.#polled.pop(), cycle);
    if (!this.#polled.isEmpty) this.wake(this.#polled.headCycle);
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    if (this.#work.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#work.isEmpty) this.wake(this.#work.headCycle);
      return;
    }
    const qp = this.#work.head;
    if (!this.#completions.hasRoom(1)) {
      this.account.stall(cycle, STALL_COMPLETION);
      return;
    }
    this.account.serve(cycle, 1);
    const { state } = this.#qps.rows[qp]!;
    const isInError = state === ERR || state === SQER;
    const hasMore = isInError && this.#phase[qp] !== PHASE_NONE && this.#step(qp, cycle);
    if (!hasMore) {
      this.#work.pop();
      this.#isQueued[qp] = 0;
    }
    if (!this.#work.isEmpty) this.wake(Math.max(cycle + 1, this.#work.headCycle));
  }

  get fifos(): readonly Fifo[] {
    return [this.#work, this.#polled];
  }

  inspect(): BlockState {
    return { work: this.#work.values, polled: this.#polled.values };
  }

  /** Flushes one work request of the QP. Returns false if there is nothing to do now. */
  #step(qp: QpSlot, cycle: Cycles): boolean {
    if (this.#phase[qp] === PHASE_SEND) return this.#stepSend(qp, cycle);
    if (this.#phase[qp] === PHASE_RECEIVE) return this.#stepReceive(qp, cycle);
    return false;
  }

  #stepSend(qp: QpSlot, cycle: Cycles): boolean {
    const pair = this.#qps.rows[qp]!;
    if (pair.recordHead !== noRecord) {
      this.flushedCount++;
      this.#requests.flushHead(pair, cycle);
      return true;
    }
    const line = pair.wqeLine;
    this.#fetch.release(pair, cycle);
    if (line.validCount > 0) {
      const at = line.placeOf(line.firstCounter, pair.sqStrideBytes);
      const opcode = this.#sends.opcodeAt(this.#sramView, at);
      this.#postSend(pair, opcode, pair.sqCounter, cycle);
      this.#operations.flushedUnstarted(this.#operations.operationOf(qp, opcode));
      const blocks = this.#blocksAt(pair, at);
      line.advance(blocks);
      pair.sqCounter = (pair.sqCounter + blocks) & 0xffff;
      return true;
    }
    if (pair.isFetching === 1) return false;
    if (pair.hasDoorbell === 1 || line.mayHaveMore === 1) {
      this.#fetch.ask(pair, cycle);
      return false;
    }
    if (pair.state === ERR) return this.#beginReceive(qp, cycle);
    this.#phase[qp] = PHASE_NONE;
    return false;
  }

  /** Begins with the receive WQE of a message half received or refused, then polls the number of posted WQEs. */
  #beginReceive(qp: QpSlot, cycle: Cycles): boolean {
    const pair = this.#qps.rows[qp]!;
    pair.messageKind = 0;
    if (pair.hasReceiveWqe === 1) {
      pair.hasReceiveWqe = 0;
      this.#postReceive(pair, pair.receiveWqeCounter, cycle);
      return true;
    }
    if (pair.srqn !== -1 || pair.hasReceiveQueue === 0) {
      this.#phase[qp] = PHASE_NONE;
      return false;
    }
    if (this.#receives.isBusy(qp)) {
      this.#schedulePoll(qp);
      this.#phase[qp] = PHASE_NONE;
      return false;
    }
    this.#phase[qp] = PHASE_POLL;
    this.#receives.refreshPosted(qp, cycle);
    return false;
  }

  /** The doorbell record of a receive queue has been read. */
  recordRead(queue: number, cycle: Cycles): void {
    if (queue >= this.#phase.length || this.#phase[queue] !== PHASE_POLL) return;
    this.#phase[queue] = PHASE_RECEIVE;
    this.#enter(queue, cycle);
  }

  #stepReceive(qp: QpSlot, cycle: Cycles): boolean {
    if (this.#receives.knownAvailable(qp) > 0) {
      const counter = this.#receives.consumeUnseen(qp);
      this.#postReceive(this.#qps.rows[qp]!, counter, cycle);
      return true;
    }
    // A doorbell that arrived meanwhile found the QP busy with its receives.
    if (this.#qps.rows[qp]!.hasDoorbell === 1) {
      this.#phase[qp] = PHASE_SEND;
      return true;
    }
    this.#phase[qp] = PHASE_NONE;
    this.#isMonitored[qp] = 1;
    const { doorbellRecord } = this.#qps.rows[qp]!;
    this.#monitors.monitor(this.#monitorOf(qp), doorbellRecord, this.#receives.recordWord(qp));
    return false;
  }

  #schedulePoll(qp: QpSlot): void {
    this.#lp.queue.schedule(
      this.#lp.nowPs + this.#config.errorFlushPollNs * 1000,
      this.#pollHandler,
      qp,
      this.#generation[qp]!,
    );
  }

  #poll(qp: QpSlot, generation: number): void {
    if (generation !== this.#generation[qp] || this.#isPolled[qp] !== 0) return;
    const cycle = this.#domain.clock.cycleAfter(this.#lp.nowPs) + 1;
    this.#isPolled[qp] = 1;
    this.#polled.push(qp, cycle);
    this.wake(cycle);
  }

  #examine(qp: QpSlot, cycle: Cycles): void {
    this.#isPolled[qp] = 0;
    if (this.#qps.rows[qp]!.state !== ERR || this.#phase[qp] !== PHASE_NONE) return;
    this.#phase[qp] = PHASE_SEND;
    this.#queue(qp, cycle);
  }

  #postReceive(pair: QueuePair, wqeCounter: number, cycle: Cycles): void {
    this.#post(this.#completions.nextReceive(pair), wqeCounter, cycle);
  }

  #postSend({ sendCqn, slot }: QueuePair, opcode: number, wqeCounter: number, cycle: Cycles): void {
    const completion = this.#completions.next(sendCqn, slot);
    completion.isSend = true;
    completion.opcode = opcode;
    this.#post(completion, wqeCounter, cycle);
  }

  #post(completion: PostedCompletion, wqeCounter: number, cycle: Cycles): void {
    this.flushedCount++;
    completion.wqeCounter = wqeCounter;
    completion.syndrome = CqeSyndrome.WR_FLUSH_ERR;
    this.#completions.post(completion, cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#work.rebase(cycles);
    this.#polled.rebase(cycles);
  }

  /** Returns the blocks of the send queue that the WQE at `at` of the HCA's memory occupies. */
  #blocksAt({ opcodeBase, sqStrideBytes }: QueuePair, at: number): number {
    if (opcodeBase !== ETHERNET_OPCODE_BASE) return 1;
    return wqeBlocksOf(this.#sends.bytesAt(this.#sramView, at), sqStrideBytes);
  }
}

/**
 * Transport timers of the send side: the local ACK timeout and the RNR wait (IBTA vol 1, 9.7.6.1.3, 9.7.5.2.8).
 *
 * A QP has at most one ACK timer in the event queue. It is not moved with every packet: when it comes due it checks the
 * last progress and, if that is younger than the timeout, is set again for the rest. So an idle QP has no timer, and a
 * busy one an event per timeout.
 *
 * The event queue may run a timer before or after the clock edge of the same instant, so a timer changes nothing
 * itself. The next edge checks whether it still applies, QP by QP, the ACK timer of each before its RNR wait.
 */
import { type Cycles, type Picoseconds, psPerNs } from '../../../../base/index.ts';
import { type BlockState, type ClockDomain, Fifo, type LogicalProcess } from '../../../../sim/index.ts';
import { PSN_MASK, psnDistance, rnrTimerUnitsByCode } from '../../../../wire/index.ts';
import {
  enlarged,
  noRecord,
  type QpSlot,
  type QpTable,
  type QueuePair,
  type SendRecord,
} from '../../objects/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { DiagnosticCounters } from '../../statistics/index.ts';
import type { IbtaState, IbtaStates } from '../state/index.ts';
import type { SelectiveRepeat } from './selective-repeat.ts';

export interface RetryTimerPorts {
  readonly acknowledgements: {
    /** Handles a whole timeout without progress while packets are outstanding. */
    ackTimedOut(qp: QpSlot, cycle: Cycles): void;
    rnrWaitOver(pair: QueuePair, cycle: Cycles): void;
  };
}

const DUE_RNR = 0.5;

/** The longest of the standard (code 31, 2.4 hours): picoseconds are exact for no more than that. */
const ackTimeoutMaxPs = 4096 * psPerNs * 2 ** 31;

type AckTimeoutConfig = Pick<HcaConfig, 'ackTimeoutUnitNs' | 'ackTimeoutCodeMin'>;

/**
 * Returns the ACK timeouts by code: unit times 2^code, but at least that of the smallest code that the card honours
 * (9.7.6.1.3).
 */
const ackTimeouts = ({ ackTimeoutUnitNs, ackTimeoutCodeMin }: AckTimeoutConfig): Picoseconds[] =>
  Array.from({ length: 32 }, (_, code) =>
    Math.min(ackTimeoutUnitNs * psPerNs * 2 ** Math.max(code, ackTimeoutCodeMin), ackTimeoutMaxPs),
  );

/** True if a sent packet is not acknowledged; packets still in the packet queue start the timer when they are sent. */
const isAnswerDue = ({ awaitedPsn, lastAckedPsn }: IbtaState): boolean =>
  psnDistance(awaitedPsn, lastAckedPsn) > 0;

/** Parts of the device that {@link RetryTimers} uses. */
export interface RetryTimersSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: AckTimeoutConfig & Pick<HcaConfig, 'rnrTimerUnitNs'>;
  readonly qps: QpTable;
  readonly states: IbtaStates;
  readonly diagnostics: DiagnosticCounters;
  /** Undefined with go-back-N. */
  readonly selectiveRepeat: SelectiveRepeat | undefined;
}

export class RetryTimers {
  timeoutCount = 0;
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #qps: QpTable;
  readonly #states: IbtaStates;
  readonly #diagnostics: DiagnosticCounters;
  readonly #repeat: SelectiveRepeat | undefined;
  readonly #ackHandler: number;
  readonly #rnrHandler: number;
  /**
   * Expired timers that wait for the next edge, by QP; those of RNR waits are offset by half. At most one of each kind
   * per QP: the next one of its kind starts shortly before that edge, and takes longer than a cycle.
   */
  readonly #due: Fifo;
  /**
   * The timers of {@link #due} being checked: reused.
   */
  readonly #looked: number[] = [];
  readonly #stage: number;
  /** Configured local ACK timeouts and RNR waits, by code. */
  readonly #ackTimeoutPs: readonly Picoseconds[];
  readonly #rnrWaitPs: readonly Picoseconds[];
  #ports!: RetryTimerPorts;
  /** Incremented with each generation of a QP: a timer of an earlier one is ignored. */
  #generation = new Int32Array(0);
  /** Incremented with each RNR wait and each generation: only the timer of the last wait ends it. */
  #rnrWait = new Int32Array(0);
  /** Generation and RNR wait of the QPs whose timers have expired. */
  #dueGeneration = new Int32Array(0);
  #dueRnrWait = new Int32Array(0);

  constructor(setup: RetryTimersSetup) {
    this.#lp = setup.lp;
    this.#domain = setup.domain;
    this.#qps = setup.qps;
    this.#states = setup.states;
    this.#diagnostics = setup.diagnostics;
    this.#repeat = setup.selectiveRepeat;
    this.#ackTimeoutPs = ackTimeouts(setup.config);
    this.#rnrWaitPs = rnrTimerUnitsByCode.map((units) => units * setup.config.rnrTimerUnitNs * psPerNs);
    this.#due = new Fifo({
      name: 'timers due',
      capacity: 2 * setup.qps.slotCount,
      whenFull: 'never: each QP has one timer of each kind',
    });
    this.#ackHandler = setup.lp.queue.addHandler((qp, generation) => this.#ackDue(qp, generation));
    this.#rnrHandler = setup.lp.queue.addHandler((qp, wait) => this.#rnrDue(qp, wait));
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  /** Running and expired timers of QPs. */
  get heldCount(): number {
    const { rows } = this.#qps;
    return rows.reduce((sum, { hasTimer, isWaitingRnr }) => sum + hasTimer + isWaitingRnr, this.#due.count);
  }

  connect(ports: RetryTimerPorts): void {
    this.#ports = ports;
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    this.#due.enlarge(2 * slotCount);
    this.#generation = enlarged(this.#generation, slotCount);
    this.#rnrWait = enlarged(this.#rnrWait, slotCount);
    this.#dueGeneration = enlarged(this.#dueGeneration, slotCount);
    this.#dueRnrWait = enlarged(this.#dueRnrWait, slotCount);
  }

  /**
   * A packet that wants an answer was sent at an edge; most find a timer set and others under way. The timeout begins with
   * the oldest packet that is not answered: where all before it are, an earlier timer's instant is not its own.
   */
  sentAt(pair: QueuePair, request: SendRecord, psn: number, cycle: Cycles): void {
    const state = this.#states.rows[pair.slot]!;
    const newestPsn = request.isReadOrAtomic === 1 ? this.#states.lastPsnOf(request) : psn;
    if (psnDistance(newestPsn, state.awaitedPsn) > 0) state.awaitedPsn = newestPsn;
    const isOldest = psn === ((state.lastAckedPsn + 1) & PSN_MASK);
    if (pair.hasTimer === 1 && pair.recordCount !== 1 && !isOldest) return;
    const nowPs = this.#domain.clock.edgePs(cycle);
    if (isOldest) pair.lastProgressPs = nowPs;
    this.sent(pair, nowPs);
  }

  /** A packet that wants an answer was sent at `nowPs`. */
  sent(pair: QueuePair, nowPs: Picoseconds): void {
    // If nothing else is outstanding, the timeout begins here, even if a timer of earlier packets is still in the
    // queue.
    if (pair.recordCount === 1) pair.lastProgressPs = nowPs;
    if (pair.hasTimer === 1 || pair.ackTimeoutCode === 0) return;
    pair.hasTimer = 1;
    pair.lastProgressPs = nowPs;
    const generation = this.#generation[pair.slot]!;
    this.#lp.queue.schedule(nowPs + this.#shortestPsOf(pair), this.#ackHandler, pair.slot, generation);
  }

  /** The timeout of a QP has become shorter: it begins now. */
  restart(pair: QueuePair): void {
    if (pair.hasTimer === 0) return;
    this.#generation[pair.slot] = this.#generation[pair.slot]! + 1;
    pair.hasTimer = 0;
    this.sent(pair, this.#lp.nowPs);
  }

  /** The local ACK timeout of a QP, as software has set it. */
  ackTimeoutPsOf({ ackTimeoutCode }: QueuePair): Picoseconds {
    return this.#ackTimeoutPs[ackTimeoutCode]!;
  }

  /** Time without progress after which packets are sent again. */
  #timeoutPsOf(pair: QueuePair): Picoseconds {
    const ackTimeoutPs = this.ackTimeoutPsOf(pair);
    return this.#repeat === undefined ? ackTimeoutPs : this.#repeat.timeoutPs(pair, ackTimeoutPs);
  }

  /** Lower bound of that time until the timer expires or restarts. */
  #shortestPsOf(pair: QueuePair): Picoseconds {
    const ackTimeoutPs = this.ackTimeoutPsOf(pair);
    return this.#repeat === undefined ? ackTimeoutPs : this.#repeat.shortestPs(pair, ackTimeoutPs);
  }

  /** Handles new progress: restarts the timeout and refills the retry counters. */
  progress(pair: QueuePair): void {
    pair.lastProgressPs = this.#lp.nowPs;
    pair.retriesLeft = pair.retryCountMax;
    pair.rnrRetriesLeft = pair.rnrRetryCountMax;
  }

  /** Handles an RNR NAK: the QP sends nothing for the time of this timer code. */
  waitRnr(pair: QueuePair, timerCode: number, cycle: Cycles): void {
    const durationPs = this.#rnrWaitPs[timerCode]!;
    pair.isWaitingRnr = 1;
    const wait = this.#rnrWait[pair.slot]! + 1;
    this.#rnrWait[pair.slot] = wait;
    this.#lp.queue.schedule(this.#domain.clock.edgePs(cycle) + durationPs, this.#rnrHandler, pair.slot, wait);
  }

  /** A generation of the QP begins or ends. */
  forget(qp: QpSlot): void {
    this.#generation[qp] = this.#generation[qp]! + 1;
    this.#rnrWait[qp] = this.#rnrWait[qp]! + 1;
    const pair = this.#qps.rows[qp]!;
    pair.hasTimer = 0;
    pair.isWaitingRnr = 0;
  }

  get fifos(): readonly Fifo[] {
    return [this.#due];
  }

  inspect(): BlockState {
    return { running: this.heldCount, due: this.#due.values };
  }

  reset(): void {
    this.#due.clear();
    for (const slot of this.#qps.liveSlots()) this.forget(slot);
  }

  #ackDue(qp: QpSlot, generation: number): void {
    if (generation !== this.#generation[qp]) return;
    this.#dueGeneration[qp] = generation;
    this.#leave(qp);
  }

  #rnrDue(qp: QpSlot, wait: number): void {
    if (wait !== this.#rnrWait[qp]) return;
    this.#dueRnrWait[qp] = wait;
    this.#leave(qp + DUE_RNR);
  }

  #leave(what: number): void {
    const cycle = this.#domain.clock.cycleAfter(this.#lp.nowPs);
    this.#due.push(what, cycle);
    this.#domain.wake(this.#stage, cycle);
  }

  #run(cycle: Cycles): void {
    const looked = this.#looked;
    looked.length = 0;
    while (this.#due.headCycle <= cycle) looked.push(this.#due.pop());
    if (looked.length > 1) looked.sort((left, right) => left - right);
    for (const what of looked) {
      const qp = Math.floor(what);
      if (what === qp) this.#checkAckTimer(qp, cycle);
      else this.#checkRnrTimer(qp, cycle);
    }
    if (!this.#due.isEmpty) this.#domain.wake(this.#stage, this.#due.headCycle);
  }

  #checkAckTimer(qp: QpSlot, cycle: Cycles): void {
    if (this.#dueGeneration[qp] !== this.#generation[qp]) return;
    const pair = this.#qps.rows[qp]!;
    pair.hasTimer = 0;
    if (pair.recordHead === noRecord || pair.isWaitingRnr === 1 || !isAnswerDue(this.#states.rows[qp]!))
      return;
    const duePs = pair.lastProgressPs + this.#timeoutPsOf(pair);
    if (duePs >= this.#lp.nowPs) {
      pair.hasTimer = 1;
      const nextPs = Math.min(duePs, this.#lp.nowPs + this.#shortestPsOf(pair));
      this.#lp.queue.schedule(nextPs, this.#ackHandler, qp, this.#generation[qp]!);
      return;
    }
    this.timeoutCount++;
    this.#diagnostics.count('sqTimeout');
    this.#ports.acknowledgements.ackTimedOut(qp, cycle);
  }

  #checkRnrTimer(qp: QpSlot, cycle: Cycles): void {
    const pair = this.#qps.rows[qp]!;
    if (this.#dueRnrWait[qp] !== this.#rnrWait[qp] || pair.isWaitingRnr === 0) return;
    pair.isWaitingRnr = 0;
    this.#ports.acknowledgements.rnrWaitOver(pair, cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#due.rebase(cycles);
  }
}

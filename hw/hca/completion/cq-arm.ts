/**
 * Decides which CQE raises a completion event, and when. An armed CQ fires once, for the next CQE or the next solicited
 * one; moderation holds the event back until enough CQEs have arrived or its period is over. An event that is already
 * due when the CQ is armed fires in the writer's next cycles, one CQ at a time (interface sheet 6.10).
 *
 * The event queue may run the timer of a period before or after the clock edge of the same instant, and the timers of
 * two CQs in any order. A timer therefore changes nothing itself: the writer checks it in its next cycle, after arm
 * requests, CQ by CQ.
 */

import { CqArmCommand } from '../../../abi/index.ts';
import { type Cycles, mask24, NEVER } from '../../../base/index.ts';
import { type ClockDomain, Fifo, type LogicalProcess, type Wakeable } from '../../../sim/index.ts';
import type { CostAttribution } from '../costs/index.ts';
import {
  type CompletionQueue,
  CQ_ARMED_NEXT,
  CQ_ARMED_SOLICITED,
  CQ_NOT_ARMED,
  type Cqn,
  type CqSlot,
  type CqTable,
  enlarged,
} from '../objects/index.ts';

const NONE = -1;
const HALF_COUNTER = 0x800000;
/** Largest number of entries of a CQ, by which software's counters may differ. */
const LARGEST_CQ = 2 ** 22;

/** Whether one 24-bit counter is ahead of another, by less than half of its range. */
function isBeyond(counter: number, other: number): boolean {
  const ahead = (counter - other) & mask24;
  return ahead > 0 && ahead < HALF_COUNTER;
}

/**
 * Advances counters that are older than the consumer counter by more than a CQ's size up to it: software has read those
 * CQEs, whether or not an event reported them. Otherwise the counters of a CQ that has not been armed for 2^23 CQEs
 * would seem to be ahead of all others.
 */
export function forgetConsumed(queue: CompletionQueue): void {
  const { consumer, producer } = queue;
  const isFarBehind = (counter: number): boolean =>
    ((counter - consumer) & mask24) > ((producer - consumer) & mask24) &&
    ((consumer - counter) & mask24) > LARGEST_CQ;
  if (isFarBehind(queue.lastNotified)) queue.lastNotified = consumer;
  if (isFarBehind(queue.solicitedProducer)) queue.solicitedProducer = consumer;
}

export interface CompletionEvents {
  canPost(): boolean;
  /**
   * @param joinedCount CQEs beyond the first that the event reports, because moderation held it back
   */
  postCompletion(eqn: number, cqn: Cqn, cycle: Cycles, joinedCount: number): void;
}

/** Parts of the device that {@link CompletionNotifier} uses. */
export interface CompletionNotifierSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly cqs: CqTable;
  readonly costs: CostAttribution | undefined;
}

export class CompletionNotifier {
  /** CQEs whose event was held back. */
  moderatedCount = 0;
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #cqs: CqTable;
  readonly #costs: CostAttribution | undefined;
  #events!: CompletionEvents;
  readonly #writer: Wakeable;
  readonly #timerHandler: number;
  /** CQ whose event has fired and still has to be posted. */
  #fired = NONE;
  #joinedCount = 0;
  /** CQs whose event an arm request has released, each at most once. */
  readonly #due: Fifo;
  #isDue = new Uint8Array(0);
  /**
   * CQs whose moderation timer has expired, each at most once, ordered by the cycle from which the writer checks them,
   * and within a cycle by slot; that cycle, and the generation to which the timer belongs.
   */
  readonly #timed: number[] = [];
  #timedCycle = new Float64Array(0);
  #timedGeneration = new Int32Array(0);

  /** @param writer the completion writer, whose stage does this one's work */
  constructor(setup: CompletionNotifierSetup, writer: Wakeable) {
    this.#lp = setup.lp;
    this.#domain = setup.domain;
    this.#cqs = setup.cqs;
    this.#costs = setup.costs;
    this.#writer = writer;
    this.#due = new Fifo({
      name: 'events due',
      capacity: setup.cqs.slotCount,
      whenFull: 'never: each CQ stands here at most once',
    });
    this.#timerHandler = setup.lp.queue.addHandler((cq, generation) => this.#moderationDue(cq, generation));
  }

  /** See SlotUser. */
  slotsGrown(slotCount: number): void {
    this.#due.enlarge(slotCount);
    this.#isDue = enlarged(this.#isDue, slotCount);
    this.#timedCycle = enlarged(this.#timedCycle, slotCount);
    this.#timedGeneration = enlarged(this.#timedGeneration, slotCount);
  }

  connect({ eventQueues }: { readonly eventQueues: CompletionEvents }): void {
    this.#events = eventQueues;
  }

  /** See EventPoster. */
  eventSpace(cycle: Cycles): void {
    this.#writer.wake(cycle);
  }

  /** True while an event that has fired still has to be posted: no other may fire. */
  get hasFired(): boolean {
    return this.#fired !== NONE;
  }

  /** Events that have fired or are due, and are not posted. */
  get heldCount(): number {
    return this.#due.count + this.#timed.length + (this.#fired === NONE ? 0 : 1);
  }

  /** Cycle from which {@link fireDue} has something to do, or Infinity. */
  get dueCycle(): Cycles {
    const { headCycle } = this.#due;
    return this.#timedHeadCycle < headCycle ? this.#timedHeadCycle : headCycle;
  }

  get #timedHeadCycle(): Cycles {
    const cq = this.#timed[0];
    return cq === undefined ? NEVER : this.#timedCycle[cq]!;
  }

  /**
   * A CQ arm doorbell. Stale requests have been dropped by the doorbell decoder. Fires at once for CQEs that are neither
   * consumed nor reported by an earlier event, which the context keeps as its last notified counter: a program that arms
   * before it polls gets one event for a CQE, not two.
   */
  arm(cq: CqSlot, command: number, consumer: number, cycle: Cycles): void {
    const queue = this.#cqs.rows[cq]!;
    queue.consumer = consumer;
    // A pending request for the next completion is not weakened to solicited ones (IBTA vol 1, 11.4.2.2).
    if (command === CqArmCommand.NEXT) queue.armState = CQ_ARMED_NEXT;
    else if (queue.armState === CQ_NOT_ARMED) queue.armState = CQ_ARMED_SOLICITED;
    queue.heldCount = 0;
    forgetConsumed(queue);
    const latest = queue.armState === CQ_ARMED_NEXT ? queue.producer : queue.solicitedProducer;
    if (isBeyond(latest, consumer) && isBeyond(latest, queue.lastNotified)) this.#makeDue(cq, cycle + 1);
  }

  /** A CQE has been issued; `counts`: solicited, or an error. */
  issued(cq: CqSlot, counts: boolean, cycle: Cycles): void {
    const queue = this.#cqs.rows[cq]!;
    if (counts) queue.solicitedProducer = queue.producer;
    const isWanted = queue.armState === CQ_ARMED_NEXT || (queue.armState === CQ_ARMED_SOLICITED && counts);
    if (isWanted) this.#notify(cq, cycle);
  }

  /** Fires for the CQ that has been due longest. */
  fireDue(cycle: Cycles): void {
    this.#writer.wake(cycle + 1);
    while (this.#timedHeadCycle <= cycle && this.#timedHeadCycle < this.#due.headCycle)
      if (this.#firePeriodOver(this.#timed.shift()!)) return;
    if (this.#due.headCycle > cycle) return;
    const cq = this.#due.pop();
    this.#isDue[cq] = 0;
    if (this.#cqs.numberOf[cq] !== NONE && this.#cqs.rows[cq]!.armState !== CQ_NOT_ARMED) this.#fire(cq);
  }

  /** Posts the event that has fired, if one has. False: there is no room for it. */
  post(cycle: Cycles): boolean {
    if (this.#fired === NONE) return true;
    if (!this.#events.canPost()) return false;
    const cq = this.#fired;
    this.#fired = NONE;
    const cqn = this.#cqs.numberOf[cq]!;
    if (cqn !== NONE) this.#events.postCompletion(this.#cqs.rows[cq]!.eqn, cqn, cycle, this.#joinedCount);
    return true;
  }

  /** True while an event of the CQ has fired or is due, and has not been posted. */
  isBusy(cq: CqSlot): boolean {
    return this.#fired === cq || this.#isDue[cq] === 1;
  }

  get fifos(): readonly Fifo[] {
    return [this.#due];
  }

  reset(): void {
    this.#fired = NONE;
    this.#due.clear();
    this.#isDue.fill(0);
    this.#timed.length = 0;
  }

  /** Fires the event, or holds it back until enough CQEs have arrived or the period is over. */
  #notify(cq: CqSlot, cycle: Cycles): void {
    const queue = this.#cqs.rows[cq]!;
    queue.heldCount++;
    queue.wantedCount++;
    const isModerated = queue.moderationCount > 1 && queue.moderationPeriodPs > 0;
    if (!isModerated || queue.heldCount >= queue.moderationCount) return this.#fire(cq);
    this.moderatedCount++;
    if (queue.hasModerationTimer === 1) return;
    queue.hasModerationTimer = 1;
    const duePs = this.#domain.clock.edgePs(cycle) + queue.moderationPeriodPs;
    this.#lp.queue.schedule(duePs, this.#timerHandler, cq, queue.generation);
  }

  /** Handles an expired moderation timer. */
  #moderationDue(cq: CqSlot, generation: number): void {
    if (generation !== this.#cqs.rows[cq]!.generation) return;
    this.#timedGeneration[cq] = generation;
    const timed = this.#timed;
    if (timed.includes(cq)) return;
    const cycle = this.#domain.clock.cycleAfter(this.#lp.nowPs);
    this.#timedCycle[cq] = cycle;
    let place = timed.length;
    while (place > 0 && this.#timedCycle[timed[place - 1]!] === cycle && timed[place - 1]! > cq) place--;
    timed.splice(place, 0, cq);
    this.#writer.wake(cycle);
  }

  /** Ends the moderation period of a CQ if its timer is still current. Returns whether the event fires. */
  #firePeriodOver(cq: CqSlot): boolean {
    const queue = this.#cqs.rows[cq]!;
    if (this.#cqs.numberOf[cq] === NONE || this.#timedGeneration[cq] !== queue.generation) return false;
    queue.hasModerationTimer = 0;
    if (queue.heldCount === 0 || queue.armState === CQ_NOT_ARMED) return false;
    this.#fire(cq);
    return true;
  }

  #makeDue(cq: CqSlot, cycle: Cycles): void {
    if (this.#isDue[cq] === 1) return;
    this.#isDue[cq] = 1;
    this.#due.push(cq, cycle);
    this.#writer.wake(cycle);
  }

  #fire(cq: CqSlot): void {
    const queue = this.#cqs.rows[cq]!;
    this.#costs?.eventFired(this.#cqs.numberOf[cq]!);
    queue.armState = CQ_NOT_ARMED;
    queue.lastNotified = queue.producer;
    queue.heldCount = 0;
    if (queue.hasModerationTimer === 1) {
      // The timer still in the queue belongs to the round that ends here.
      queue.hasModerationTimer = 0;
      queue.generation++;
    }
    queue.firedCount++;
    this.#fired = cq;
    this.#joinedCount = Math.max(0, queue.wantedCount - 1);
    queue.wantedCount = 0;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#due.rebase(cycles);
    for (const cq of this.#timed) this.#timedCycle[cq] = this.#timedCycle[cq]! - cycles;
  }
}

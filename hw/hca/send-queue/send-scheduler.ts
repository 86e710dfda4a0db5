/**
 * Chooses which QP sends next: a ring of QPs that have work, served in turn, and a delay line of QPs that have just
 * sent a message and may not be revisited before `sameQpIntervalCycles`. QPs whose rate holds back their next packet wait in
 * the order of the cycles from which they may send it, and then go before the ring: they cannot have more than their rates.
 *
 *   doorbell ─┐
 *   fetched  ─┼─> ring of ready QPs ──> requester
 *   progress ─┘      ^── delay line <───┤    ^
 *                        paced QPs <────┘────┘
 *
 * A QP whose context was just read is served before the ring; otherwise QPs in front of it would evict its line first.
 * It had a place in the ring when the read began, so no QP is passed over indefinitely.
 *
 * The lists go through the QPs themselves: a QP is in one of them or in none, so none can overflow, and none costs
 * memory for QPs that have nothing to send. A QP that cannot continue is parked with a reason, outside both, and {@link
 * SendScheduler.unpark} returns it when the reason may have gone.
 */
import { type Cycles, NEVER } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import { QueuePair } from '../objects/index.ts';

/** Why a QP that has work is not scheduled. */
export const NOT_PARKED = 0;
export const PARKED_READ_LIMIT = 1;
export const PARKED_FENCE = 2;
export const PARKED_CREDITS = 3;
/** The peer was not ready, and named a delay. */
export const PARKED_RETRY_DELAY = 4;
export const PARKED_WINDOW = 5;
export const PARKED_DRAINING = 6;
/** A local error was found: later requests wait to be flushed. */
export const PARKED_ERROR = 7;
/** All records are in use, perhaps by QPs whose next packets come after this QP in the ring. */
export const PARKED_RECORDS = 8;
/** A page of an on-demand region has been requested. */
export const PARKED_PAGE_FAULT = 9;
/** A local invalidate waits for all earlier requests of its QP. */
export const PARKED_ORDER = 10;
/** An operation on keys is in progress: later requests wait for its end. */
export const PARKED_KEYS = 11;
/** The QP's context is being read. */
export const PARKED_CONTEXT = 12;
/** The transport's window has no room for the packets of its next request. */
export const PARKED_TRANSPORT_WINDOW = 13;

/** Positions of a QP in the scheduler. */
const NOT_SCHEDULED = 0;
const IN_RING = 1;
const IN_DELAY_LINE = 2;
const IN_FRONT = 3;
const PACED = 4;

export interface SchedulerPorts {
  /** The requester, which requests a QP from a cycle on. */
  readonly requester: { wake(cycle: Cycles): void };
}

export class SendScheduler {
  /**
   * Heads of the circular lists: the QP after a head is the oldest of its list, or the head itself if the list is
   * empty.
   */
  readonly #ring = new QueuePair();
  readonly #delayed = new QueuePair();
  readonly #paced = new QueuePair();
  /** QPs that go before the ring. */
  readonly #front = new QueuePair();
  readonly #lists: readonly QueuePair[] = [this.#front, this.#ring, this.#delayed, this.#paced];
  #requester!: SchedulerPorts['requester'];

  connect({ requester }: SchedulerPorts): void {
    this.#requester = requester;
  }

  /** The QP has work: to be considered from `cycle` on. */
  makeReady(pair: QueuePair, cycle: Cycles): void {
    if (pair.isScheduled !== NOT_SCHEDULED || pair.parkedFor !== NOT_PARKED) return;
    pair.isScheduled = IN_RING;
    append(this.#ring, pair, cycle);
    this.#requester.wake(cycle);
  }

  /**
   * The QP has sent a message: it may be considered again at `cycle`, a constant distance from now, and not earlier, even
   * if it has become ready while it was served. The requester, which reports it, examines it again by itself.
   */
  makeReadyLater(pair: QueuePair, cycle: Cycles): void {
    if (pair.isScheduled === IN_DELAY_LINE) return;
    if (pair.isScheduled !== NOT_SCHEDULED) unlink(pair);
    pair.isScheduled = IN_DELAY_LINE;
    append(this.#delayed, pair, cycle);
  }

  /** The rate of the QP, which was being served, allows its next packet from `cycle` on. */
  makeReadyAt(pair: QueuePair, cycle: Cycles): void {
    if (pair.isScheduled !== NOT_SCHEDULED) unlink(pair);
    pair.isScheduled = PACED;
    let before = this.#paced.schedulePrevious;
    while (before !== this.#paced && before.scheduleCycle > cycle) before = before.schedulePrevious;
    append(before.scheduleNext, pair, cycle);
  }

  /** Whether QPs wait for their rates. */
  get hasPaced(): boolean {
    return this.#paced.scheduleNext !== this.#paced;
  }

  /** Whether one of them may send its packet at `cycle`. */
  hasPacedAt(cycle: Cycles): boolean {
    return headCycle(this.#paced) <= cycle;
  }

  park(pair: QueuePair, reason: number): void {
    pair.parkedFor = reason;
    pair.hasFetchedContext = 0;
  }

  /** Makes a parked QP ready again: its reason for waiting may have gone. */
  unpark(pair: QueuePair, cycle: Cycles): void {
    if (pair.parkedFor === NOT_PARKED) return;
    pair.parkedFor = NOT_PARKED;
    this.makeReady(pair, cycle);
  }

  /** The context for which the QP was parked has been read: it is considered before all others, from `cycle` on. */
  unparkFirst(pair: QueuePair, cycle: Cycles): void {
    pair.parkedFor = NOT_PARKED;
    if (pair.isScheduled !== NOT_SCHEDULED) unlink(pair);
    pair.isScheduled = IN_FRONT;
    append(this.#front, pair, cycle);
    this.#requester.wake(cycle);
  }

  /** The QP has nothing more to send: it is in error or destroyed. */
  remove(pair: QueuePair): void {
    pair.parkedFor = NOT_PARKED;
    pair.hasFetchedContext = 0;
    if (pair.isScheduled === NOT_SCHEDULED) return;
    unlink(pair);
    pair.isScheduled = NOT_SCHEDULED;
  }

  /** Takes the next QP, if one may be considered at `cycle`. */
  take(cycle: Cycles): QueuePair | undefined {
    const ring = this.#ring;
    const delayed = this.#delayed;
    let pair = delayed.scheduleNext;
    while (pair !== delayed && pair.scheduleCycle <= cycle) {
      unlink(pair);
      pair.isScheduled = IN_RING;
      append(ring, pair, cycle);
      pair = delayed.scheduleNext;
    }
    return takeFrom(this.#front, cycle) ?? takeFrom(this.#paced, cycle) ?? takeFrom(ring, cycle);
  }

  /** Earliest cycle at which {@link take} may find a QP. */
  get nextCycle(): Cycles {
    const ring = headCycle(this.#ring);
    const delayed = headCycle(this.#delayed);
    const front = headCycle(this.#front);
    const paced = headCycle(this.#paced);
    const next = ring < delayed ? ring : delayed;
    const other = front < paced ? front : paced;
    return other < next ? other : next;
  }

  /** QPs in all lists. */
  get heldCount(): number {
    return this.#lists.reduce((sum, list) => sum + lengthOf(list), 0);
  }

  inspect(): BlockState {
    return {
      front: slotsOf(this.#front),
      ring: slotsOf(this.#ring),
      delayed: slotsOf(this.#delayed),
      paced: slotsOf(this.#paced),
    };
  }

  reset(): void {
    for (const list of this.#lists) while (list.scheduleNext !== list) this.remove(list.scheduleNext);
  }
}

function slotsOf(list: QueuePair): number[] {
  const slots: number[] = [];
  for (let pair = list.scheduleNext; pair !== list; pair = pair.scheduleNext) slots.push(pair.slot);
  return slots;
}

function lengthOf(list: QueuePair): number {
  let length = 0;
  for (let pair = list.scheduleNext; pair !== list; pair = pair.scheduleNext) length++;
  return length;
}

/** The oldest QP of a list, if it may be considered at `cycle`. */
function takeFrom(list: QueuePair, cycle: Cycles): QueuePair | undefined {
  const pair = list.scheduleNext;
  if (pair === list || pair.scheduleCycle > cycle) return undefined;
  unlink(pair);
  pair.isScheduled = NOT_SCHEDULED;
  return pair;
}

/** Inserts the QP before `list`: as the last of its list if that is a head. */
function append(list: QueuePair, pair: QueuePair, cycle: Cycles): void {
  const last = list.schedulePrevious;
  pair.scheduleCycle = cycle;
  pair.scheduleNext = list;
  pair.schedulePrevious = last;
  last.scheduleNext = pair;
  list.schedulePrevious = pair;
}

function unlink({ scheduleNext, schedulePrevious }: QueuePair): void {
  schedulePrevious.scheduleNext = scheduleNext;
  scheduleNext.schedulePrevious = schedulePrevious;
}

/** Cycle from which the oldest QP of a list may be considered, Infinity when the list is empty. */
function headCycle(list: QueuePair): number {
  const oldest = list.scheduleNext;
  return oldest === list ? NEVER : oldest.scheduleCycle;
}

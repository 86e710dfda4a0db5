/**
 * The event queue of one logical process: every event that is not a clock edge or a record from another process.
 *
 *     the earliest      held by the queue itself, unless it waited in one of the two below
 *     delay < 4.19 us   wheel (event-wheel.ts)
 *     longer            binary heap (event-heap.ts)
 *
 * Most events are scheduled as the earliest and run before the next is scheduled: these touch neither wheel nor heap.
 *
 * Promises: events run in order of (time, phase, schedule order); a cancelled event never runs and its
 * cancellation touches no other event; nothing is allocated per event. Time is an integer count of picoseconds
 * held in a float64.
 */

import { InvariantError, NEVER, type Picoseconds } from '../base/index.ts';
import { EventHeap } from './event-heap.ts';
import { EventWheel } from './event-wheel.ts';
import { type EventEffect, FREE, HELD, IN_HEAP, isBefore, QueuedEvent } from './queued-event.ts';

/** An event's effect. `a` and `b` are the arguments of {@link EventQueue.schedule}. */
export type EventHandler = EventEffect['run'];

/** Identifies one scheduled event. 0 identifies none. */
export type EventRef = number;

/**
 * The part of an instant to which an event belongs: all hardware of an instant precedes its software. Software that shares
 * state (the cores of a host share a kernel) does not commute, so higher numbers are phases, too: some for each core.
 */
export const PHASE_HARDWARE = 0;
export const PHASE_SOFTWARE = 1;
const PHASE_COUNT_MAX = 256;

/** A ref is an index in the pool plus this times the use count, which restarts after 2^31 uses. */
const POOL_COUNT_MAX = 1 << 20;
const REF_MAX = POOL_COUNT_MAX * 2 ** 31;

/** Limit of events of one queue and one phase: 3.5 × 10^13. */
const PHASE_ORDER = 2 ** 53 / PHASE_COUNT_MAX;

export class EventQueue {
  /** Time of the earliest pending event, or Infinity. Kept current by every operation; only the queue changes it. */
  nextPs: Picoseconds = NEVER;
  /** Events run so far. */
  firedCount = 0;
  /** Number of events waiting. */
  pendingCount = 0;

  readonly #effects: EventEffect[] = [];
  #sequence = 0;
  /** Time of the last event run. */
  #nowPs = 0;
  /** Represents no event: never due, after all others. */
  readonly #none = new QueuedEvent(0);
  /** The earliest pending event. */
  #next = this.#none;
  readonly #wheel = new EventWheel();
  readonly #heap = new EventHeap(this.#none);
  /** All event objects, and the first free one. */
  readonly #pool: QueuedEvent[] = [];
  #free = this.#none;
  readonly #shuffle: (() => number) | undefined;

  /**
   * @param capacity events that may be pending before the pool grows (it doubles, to 2^20)
   * @param shuffle if given, orders events of one instant and phase by its values (from 0 to 1) instead of by schedule order:
   *   tests that no block relies on that order
   */
  constructor(capacity = 1024, shuffle?: () => number) {
    this.#shuffle = shuffle;
    this.#growTo(capacity);
  }

  /** Whether the earliest pending event is hardware or software. The caller has checked that one is pending. */
  get nextPhase(): number {
    return this.#next.order < PHASE_ORDER ? PHASE_HARDWARE : PHASE_SOFTWARE;
  }

  /** Registers an effect and returns the number by which events refer to it. */
  addHandler(handler: EventHandler, phase: number = PHASE_HARDWARE): number {
    return this.#effects.push({ run: handler, phaseOrder: phase * PHASE_ORDER }) - 1;
  }

  /**
   * Schedules `handler(a, b)` at `atPs`, a whole number not before the last event run.
   * @throws InvariantError for a past time or one that is not a whole number
   */
  schedule(atPs: Picoseconds, handler: number, a = 0, b = 0): EventRef {
    const delayPs = atPs - this.#nowPs;
    if (delayPs >>> 0 !== delayPs) checkDelay(delayPs, atPs);
    if (this.#free === this.#none) this.#growTo(2 * this.#pool.length);
    const event = this.#free;
    this.#free = event.next;
    const effect = this.#effects[handler]!;
    event.timePs = atPs;
    event.order =
      effect.phaseOrder + (this.#shuffle === undefined ? this.#sequence++ : shuffled(this.#shuffle));
    event.effect = effect;
    event.a = a;
    event.b = b;
    this.pendingCount++;
    const next = this.#next;
    if (isBefore(event, next)) {
      if (next.place === HELD) this.#putAway(next);
      event.place = HELD;
      this.#setNext(event);
    } else {
      this.#putAway(event);
    }
    return event.ref;
  }

  /** Cancels one event. Returns false if it has already run or was cancelled. */
  cancel(ref: EventRef): boolean {
    const event = this.#pool[ref % POOL_COUNT_MAX];
    if (event === undefined || event.ref !== ref || event.place === FREE) return false;
    this.#takeOut(event);
    if (event === this.#next) this.#findNext();
    this.#release(event);
    return true;
  }

  /** Runs the earliest event. The caller has checked that one is pending. */
  runNext(): void {
    const event = this.#next;
    this.#nowPs = event.timePs;
    if (event.place !== HELD) {
      if (event.place !== IN_HEAP) this.#wheel.moveTo(event.place);
      this.#takeOut(event);
    }
    this.#findNext();
    this.#release(event);
    this.firedCount++;
    event.effect.run(event.a, event.b);
  }

  /** Handles a new epoch: see {@link TimeKeeper}. */
  rebase(ps: Picoseconds): void {
    // No event is scheduled before the epoch any more.
    this.#nowPs = Math.max(0, this.#nowPs - ps);
    this.#wheel.rebase(ps);
    for (const event of this.#pool) if (event.place !== FREE) event.timePs -= ps;
    this.nextPs = this.#next.timePs;
  }

  /** Queues an event that is not the earliest. */
  #putAway(event: QueuedEvent): void {
    if (!this.#wheel.add(event, this.#nowPs)) this.#heap.add(event);
  }

  #takeOut(event: QueuedEvent): void {
    if (event.place === IN_HEAP) this.#heap.remove(event);
    else if (event.place !== HELD) this.#wheel.remove(event);
  }

  #findNext(): void {
    let next = this.#wheel.count === 0 ? this.#none : this.#wheel.first;
    if (this.#heap.count > 0) {
      const far = this.#heap.first;
      if (far.timePs < next.timePs || (far.timePs === next.timePs && isBefore(far, next))) next = far;
    }
    this.#setNext(next);
  }

  #setNext(event: QueuedEvent): void {
    this.#next = event;
    this.nextPs = event.timePs;
  }

  /** An event has run or was cancelled: it returns to the pool under another ref. */
  #release(event: QueuedEvent): void {
    const ref = event.ref + POOL_COUNT_MAX;
    event.ref = ref < REF_MAX ? ref : POOL_COUNT_MAX + (ref % POOL_COUNT_MAX);
    event.place = FREE;
    event.next = this.#free;
    this.#free = event;
    this.pendingCount--;
  }

  #growTo(capacity: number): void {
    const pool = this.#pool;
    if (capacity > POOL_COUNT_MAX) throw new RangeError(`more than ${pool.length} events pending`);
    while (pool.length < capacity) {
      const event = new QueuedEvent(POOL_COUNT_MAX + pool.length);
      event.next = this.#free;
      this.#free = event;
      pool.push(event);
    }
  }
}

function shuffled(shuffle: () => number): number {
  return Math.floor(shuffle() * PHASE_ORDER);
}

/** A delay that is not a whole number of picoseconds below 4.3 ms: usually because it is longer. */
function checkDelay(delayPs: Picoseconds, atPs: Picoseconds): void {
  if (delayPs > 0 && Number.isSafeInteger(delayPs) && Number.isSafeInteger(atPs)) return;
  const range = `a whole number from ${atPs - delayPs} to ${Number.MAX_SAFE_INTEGER}`;
  throw new InvariantError('time of an event in ps', atPs, range);
}

/**
 * Chooses which QP sends next: a ring of QPs that have work, served in turn, and a delay line of QPs that have just
 * sent a message and may not be revisited before `sameQpIntervalCycles`.
 *
 *   doorbell ─┐
 *   fetched  ─┼─> ring of ready QPs ──> requester
 *   progress ─┘         ^── delay line <──┘
 *
 * A QP is in the ring or the delay line at most once. A QP that cannot go on is parked with a reason, outside both,
 * and comes back by {@link SendScheduler.unpark} when what it waits for has happened.
 */
import { Fifo } from '../../sim/index.ts';
import type { QpTable } from './qp-table.ts';
import type { QueuePair } from './queue-pair.ts';

/** Why a QP that has work is not scheduled. */
export const NOT_PARKED = 0;
export const PARKED_READ_LIMIT = 1;
export const PARKED_FENCE = 2;
export const PARKED_CREDITS = 3;
export const PARKED_RNR = 4;
export const PARKED_WINDOW = 5;
export const PARKED_DRAINING = 6;
/** A local error was found: what follows waits to be flushed. */
export const PARKED_ERROR = 7;
/** All records are taken, maybe by QPs whose next packets stand in the ring behind this one. */
export const PARKED_RECORDS = 8;
/** A page of an on-demand region has been asked for. */
export const PARKED_PAGE_FAULT = 9;

/** Where a QP is. An entry of another place than the QP's is a leftover, and is passed over. */
const NOWHERE = 0;
const IN_RING = 1;
const IN_DELAY_LINE = 2;

export class SendScheduler {
  readonly #qps: QpTable;
  readonly #ring: Fifo;
  readonly #delayed: Fifo;
  readonly #wakeRequester: (cycle: number) => void;

  constructor(qps: QpTable, wakeRequester: (cycle: number) => void) {
    this.#qps = qps;
    this.#ring = new Fifo(2 * qps.capacity);
    this.#delayed = new Fifo(2 * qps.capacity);
    this.#wakeRequester = wakeRequester;
  }

  /** The QP has work: to be considered from `cycle` on. */
  makeReady(pair: QueuePair, cycle: number): void {
    if (pair.isScheduled !== NOWHERE || pair.parkedFor !== NOT_PARKED) return;
    pair.isScheduled = IN_RING;
    this.#ring.push(pair.slot, cycle);
    this.#wakeRequester(cycle);
  }

  /**
   * The QP has sent a message: it may be considered again at `cycle`, a constant distance from now, and not earlier, even
   * if it has become ready while it was served. The requester, which says so, looks again by itself.
   */
  makeReadyLater(pair: QueuePair, cycle: number): void {
    if (pair.isScheduled === IN_DELAY_LINE) return;
    pair.isScheduled = IN_DELAY_LINE;
    this.#delayed.push(pair.slot, cycle);
  }

  park(pair: QueuePair, reason: number): void {
    pair.parkedFor = reason;
  }

  /** What a parked QP waited for may have happened. */
  unpark(pair: QueuePair, cycle: number): void {
    if (pair.parkedFor === NOT_PARKED) return;
    pair.parkedFor = NOT_PARKED;
    this.makeReady(pair, cycle);
  }

  /** Takes the next QP, if one may be considered at `cycle`. */
  take(cycle: number): QueuePair | undefined {
    const ring = this.#ring;
    const delayed = this.#delayed;
    const { rows } = this.#qps;
    while (delayed.headCycle <= cycle) {
      const pair = rows[delayed.pop()]!;
      if (pair.isScheduled !== IN_DELAY_LINE) continue;
      // Through the ring, and out of it: the only one there.
      if (ring.count === 0 && delayed.headCycle > cycle) {
        pair.isScheduled = NOWHERE;
        return pair;
      }
      pair.isScheduled = IN_RING;
      ring.push(pair.slot, cycle);
    }
    while (ring.headCycle <= cycle) {
      const pair = rows[ring.pop()]!;
      if (pair.isScheduled !== IN_RING) continue;
      pair.isScheduled = NOWHERE;
      return pair;
    }
    return undefined;
  }

  /** Earliest cycle at which {@link take} may find a QP. */
  get nextCycle(): number {
    const ring = this.#ring.headCycle;
    const delayed = this.#delayed.headCycle;
    return ring < delayed ? ring : delayed;
  }

  reset(): void {
    this.#ring.clear();
    this.#delayed.clear();
  }
}

/**
 * Priority-based flow control (PFC) of an Ethernet port, in both directions: pauses of single priorities.
 *
 *     receiver: stop(n) ─▶ PFC, 65535 quanta for n, again at half the time ═▶ the other end sends nothing of priority n
 *               go on   ─▶ PFC, 0 quanta for n                             ═▶
 *
 * Priorities outside the masks that software has set are never paused, and no pause of theirs is obeyed; with empty masks the port has no
 * PFC. What changes within an instant counts from the next picosecond on. Source: IEEE 802.1Q, clause 36; IEEE 802.3-2018, annex 31D.
 */
import { NEVER, type Picoseconds } from '../base/index.ts';
import type { BlockState } from '../sim/index.ts';
import { PRIORITY_COUNT, type PriorityQuanta, priorityPauseFrame } from './control-frames.ts';
import { Deferred } from './deferred.ts';

/** A sender that does not know the priority of its next frame: the pause of any priority stops it. */
export const ANY_PRIORITY = -1;
const NOT_WAITING = -1;

/** One priority: whether the far end is to stop, and until when this end is paused. */
class PriorityPause {
  readonly wanted = new Deferred(false);
  isStopping = false;
  refreshPs = NEVER;
  readonly until = new Deferred(0);
  isPaused = false;
  pausedSincePs = 0;
}

/** Statistics of pauses of single priorities. */
export class PriorityPauseCounters {
  /** PFC frames. */
  sentPriorityPauses = 0;
  receivedPriorityPauses = 0;
  /** Time for which priorities of this end were paused, summed over them, and the part of it in which something waited. */
  priorityPausedPs = 0;
  priorityWaitPs = 0;
}

export interface PriorityPausesSetup {
  readonly now: () => Picoseconds;
  /** Duration of a pause. */
  readonly durationPs: (quanta: number) => Picoseconds;
  readonly pauseQuanta: number;
  /** A frame may be due at an instant. */
  readonly wakeBy: (ps: Picoseconds) => void;
  /** A pause ends earlier than announced. */
  readonly pauseEnds: (fromPs: Picoseconds) => void;
}

export class PriorityPauses {
  readonly counters = new PriorityPauseCounters();
  readonly #setup: PriorityPausesSetup;
  readonly #each = Array.from({ length: PRIORITY_COUNT }, () => new PriorityPause());
  /** Masks of priorities: bit n is priority n. */
  readonly #sends = new Deferred(0);
  readonly #heeds = new Deferred(0);
  /** Instant since which a frame waits for the end of a pause. */
  #waitingSincePs = NOT_WAITING;

  constructor(setup: PriorityPausesSetup) {
    this.#setup = setup;
  }

  /** Sets the priorities whose pauses are sent, and those whose pauses are obeyed. */
  set(sends: number, heeds: number): void {
    const nowPs = this.#setup.now();
    this.#sends.set(sends, nowPs);
    this.#heeds.set(heeds, nowPs);
    this.#each.forEach((own, priority) => {
      if (((heeds >>> priority) & 1) === 0) this.#paused(own, 0, nowPs);
    });
    this.#setup.wakeBy(nowPs + 1);
  }

  /** The last settings by software. */
  get setting(): { readonly sends: number; readonly heeds: number } {
    return { sends: this.#sends.latest, heeds: this.#heeds.latest };
  }

  /** Whether the port sends pauses of any priority. */
  get isSending(): boolean {
    return this.#sends.at(this.#setup.now()) !== 0;
  }

  /** Whether the port has PFC: it obeys pauses of some priority. */
  get isHeeding(): boolean {
    return this.#heeds.at(this.#setup.now()) !== 0;
  }

  /** Stops the far end's packets of a priority, or lets them resume. */
  stop(priority: number, isToStop: boolean): void {
    const nowPs = this.#setup.now();
    this.#each[priority]!.wanted.set(isToStop, nowPs);
    this.#setup.wakeBy(nowPs + 1);
  }

  /** The same for all priorities. */
  stopAll(isToStop: boolean): void {
    for (let priority = 0; priority < PRIORITY_COUNT; priority++) this.stop(priority, isToStop);
  }

  /** The frame that must leave now, counted as sent; or nothing. Requests a call when the next may be due. */
  nextFrame(mac: number): Uint8Array | undefined {
    const nowPs = this.#setup.now();
    const quanta = this.#each.map((own, priority) => this.#quantaDue(own, priority, nowPs));
    const soonestPs = Math.min(...this.#each.map(({ refreshPs }) => refreshPs));
    if (soonestPs < NEVER) this.#setup.wakeBy(soonestPs);
    if (quanta.every((count) => count === undefined)) return undefined;
    this.counters.sentPriorityPauses++;
    return priorityPauseFrame(mac, quanta);
  }

  /** Handles a received PFC frame. */
  receive(quanta: PriorityQuanta): void {
    const nowPs = this.#setup.now();
    const heeds = this.#heeds.at(nowPs);
    this.counters.receivedPriorityPauses++;
    quanta.forEach((count, priority) => {
      if (count !== undefined && ((heeds >>> priority) & 1) === 1)
        this.#paused(this.#each[priority]!, count, nowPs);
    });
  }

  /** End of the pause of a priority as of this instant; a past end means no pause. */
  pausedUntilPs(priority: number): Picoseconds {
    const nowPs = this.#setup.now();
    if (priority !== ANY_PRIORITY) return this.#each[priority]!.until.at(nowPs);
    return Math.max(...this.#each.map(({ until }) => until.at(nowPs)));
  }

  /** A frame was refused because of a pause. */
  waits(): void {
    if (this.#waitingSincePs === NOT_WAITING) this.#waitingSincePs = this.#setup.now();
  }

  /** A frame may be sent. */
  goesOn(): void {
    if (this.#waitingSincePs === NOT_WAITING) return;
    this.counters.priorityWaitPs += this.#setup.now() - this.#waitingSincePs;
    this.#waitingSincePs = NOT_WAITING;
  }

  /** Handles a link that came up or went down: forgets the pauses that either end requested of the other. */
  linkChanged(): void {
    const nowPs = this.#setup.now();
    for (const own of this.#each) {
      own.isStopping = false;
      own.refreshPs = NEVER;
      this.#paused(own, 0, nowPs);
    }
  }

  /** The counters, with running intervals up to now. */
  totals(): PriorityPauseCounters {
    const nowPs = this.#setup.now();
    const totals = Object.assign(new PriorityPauseCounters(), this.counters);
    for (const { isPaused, pausedSincePs, until } of this.#each)
      if (isPaused) totals.priorityPausedPs += Math.min(nowPs, until.latest) - pausedSincePs;
    return totals;
  }

  /** Whether each priority is stopped at the far end, and paused at this one, as masks. */
  inspect(): BlockState {
    const nowPs = this.#setup.now();
    const maskOf = (has: (own: PriorityPause) => boolean): number =>
      this.#each.reduce((mask, own, priority) => mask | (has(own) ? 1 << priority : 0), 0);
    return {
      stopping: maskOf(({ isStopping }) => isStopping),
      paused: maskOf(({ until }) => until.at(nowPs) > nowPs),
    };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.#sends.rebase(ps);
    this.#heeds.rebase(ps);
    if (this.#waitingSincePs !== NOT_WAITING) this.#waitingSincePs -= ps;
    for (const own of this.#each) {
      own.wanted.rebase(ps);
      own.until.rebase(ps, (untilPs) => untilPs - ps);
      own.refreshPs -= ps;
      own.pausedSincePs -= ps;
    }
  }

  /** Quanta that the far end must be sent now for one priority. */
  #quantaDue(own: PriorityPause, priority: number, nowPs: Picoseconds): number | undefined {
    if (own.wanted.latest !== own.wanted.at(nowPs)) this.#setup.wakeBy(nowPs + 1);
    const isToStop = own.wanted.at(nowPs) && ((this.#sends.at(nowPs) >>> priority) & 1) === 1;
    if (!isToStop) {
      if (!own.isStopping) return undefined;
      own.isStopping = false;
      own.refreshPs = NEVER;
      return 0;
    }
    if (own.isStopping && nowPs < own.refreshPs) return undefined;
    const { pauseQuanta, durationPs } = this.#setup;
    own.isStopping = true;
    own.refreshPs = nowPs + durationPs(pauseQuanta / 2);
    return pauseQuanta;
  }

  #paused(own: PriorityPause, quanta: number, nowPs: Picoseconds): void {
    if (own.isPaused && nowPs >= own.until.latest) this.#ended(own, own.until.latest);
    if (quanta === 0) {
      if (!own.isPaused) return;
      this.#ended(own, nowPs);
      own.until.set(nowPs, nowPs);
      this.#setup.pauseEnds(nowPs + 1);
      return;
    }
    if (!own.isPaused) own.pausedSincePs = nowPs;
    own.isPaused = true;
    const untilPs = nowPs + this.#setup.durationPs(quanta);
    const isShorter = untilPs < own.until.latest;
    own.until.set(untilPs, nowPs);
    if (isShorter) this.#setup.pauseEnds(untilPs);
  }

  #ended(own: PriorityPause, endPs: Picoseconds): void {
    own.isPaused = false;
    this.counters.priorityPausedPs += endPs - own.pausedSincePs;
  }
}

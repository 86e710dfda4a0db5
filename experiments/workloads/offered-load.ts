/**
 * An offered load: messages arrive at a rate, whether or not earlier ones have completed (an open loop).
 *
 *     arrivals ──► backlog, bounded ──► send queues ──► completion
 *        │             └─ full: the arrival is dropped and counted
 *        └─ the latency of a message begins here, not where it is posted
 *
 * A closed loop posts the next message when one completes. A slow device is then offered less, and a stall counts once
 * although it delays all messages that would have arrived meanwhile (G. Tene calls this coordinated omission). Here a
 * stall delays every message that arrives during it. Source of `paced`: perftest's --rate_limit.
 */
import { psPerSecond } from '../../base/index.ts';
import { Random } from '../../sim/index.ts';

export const arrivalKinds = ['poisson', 'paced'] as const;
export type ArrivalKind = (typeof arrivalKinds)[number];

/** The load that all programs of one side offer together. */
export interface LoadPlan {
  /** Messages per second. */
  readonly perSecond: number;
  readonly arrivals: ArrivalKind;
  /** Messages of a program that may wait to be posted. */
  readonly backlog: number;
}

interface LoadShare {
  readonly thread: number;
  readonly threads: number;
  readonly oneIn?: number;
}

export const loadDefaults = { arrivals: 'poisson', backlog: 1024 } as const;

/** The arrivals at a program, and their outcomes. */
export interface LoadCounts {
  /** Messages that arrived, including dropped ones. */
  readonly arrivedCount: number;
  readonly droppedCount: number;
  /** The greatest number of messages waiting to be posted at one time, and the number at the last arrival. */
  readonly backlogMost: number;
  readonly backlogAtEnd: number;
  /** From the start to the last arrival. */
  readonly arrivalsPs: number;
}

export class OfferedLoad {
  readonly #meanPs: number;
  readonly #isPaced: boolean;
  readonly #random: Random;
  readonly #startPs: number;
  /** Total number of messages to accept. */
  readonly #total: number;
  /** Arrival times of the messages that wait, in a ring. */
  readonly #waiting: Float64Array;
  #acceptedCount = 0;
  #takenCount = 0;
  #droppedCount = 0;
  #backlogMost = 0;
  #backlogAtEnd = 0;
  /** Offset of the first paced arrival within an interval, so that programs alternate. */
  readonly #phase: number;
  /** The next arrival, with its fraction of a picosecond. */
  #next: number;

  /**
   * @param total messages to accept: dropped ones do not count
   * @param share this program's index among those that offer the load together, and its part of the load: one in
   * `oneIn`, left
   *   out for an equal one
   */
  constructor(
    { perSecond, arrivals, backlog }: LoadPlan,
    total: number,
    random: Random,
    startPs: number,
    share: LoadShare = { thread: 0, threads: 1 },
  ) {
    this.#meanPs = (psPerSecond * (share.oneIn ?? share.threads)) / perSecond;
    this.#isPaced = arrivals === 'paced';
    this.#random = new Random(random.uint32(), 'offered load');
    this.#startPs = startPs;
    this.#total = total;
    this.#waiting = new Float64Array(backlog);
    this.#phase = (share.thread + 1) / share.threads;
    this.#next = startPs + (this.#isPaced ? this.#meanPs * this.#phase : this.#gap());
  }

  /** Instant of the next arrival; undefined if all messages have arrived. */
  get nextPs(): number | undefined {
    return this.#acceptedCount < this.#total ? Math.round(this.#next) : undefined;
  }

  /** Messages that wait to be posted. */
  get waitingCount(): number {
    return this.#acceptedCount - this.#takenCount;
  }

  /** Accepts or drops the messages that arrive up to an instant. */
  admit(untilPs: number): void {
    while (this.#acceptedCount < this.#total && Math.round(this.#next) <= untilPs) {
      if (this.waitingCount < this.#waiting.length) {
        this.#waiting[this.#acceptedCount++ % this.#waiting.length] = Math.round(this.#next);
        this.#backlogMost = Math.max(this.#backlogMost, this.waitingCount);
      } else this.#droppedCount++;
      if (this.#acceptedCount === this.#total) this.#backlogAtEnd = this.waitingCount;
      else this.#next = this.#following();
    }
  }

  /**
   * Dequeues the message that has waited longest.
   * @returns its arrival time
   */
  take(): number {
    return this.#waiting[this.#takenCount++ % this.#waiting.length]!;
  }

  counts(): LoadCounts {
    return {
      arrivedCount: this.#acceptedCount + this.#droppedCount,
      droppedCount: this.#droppedCount,
      backlogMost: this.#backlogMost,
      backlogAtEnd: this.#backlogAtEnd,
      arrivalsPs: Math.round(this.#next) - this.#startPs,
    };
  }

  #following(): number {
    if (!this.#isPaced) return this.#next + this.#gap();
    return this.#startPs + this.#meanPs * (this.#acceptedCount + this.#droppedCount + this.#phase);
  }

  /** An exponentially distributed time between arrivals of a Poisson process. */
  #gap(): number {
    return -this.#meanPs * Math.log1p(-this.#random.unit());
  }
}

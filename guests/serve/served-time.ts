/**
 * When simulated time passes on a machine whose host is real.
 *
 *     busy   something is due within busyGapPs     as fast as the computer can, in slices of wall time
 *     idle   the next thing due is further off     as the wall clock does, times the scale
 *
 * So a pipeline is never held up by a clock, and a timer (a retry, an interrupt's moderation) takes the time it says. Time
 * that passed on the wall while the device was busy is not made up for: a simulation slower than the hardware is a slow
 * device, not one whose timers all expire. This is the only place of the project that reads the wall clock to decide
 * what the model does; what the model then does depends on nothing else.
 */
import { NEVER, psPerUs } from '../../base/index.ts';
import { type ExactPs, epochLengthPs, epochStepPs, exactPs, type SteppedRunner } from '../../sim/index.ts';
import type { ServingConfig } from './parameters.ts';

/** Milliseconds of a clock that only advances. */
export type WallClock = () => number;

const PS_PER_MS = 1e9;
/** The wall clock is read once in so many steps while a load waits. */
const STEPS_PER_POLL = 16;
/** Idleness is passed in steps that an epoch has room for. */
const idleStepPs = 2 ** 51;
/** Wall time of a line that does not exist: whatever is asked of it lags too far behind. */
const NOT_FOLLOWED = Number.NEGATIVE_INFINITY;

/** Something an access waits for. */
export interface Awaited {
  readonly isDone: boolean;
}

export class ServedTime {
  readonly runner: SteppedRunner;
  /** Slices of work done, and those after which the device was still busy. */
  sliceCount = 0;
  cutSliceCount = 0;
  readonly #config: ServingConfig;
  readonly #scale: number;
  readonly #wall: WallClock;
  readonly #epochPs: number;
  /** Simulated time that passed because the wall clock did: whole microseconds, and picoseconds in addition to them. */
  #followedUs = 0;
  #followedPs = 0;
  /** The line that simulated time follows while idle: an instant of the epoch, and the wall time that belongs to it. */
  #linePs = 0;
  #lineMs = NOT_FOLLOWED;
  #isIdle = false;
  /** Wall time at which the access that is carried out has waited enough; NEVER before it has waited long. */
  #accessEndMs = NEVER;

  /**
   * @param scale simulated time per wall time while idle, above zero
   * @param epochPs how long an epoch of the runner becomes
   */
  constructor(
    runner: SteppedRunner,
    config: ServingConfig,
    scale: number,
    wall: WallClock,
    epochPs = epochLengthPs,
  ) {
    this.runner = runner;
    this.#config = config;
    this.#scale = scale;
    this.#wall = wall;
    this.#epochPs = epochPs;
  }

  /** The instant of the epoch. */
  get nowPs(): number {
    return this.runner.nowPs;
  }

  /** Simulated picoseconds that passed because the wall clock did. */
  get followedPs(): ExactPs {
    return exactPs(this.#followedUs, this.#followedPs);
  }

  /** To be called before something is done to the machine from outside: while it was idle, time has passed. */
  arrive(): void {
    this.#accessEndMs = NEVER;
    if (!this.#isIdle) return;
    this.#beginEpoch();
    const { nowPs, nextPs } = this.runner;
    const targetPs = this.#lineAt(this.#wall());
    // What is due before that is work, and done in slices.
    if (targetPs > nowPs) this.#pass(Math.min(targetPs, nextPs) - nowPs);
  }

  /** Something was done to the machine from outside. */
  touched(): void {
    this.#isIdle = false;
    this.runner.touched();
  }

  /** No guest is there: from here to the next access no time passes. */
  standStill(): void {
    this.#isIdle = false;
    this.#lineMs = NOT_FOLLOWED;
  }

  /**
   * Works until the device is idle, or for `budgetMs` of wall time.
   * @returns milliseconds of wall time until something is due: 0 while the device is busy, Infinity when nothing is
   */
  work(budgetMs: number): number {
    const { runner } = this;
    const endMs = this.#wall() + budgetMs;
    this.sliceCount++;
    for (let nowMs = endMs - budgetMs; ; nowMs = this.#wall()) {
      this.#beginEpoch();
      if (runner.nextPs - runner.nowPs > this.#config.busyGapPs) {
        const waitMs = this.#follow(nowMs);
        if (waitMs > 0) return waitMs;
      }
      if (nowMs > endMs) {
        this.cutSliceCount++;
        return 0;
      }
      runner.runTo(runner.nowPs + this.#config.stepPs);
    }
  }

  /**
   * Runs until `awaited` is done.
   * @returns false when `accessLimitMs` of wall time were not enough for all waits together since {@link arrive}
   */
  runUntil(awaited: Awaited): boolean {
    const { runner } = this;
    const { loadStepPs, accessLimitMs } = this.#config;
    for (let step = 1; ; step++) {
      this.#beginEpoch();
      // Where nothing happens there is nothing to step through.
      const nextPs = runner.nextPs;
      if (nextPs === NEVER && step > 1) return awaited.isDone;
      runner.runTo(Math.max(runner.nowPs + loadStepPs, nextPs === NEVER ? 0 : nextPs + 1));
      if (awaited.isDone) return true;
      if (step % STEPS_PER_POLL !== 0) continue;
      const nowMs = this.#wall();
      if (this.#accessEndMs === NEVER) this.#accessEndMs = nowMs + accessLimitMs;
      else if (nowMs > this.#accessEndMs) return false;
    }
  }

  /** Runs for `durationPs`, or until nothing is due within it, or for `accessLimitMs` of wall time. */
  runFor(durationPs: number): void {
    const { runner } = this;
    const limitPs = runner.nowPs + durationPs;
    const endMs = this.#wall() + this.#config.accessLimitMs;
    while (runner.nowPs < limitPs) {
      runner.runTo(
        runner.nextPs >= limitPs ? limitPs : Math.min(limitPs, runner.nowPs + this.#config.stepPs),
      );
      if (this.#wall() > endMs) return;
    }
  }

  /** Idle: returns how long still, in milliseconds; or lets time pass to what is due now, and returns 0. */
  #follow(nowMs: number): number {
    if (!this.#isIdle) this.#beginToFollow(nowMs);
    const { nextPs } = this.runner;
    if (nextPs === NEVER) return NEVER;
    const linePs = this.#lineAt(nowMs);
    if (linePs < nextPs) return (nextPs - linePs) / (PS_PER_MS * this.#scale);
    this.#pass(nextPs - this.runner.nowPs);
    this.#isIdle = false;
    return 0;
  }

  /** Goes on along the line it has followed while it is only a little behind; else begins a new one. */
  #beginToFollow(nowMs: number): void {
    const { nowPs } = this.runner;
    const lagPs = this.#lineAt(nowMs) - nowPs;
    this.#isIdle = true;
    if (lagPs >= 0 && lagPs <= this.#config.lagMaxPs) return;
    this.#linePs = nowPs;
    this.#lineMs = nowMs;
  }

  #lineAt(nowMs: number): number {
    return this.#linePs + Math.floor((nowMs - this.#lineMs) * PS_PER_MS * this.#scale);
  }

  /** Time passes in which nothing is due: days of it may have gone by since the last access. */
  #pass(durationPs: number): void {
    const followedPs = this.#followedPs + (durationPs % psPerUs);
    this.#followedUs += Math.floor(durationPs / psPerUs) + Math.floor(followedPs / psPerUs);
    this.#followedPs = followedPs % psPerUs;
    for (let leftPs = durationPs; leftPs > 0; ) {
      const stepPs = Math.min(leftPs, idleStepPs);
      this.runner.runTo(this.runner.nowPs + stepPs);
      this.#beginEpoch();
      leftPs -= stepPs;
    }
  }

  /** Between two runs, with no instant at hand: begins a new epoch if this one has become long. */
  #beginEpoch(): void {
    if (this.runner.nowPs < this.#epochPs) return;
    const shiftPs = epochStepPs(this.runner.nowPs);
    this.runner.rebase(shiftPs);
    this.#linePs -= shiftPs;
  }
}

/**
 * Decides when simulated time passes on a machine whose host is real.
 *
 *     busy   an event is due within busyGapPs      as fast as the computer can, in slices of wall time
 *     idle   the next event is later              as the wall clock does, times the scale
 *
 * So a clock never delays a pipeline, and a timer (a retry, an interrupt's moderation) takes its specified time. Wall
 * time that passed while the device was busy is not caught up: a simulation slower than the hardware is a slow device,
 * not one whose timers all expire. This is the only place in the project where the wall clock influences the model; the
 * model then depends on nothing else.
 */
import { NEVER, psPerUs } from '../../base/index.ts';
import { type ExactPs, epochLengthPs, epochStepPs, exactPs, type SteppedRunner } from '../../sim/index.ts';
import type { Awaited, EmulationTime } from './emulation-time.ts';
import type { ServingConfig } from './parameters.ts';

/** Milliseconds of a clock that only advances. */
export type WallClock = () => number;

const PS_PER_MS = 1e9;
/** Number of steps between two readings of the wall clock while a load waits. */
const STEPS_PER_POLL = 16;
/** Idle time passes in steps that fit an epoch. */
const idleStepPs = 2 ** 51;
/** Wall time of a nonexistent line: every query finds that it lags too far. */
const NOT_FOLLOWED = Number.NEGATIVE_INFINITY;

export class ServedTime implements EmulationTime {
  readonly runner: SteppedRunner;
  /** Slices of work done, and those after which the device was still busy. */
  sliceCount = 0;
  cutSliceCount = 0;
  readonly #config: ServingConfig;
  readonly #scale: number;
  readonly #wall: WallClock;
  readonly #epochPs: number;
  /** Simulated time that passed because wall-clock time did: whole microseconds, and additional picoseconds. */
  #followedUs = 0;
  #followedPs = 0;
  /** The line that simulated time follows while idle: an instant of the epoch, and its wall time. */
  #linePs = 0;
  #lineMs = NOT_FOLLOWED;
  #isIdle = false;
  /** Wall time at which the present access has waited long enough; NEVER before it has waited long. */
  #accessEndMs = NEVER;

  /**
   * @param scale simulated time per wall time while idle, above zero
   * @param epochPs maximum length of an epoch of the runner
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

  /** Simulated picoseconds that passed because wall-clock time did. */
  get followedPs(): ExactPs {
    return exactPs(this.#followedUs, this.#followedPs);
  }

  /** Called before an outside action on the machine: if it was idle, time has passed. */
  arrive(): void {
    this.#accessEndMs = NEVER;
    if (!this.#isIdle) return;
    this.#beginEpoch();
    const { nowPs, nextPs } = this.runner;
    const targetPs = this.#lineAt(this.#wall());
    // Events due before that are work, done in slices.
    if (targetPs > nowPs) this.#pass(Math.min(targetPs, nextPs) - nowPs);
  }

  /** The machine was changed from outside. */
  touched(): void {
    this.#isIdle = false;
    this.runner.touched();
  }

  /** No guest is present: no time passes until the next access. */
  standStill(): void {
    this.#isIdle = false;
    this.#lineMs = NOT_FOLLOWED;
  }

  /**
   * Works until the device is idle, or for `budgetMs` of wall time.
   * @returns milliseconds of wall time until the next event: 0 while the device is busy, Infinity if none is due
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
   * @returns false if `accessLimitMs` of wall time were not enough for all waits together since {@link arrive}
   */
  runUntil(awaited: Awaited): boolean {
    const { runner } = this;
    const { loadStepPs, accessLimitMs } = this.#config;
    for (let step = 1; ; step++) {
      this.#beginEpoch();
      // Without events, no stepping is needed.
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

  /** Idle: returns the remaining milliseconds; or lets time pass up to the event due now, and returns 0. */
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

  /** Continues along the present line if time is only slightly late; otherwise begins a new line. */
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

  /** Lets time pass without due events: days may have passed since the last access. */
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

  /** Between two runs, without a kept instant: begins a new epoch if this one has become long. */
  #beginEpoch(): void {
    if (this.runner.nowPs < this.#epochPs) return;
    const shiftPs = epochStepPs(this.runner.nowPs);
    this.runner.rebase(shiftPs);
    this.#linePs -= shiftPs;
  }
}

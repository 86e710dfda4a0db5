/**
 * Simulated time of devices whose hosts are PCs of this process: there is one clock, the PCs', and the devices follow it.
 *
 *     a PC runs a quantum ─► its stores, at their instant ─► the devices run to the PC's instant ─► interrupts
 *     a load                 the devices run until its completion, and the PC's clock with them
 *
 * No wall clock is read. With several PCs the devices are at the instant of the last of them, or at the end of the last load,
 * whichever is later: a PC whose instant is earlier sees what they do at most one quantum late.
 */
import { NEVER, psPerUs } from '../../base/index.ts';
import { type ExactPs, epochLengthPs, epochStepPs, exactPs, type SteppedRunner } from '../../sim/index.ts';
import type { Awaited, EmulationTime } from '../serve/index.ts';

const PS_PER_MS = 1e9;
/** Simulated time between two checks whether a load has its answer. */
const loadStepPs = 10_000;
/** A load without an answer for this time is given up, as a root port's completion time-out does (PCIe 7.5.3.16: 50 ms). */
const loadLimitPs = 50_000_000_000;

export class LockstepTime implements EmulationTime {
  readonly runner: SteppedRunner;
  /** Nothing here follows a wall clock. */
  readonly followedPs: ExactPs = exactPs(0, 0);
  sliceCount = 0;
  readonly cutSliceCount = 0;
  /** Instant since power-on to which the devices may run. */
  #targetPs = 0;
  /** Instant at which the present access began. */
  #accessPs = 0;

  constructor(runner: SteppedRunner) {
    this.runner = runner;
  }

  /** The instant of the epoch. */
  get nowPs(): number {
    return this.runner.nowPs;
  }

  /** The devices' instant since power-on. */
  get instantPs(): number {
    return this.runner.epochUs * psPerUs + this.runner.nowPs;
  }

  get nowMs(): number {
    return this.instantPs / PS_PER_MS;
  }

  /** Instant since power-on of the next thing that is due, Infinity if nothing is due. */
  get nextPs(): number {
    const { nextPs } = this.runner;
    return nextPs === NEVER ? Number.POSITIVE_INFINITY : this.runner.epochUs * psPerUs + nextPs;
  }

  /** The PCs have come to this instant since power-on: {@link work} runs the devices there. */
  follow(instantPs: number): void {
    this.#targetPs = Math.max(this.#targetPs, instantPs);
  }

  arrive(): void {
    this.#runTo(this.#targetPs);
    this.#accessPs = this.instantPs;
  }

  touched(): void {
    this.runner.touched();
  }

  standStill(): void {}

  /** Runs the devices to the instant that they follow. @returns milliseconds until the next event */
  work(): number {
    this.sliceCount++;
    this.#runTo(this.#targetPs);
    return (this.nextPs - this.instantPs) / PS_PER_MS;
  }

  runUntil(awaited: Awaited): boolean {
    while (!awaited.isDone) {
      const { nextPs, instantPs } = this;
      if (nextPs === Number.POSITIVE_INFINITY || instantPs - this.#accessPs > loadLimitPs) return false;
      this.#runTo(Math.max(instantPs + loadStepPs, nextPs + 1));
    }
    return true;
  }

  runFor(durationPs: number): void {
    this.#runTo(this.instantPs + durationPs);
  }

  #runTo(instantPs: number): void {
    while (instantPs > this.instantPs) {
      const { runner } = this;
      if (runner.nowPs >= epochLengthPs) runner.rebase(epochStepPs(runner.nowPs));
      runner.runTo(Math.min(instantPs - runner.epochUs * psPerUs, epochLengthPs + 1));
    }
  }
}

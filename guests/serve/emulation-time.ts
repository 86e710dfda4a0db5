/** The seams by which a slot and an emulation let simulated time pass; the classes that decide when it does are on the other side. */
import type { ExactPs, SteppedRunner } from '../../sim/index.ts';

/** An event that an access awaits. */
export interface Awaited {
  readonly isDone: boolean;
}

/** Time as the accesses of a slot use it. */
export interface SlotTime {
  /** The instant of the epoch. */
  readonly nowPs: number;
  /** Called before an outside action on the machine: time may have passed. */
  arrive(): void;
  /** The machine was changed from outside. */
  touched(): void;
  /** Runs until `awaited` is done. @returns false if it is given up */
  runUntil(awaited: Awaited): boolean;
  /** Runs for `durationPs`, or until nothing is due within it. */
  runFor(durationPs: number): void;
}

/** Time as an emulation uses it, between accesses. */
export interface EmulationTime extends SlotTime {
  readonly runner: SteppedRunner;
  /** Simulated picoseconds that passed because wall-clock time did. */
  readonly followedPs: ExactPs;
  /** Slices of work done, and those after which the device was still busy. */
  readonly sliceCount: number;
  readonly cutSliceCount: number;
  /** No guest is present: no time passes until the next access. */
  standStill(): void;
  /**
   * Works until the device is idle, or for `budgetMs` of wall time.
   * @returns milliseconds until the next event: 0 while the device is busy, Infinity if none is due
   */
  work(budgetMs: number): number;
}

/**
 * Errors that end a run. Each error names the logical processes concerned and their simulated time, so that it can be
 * reproduced by running to that instant.
 */
import { textOfThrown } from '../base/index.ts';

import type { ExactPs } from './epoch.ts';

/** Root of the errors that end a run. */
export class RunError extends Error {
  override readonly name: string = 'RunError';
}

/** A logical process, and its instant. */
export interface ProcessInstant {
  readonly name: string;
  /** Picoseconds since power-on. */
  readonly instantPs: ExactPs;
}

/** Code of a logical process threw an error, in this thread or in another one. */
export class ProcessFailedError extends RunError {
  override readonly name = 'ProcessFailedError';
  readonly processName: string;
  /** Simulated time of the failing process in picoseconds. */
  readonly instantPs: ExactPs;
  /** The thrown error in words; the thrown value itself is the `cause` in the thread that threw it. */
  readonly reason: string;

  constructor(processName: string, instantPs: ExactPs, reason: string, options?: ErrorOptions) {
    super(`${processName} failed at ${instantPs} ps: ${reason}`, options);
    this.processName = processName;
    this.instantPs = instantPs;
    this.reason = reason;
  }
}

/** A worker thread ended (terminated, out of memory) while the others still needed it. */
export class WorkerLostError extends RunError {
  override readonly name = 'WorkerLostError';
  /** The first logical process of the worker. */
  readonly processName: string;
  /** The last instant, in picoseconds, that the process is known to have reached. */
  readonly instantPs: ExactPs;

  constructor(processName: string, instantPs: ExactPs, reason: string) {
    super(`the worker of ${processName} was lost after ${instantPs} ps: ${reason}`);
    this.processName = processName;
    this.instantPs = instantPs;
  }
}

/** No work is left anywhere, yet some programs have not ended: they wait for an event that cannot occur. */
export class DeadlockError extends RunError {
  override readonly name = 'DeadlockError';
  /** The processes whose programs have not ended, each with the instant of its last action. */
  readonly waiting: readonly ProcessInstant[];
  /** Sentences, one for each program that has not ended, that name its call and the object for which it waits. */
  readonly programs: readonly string[];

  /**
   * @param what the problem, in words
   */
  constructor(
    waiting: readonly ProcessInstant[],
    what = 'nothing is left to do',
    programs: readonly string[] = [],
  ) {
    const places = waiting.map(({ name, instantPs }) => `${name} at ${instantPs} ps`);
    super([`${what}, but programs have not ended: ${places.join(', ')}`, ...programs].join('; '));
    this.waiting = waiting;
    this.programs = programs;
  }
}

/** The run took more steps than allowed, and programs have not ended: some activity repeats without progress. */
export class StepLimitError extends RunError {
  override readonly name = 'StepLimitError';
  /** Steps taken: events, records and clock edges. */
  readonly stepCount: number;
  /** The process that took most of the last steps. */
  readonly busiest: string;
  /** Sentences, one for each program that has not ended, that name its call and the object for which it waits. */
  readonly programs: readonly string[];

  constructor(stepCount: number, busiest: string, instantPs: ExactPs, programs: readonly string[]) {
    const what = `programs have not ended after ${stepCount} steps, at ${instantPs} ps`;
    super([what, `${busiest} takes most of them`, ...programs].join('; '));
    this.stepCount = stepCount;
    this.busiest = busiest;
    this.programs = programs;
  }
}

/** The run was called off from outside. */
export class RunAbortedError extends RunError {
  override readonly name = 'RunAbortedError';
}

/** Wraps an error thrown by a process's code; errors that end runs pass unchanged. */
export function processFailure(processName: string, instantPs: ExactPs, thrown: unknown): RunError {
  if (thrown instanceof RunError) return thrown;
  return new ProcessFailedError(processName, instantPs, textOfThrown(thrown), { cause: thrown });
}

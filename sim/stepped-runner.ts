/**
 * Runs logical processes synchronously, to one instant after another, while a caller outside simulated time acts on them in
 * between: a real guest's accesses, or a debugger's.
 *
 *     runTo(t1) ── outside does something, at t1 ── touched() ── runTo(t2) ── …
 *
 * Between runs all processes are at {@link SteppedRunner.nowPs} and everything before it is done. So an action on any of them
 * begins at that instant and can reach no process in its past.
 *
 * Programs are async, and this runner cannot await them: if processes have programs, the caller provides a function that brings
 * resumed ones to their next wait within a call.
 */

import { ConfigurationError, InvariantError, type Picoseconds } from '../base/index.ts';
import { type ExactPs, exactPs } from './epoch.ts';
import type { LogicalProcess } from './logical-process.ts';
import { ProcessGroup } from './process-group.ts';
import { processFailure, type RunError } from './run-errors.ts';

const NONE = -1;

/** Lets programs of a process that were resumed run until each waits for simulated time again, or sets `process.failure`. */
export type ProgramStep = (process: LogicalProcess) => void;

const refusePrograms: ProgramStep = ({ name }) => {
  throw new InvariantError(`programs of ${name}`, 'running', 'none');
};

export class SteppedRunner {
  /** The instant of the epoch at which all processes are between runs, in picoseconds. */
  nowPs = 0;
  readonly #group: ProcessGroup;
  readonly #step: ProgramStep;
  #failure: RunError | undefined;

  /**
   * @param processes all of the machine, completely wired
   * @param step left out if no process runs programs
   * @throws ConfigurationError if a channel leads elsewhere
   */
  constructor(processes: readonly LogicalProcess[], step: ProgramStep = refusePrograms) {
    this.#group = new ProcessGroup(processes);
    this.#step = step;
    const { outward, inward } = this.#group;
    if (outward.length + inward.length > 0) {
      const open = processes[(outward[0] ?? inward[0])!.process]!;
      throw new ConfigurationError(
        `channel of ${open.name}`,
        'open',
        'connected to a process of this runner',
      );
    }
    this.touched();
  }

  /** Turns taken so far. */
  get turnCount(): number {
    return this.#group.turnCount;
  }

  /** Start of the epoch: microseconds since the first. */
  get epochUs(): number {
    return this.#group.processes[0]!.epochUs;
  }

  /** {@link nowPs} since the first epoch began. */
  get instantPs(): ExactPs {
    return exactPs(this.epochUs, this.nowPs);
  }

  /** Earliest due instant, Infinity if nothing is due; valid after {@link touched} or a run. */
  get nextPs(): Picoseconds {
    return this.#group.earliestPs;
  }

  /** Begins a new epoch: subtracts `ps`, a whole number of microseconds up to now, from all instants ({@link LogicalProcess.rebase}). */
  rebase(ps: number): void {
    for (const process of this.#group.processes) process.rebase(ps);
    this.nowPs -= ps;
    this.touched();
  }

  /** The processes were changed from outside: updates their due instants. */
  touched(): void {
    const group = this.#group;
    for (let index = 0; index < group.processes.length; index++) group.finishTurn(index);
  }

  /**
   * Runs everything due strictly before `limitPs`; then every process stops there. A past limit does nothing.
   * @throws RunError if code of a process throws; after that every run throws it again
   */
  runTo(limitPs: Picoseconds): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (limitPs <= this.nowPs) return;
    const group = this.#group;
    group.stopPs = limitPs;
    try {
      for (let resumed = group.runTurns(); resumed !== NONE; resumed = group.runTurns()) {
        const process = group.processes[resumed]!;
        this.#step(process);
        if (process.failure !== undefined) throw process.failure;
        group.finishTurn(resumed);
      }
    } catch (thrown) {
      const { name, instantPs } = group.processes[group.current]!;
      this.#failure = processFailure(name, instantPs, thrown);
      throw this.#failure;
    }
    for (let index = 0; index < group.processes.length; index++) group.processes[index]!.nowPs = limitPs;
    this.nowPs = limitPs;
  }
}

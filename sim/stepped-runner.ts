/**
 * Runs logical processes synchronously, to one instant after another, while a caller outside of simulated time does things
 * to them in between: a real guest's accesses, a debugger's.
 *
 *     runTo(t1) ── outside does something, at t1 ── touched() ── runTo(t2) ── …
 *
 * Between runs all processes stand at {@link SteppedRunner.nowPs} and everything before it is done, so whatever is done
 * to any of them then begins at that instant and can reach no process in its past.
 *
 * Programs are async, and nothing here can await them: where processes have some, the caller says how those that were resumed
 * come to their next wait within a call.
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
  /** The instant of the epoch at which all processes stand between runs, in picoseconds. */
  nowPs = 0;
  readonly #group: ProcessGroup;
  readonly #step: ProgramStep;
  #failure: RunError | undefined;

  /**
   * @param processes all of the machine, completely wired
   * @param step left out where no process runs programs
   * @throws ConfigurationError when a channel leads elsewhere
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

  /** Begin of the epoch: microseconds since the first. */
  get epochUs(): number {
    return this.#group.processes[0]!.epochUs;
  }

  /** {@link nowPs} since the first epoch began. */
  get instantPs(): ExactPs {
    return exactPs(this.epochUs, this.nowPs);
  }

  /** Earliest instant at which anything is due, Infinity when nothing is; after {@link touched} or a run. */
  get nextPs(): Picoseconds {
    return this.#group.earliestPs;
  }

  /**
   * Begins a new epoch: all instants are `ps` less, a whole number of microseconds up to now
   * ({@link LogicalProcess.rebase}).
   */
  rebase(ps: number): void {
    for (const process of this.#group.processes) process.rebase(ps);
    this.nowPs -= ps;
    this.touched();
  }

  /** Something was done to the processes from outside: learns what is due because of it. */
  touched(): void {
    const group = this.#group;
    for (let index = 0; index < group.processes.length; index++) group.finishTurn(index);
  }

  /**
   * Runs everything due strictly before `limitPs`; then every process stands there. A limit that is past does nothing.
   * @throws RunError when code of a process throws; after that every run throws it again
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

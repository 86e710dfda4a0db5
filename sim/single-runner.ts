/**
 * Runs all logical processes of a machine in one thread: the reference that every other placement must equal.
 *
 * Stop rules, the same in every runner:
 * - `runTo(limit)`: every process executes all that is due strictly before the limit, and then stops at it.
 * - `runUntilEnded(drain, limit)`: when the members of all processes have ended, the last at t, the run stops at t + drain (all
 *   that is due strictly before) and every process stops there; or at the limit, if that is earlier. No process ever passes
 *   that instant, because none runs further than the drain beyond work that may still run elsewhere. If no work is left but
 *   members have not ended, the run fails with a DeadlockError.
 */

import { ConfigurationError, NEVER, type Picoseconds } from '../base/index.ts';
import type { LogicalProcess } from './logical-process.ts';
import { ProcessGroup } from './process-group.ts';
import { DeadlockError, processFailure, RunAbortedError, type RunError } from './run-errors.ts';

/** Outcome of a run. */
export interface RunOutcome {
  /** `ended`: all members have ended; `limit`: the time limit was reached first. */
  readonly reason: 'ended' | 'limit';
  /** The instant at which every process has stopped, in picoseconds. */
  readonly stoppedPs: Picoseconds;
}

/** A runner of a machine, for any placement of its logical processes. */
export interface Runner {
  /** Runs everything due strictly before `limitPs`; then every process stops there. */
  runTo(limitPs: Picoseconds): Promise<RunOutcome>;
  /** Runs until all members have ended and `drainPs` (at least 1) more, or to `limitPs`. */
  runUntilEnded(drainPs: Picoseconds, limitPs?: Picoseconds): Promise<RunOutcome>;
  /**
   * Begins a new epoch, between two runs: subtracts `ps`, a whole number of microseconds up to now, from all instants ({@link
   * LogicalProcess.rebase}). Every runner of a machine does so before any runs again.
   */
  rebase(ps: number): void;
  /** Earliest due instant in the processes of this runner, between two runs; Infinity if nothing is due. */
  readonly nextPs: Picoseconds;
}

export class SingleRunner implements Runner {
  readonly #group: ProcessGroup;
  readonly #pause: () => Promise<void> | undefined;
  #failure: RunError | undefined;
  #abortReason: string | undefined;

  /**
   * @param processes all of the machine, completely wired
   * @param pause yields the thread to other waiting work, if that has waited long: called every few milliseconds of a run
   * @throws ConfigurationError if a channel leads elsewhere
   */
  constructor(
    processes: readonly LogicalProcess[],
    pause: () => Promise<void> | undefined = () => undefined,
  ) {
    this.#group = new ProcessGroup(processes);
    this.#pause = pause;
    for (const process of processes) process.isCalledOff = () => this.#abortReason !== undefined;
    const { outward, inward } = this.#group;
    if (outward.length + inward.length > 0) {
      const open = processes[(outward[0] ?? inward[0])!.process]!;
      throw new ConfigurationError(
        `channel of ${open.name}`,
        'open',
        'connected to a process of this runner',
      );
    }
  }

  /** The instant of the epoch at which all processes are between runs, in picoseconds. */
  get nowPs(): Picoseconds {
    return this.#group.processes.reduce((latest, { nowPs }) => Math.max(latest, nowPs), 0);
  }

  /** Turns taken so far: the cost of the runner itself. */
  get turnCount(): number {
    return this.#group.turnCount;
  }

  get nextPs(): Picoseconds {
    return this.#group.nextDuePs;
  }

  rebase(ps: number): void {
    for (const process of this.#group.processes) process.rebase(ps);
  }

  /** Ends the run in progress with a RunAbortedError, between two turns; the processes do not run again. */
  abort(reason: string): void {
    this.#abortReason ??= reason;
    this.#group.pauseTurn = 0;
  }

  async runTo(limitPs: Picoseconds): Promise<RunOutcome> {
    checkLimit(limitPs, this.nowPs);
    await this.#run(NEVER, limitPs);
    return { reason: 'limit', stoppedPs: limitPs };
  }

  async runUntilEnded(drainPs: Picoseconds, limitPs = NEVER): Promise<RunOutcome> {
    checkDrain(drainPs);
    if (limitPs !== NEVER) checkLimit(limitPs, this.nowPs);
    await this.#run(drainPs, limitPs);
    const reason = this.#group.processes.every(({ isEnded }) => isEnded) ? 'ended' : 'limit';
    return { reason, stoppedPs: this.nowPs };
  }

  /** @param drainPs Infinity: does not wait for members */
  async #run(drainPs: Picoseconds, limitPs: Picoseconds): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#group.pauseTurn = 0;
    const processes = this.#group.processes;
    try {
      const stopPs = await this.#runTurns(drainPs, limitPs);
      for (const process of processes) process.nowPs = stopPs;
    } catch (thrown) {
      const { name, instantPs } = processes[this.#group.current]!;
      this.#failure = processFailure(name, instantPs, thrown);
      throw this.#failure;
    }
  }

  #paused(): Promise<void> | undefined {
    if (this.#abortReason !== undefined) throw new RunAbortedError(this.#abortReason);
    return this.#pause();
  }

  /** Returns the instant before which all work is done. */
  async #runTurns(drainPs: Picoseconds, limitPs: Picoseconds): Promise<number> {
    const group = this.#group;
    const startPs = this.nowPs;
    await group.start();
    for (;;) {
      const isFinal = drainPs === NEVER || group.isEnded;
      group.stopPs = Math.min(limitPs, drainPs === NEVER ? NEVER : group.endBoundPs(startPs) + drainPs);
      await group.runToStop(() => this.#paused());
      if (drainPs !== NEVER && !group.isEnded && group.earliestPs === NEVER)
        throw deadlockOf(group.processes);
      if (isFinal || group.stopPs === limitPs) return group.stopPs;
    }
  }
}

function deadlockOf(processes: readonly LogicalProcess[]): DeadlockError {
  const waiting = processes.filter((process) => !process.isEnded);
  return new DeadlockError(waiting.map(({ name, instantPs }) => ({ name, instantPs })));
}

/** @throws ConfigurationError unless the limit is a whole number of picoseconds that is not past */
export function checkLimit(limitPs: Picoseconds, nowPs: Picoseconds): void {
  if (Number.isSafeInteger(limitPs) && limitPs >= nowPs) return;
  throw new ConfigurationError('limitPs', limitPs, `a whole number of at least ${nowPs}`);
}

/** @throws ConfigurationError unless the drain is a whole number of picoseconds above zero */
export function checkDrain(drainPs: Picoseconds): void {
  if (Number.isSafeInteger(drainPs) && drainPs >= 1) return;
  throw new ConfigurationError('drainPs', drainPs, 'a whole number of at least 1');
}

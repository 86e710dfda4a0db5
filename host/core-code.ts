/**
 * The code of a core's threads: async functions that run while simulated time stands still.
 *
 *     begin ──> running ──suspend──> (a wait) ──resume──> running ── … ──> the last stretch of work, or a failure
 *
 * A thread is counted as running in its logical process from begin or resume to suspend, so that time waits for it. An error
 * that it throws ends the run.
 */
import { InvariantError, runtime } from '../base/index.ts';
import type { Core } from './core.ts';
import type { CoreThread } from './core-thread.ts';
import { ProgramFailedError, ThreadNotRunningError } from './host-error.ts';

export class CoreCode {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Starts a thread's code. */
  begin(thread: CoreThread, body: () => Promise<void>): void {
    this.#run(thread);
    this.#runBody(thread, body);
  }

  /** The thread's code stops until it is resumed. */
  suspend(thread: CoreThread): void {
    const core = this.#core;
    if (core.running !== thread) throw this.misuse(thread);
    core.running = undefined;
    core.process.runningProgramCount--;
  }

  /** The thread's code continues now. */
  resume(thread: CoreThread): void {
    this.#run(thread);
    if (thread.killedBy !== undefined && thread.kernelDepth === 0) thread.reject(thread.killedBy);
    else thread.resolve();
  }

  /** Makes a resumed thread continue with `body` instead of the code that has waited. */
  continueAs(thread: CoreThread, body: () => Promise<void>): void {
    void this.#runBody(thread, body);
  }

  /** The thread's code continues now, with `take` first: its wait ends with the result of `take`, or its error. */
  resumeWith(thread: CoreThread, take: () => unknown): void {
    if (thread.killedBy !== undefined && thread.kernelDepth === 0) {
      this.resume(thread);
      return;
    }
    this.#run(thread);
    // Called first: `take` may begin the next wait.
    const { resolve, reject } = thread;
    try {
      resolve(take());
    } catch (thrown) {
      reject(thrown);
    }
  }

  /** A thread was used while it was not running: ends the run, even if the returned error is ignored. */
  misuse(thread: CoreThread): ThreadNotRunningError {
    const { process } = this.#core;
    const error = new ThreadNotRunningError(thread.name, thread.mode);
    process.failure ??= new ProgramFailedError(thread.name, process.instantPs, error);
    this.#stopAndEvaluate();
    return error;
  }

  #run(thread: CoreThread): void {
    thread.mode = 'running';
    this.#core.running = thread;
    this.#core.process.runningProgramCount++;
  }

  async #runBody(thread: CoreThread, body: () => Promise<void>): Promise<void> {
    try {
      await body();
      if (thread.storeIfAny?.hasUncommitted === true) {
        throw new InvariantError(`stores of ${thread.name}`, 'pushed', 'committed before the thread ends');
      }
      this.suspend(thread);
      this.#core.stayBusy(thread, 'end');
    } catch (thrown) {
      this.#fail(thread, thrown);
    }
  }

  /** Ends the run: the logical process sees the failure when it next lets programs run. */
  #fail(thread: CoreThread, thrown: unknown): void {
    const core = this.#core;
    core.process.failure ??= new ProgramFailedError(thread.name, core.process.instantPs, thrown);
    thread.mode = 'ended';
    thread.busyRef = core.cancel(thread.busyRef);
    thread.evaluateRef = core.cancel(thread.evaluateRef);
    thread.deadlineRef = core.cancel(thread.deadlineRef);
    thread.signalRef = core.cancel(thread.signalRef);
    if (core.running === thread) {
      this.suspend(thread);
      return;
    }
    this.#stopAndEvaluate();
  }

  /** If the thread is not counted as running, counts it for a moment: the logical process then stops and finds the failure. */
  #stopAndEvaluate(): void {
    const { process } = this.#core;
    process.runningProgramCount++;
    runtime().defer(() => process.runningProgramCount--);
  }
}

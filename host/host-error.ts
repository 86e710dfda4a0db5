/** Errors that end a run because of what its programs did: misuse of the simulator, never of the device. */
import { textOfThrown } from '../base/index.ts';
import { type ExactPs, RunError } from '../sim/index.ts';

/** A program (or a kernel thread, or an interrupt handler) threw. */
export class ProgramFailedError extends RunError {
  override readonly name = 'ProgramFailedError';
  readonly programName: string;
  /** Simulated time of the failure in picoseconds. */
  readonly instantPs: ExactPs;

  constructor(programName: string, instantPs: ExactPs, thrown: unknown) {
    super(`program ${programName} failed at ${instantPs} ps: ${textOfThrown(thrown)}`, { cause: thrown });
    this.programName = programName;
    this.instantPs = instantPs;
  }
}

/** A thread was used while it was not running: two activities at once on one core, or a wait without `await`. */
export class ThreadNotRunningError extends RunError {
  override readonly name = 'ThreadNotRunningError';

  constructor(threadName: string, mode: string) {
    super(
      `thread ${threadName} is ${mode}, expected running: await each settle, spin, sleep, wait and load before the next`,
    );
  }
}

/** A program awaits something other than simulated time: its code has not returned to a wait of its cpu. */
export class ProgramStuckError extends RunError {
  override readonly name = 'ProgramStuckError';

  /** @param patienceMs wall-clock time waited for it */
  constructor(patienceMs: number) {
    super(
      `awaits something that is not simulated and has not come in ${patienceMs} ms of real time (programPatienceMs)`,
    );
  }
}

/** A process was killed: its programs end with this error at their next access or wait outside the kernel. */
export class ProcessKilledError extends RunError {
  override readonly name = 'ProcessKilledError';

  constructor(processName: string, reason: string) {
    super(`process ${processName} was killed: ${reason}`);
  }
}

/** A core already runs a program. */
export class CoreBusyError extends RunError {
  override readonly name = 'CoreBusyError';

  constructor(coreIndex: number, runningName: string, refusedName: string) {
    super(`core ${coreIndex} runs program ${runningName}, expected a core without one for ${refusedName}`);
  }
}

/** Errors that end a run because of what its programs did: misuse of the simulator, never of the device. */
import { RunError } from '../sim/run-errors.ts';

/** A program (or a kernel thread, or an interrupt handler) threw. */
export class ProgramFailedError extends RunError {
  override readonly name = 'ProgramFailedError';
  readonly programName: string;
  /** Simulated time of the failure in picoseconds. */
  readonly instantPs: number;

  constructor(programName: string, instantPs: number, thrown: unknown) {
    const reason = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
    super(`program ${programName} failed at ${instantPs} ps: ${reason}`, { cause: thrown });
    this.programName = programName;
    this.instantPs = instantPs;
  }
}

/** A thread was used while it was not running: two things at once on one core, or a wait that nobody awaited. */
export class ThreadNotRunningError extends RunError {
  override readonly name = 'ThreadNotRunningError';

  constructor(threadName: string, mode: string) {
    super(
      `thread ${threadName} is ${mode}, expected running: await each settle, spin, sleep, wait and load before the next`,
    );
  }
}

/** A process has been killed: its programs end with this at their next access or wait outside of the kernel. */
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

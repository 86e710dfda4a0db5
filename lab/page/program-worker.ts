/**
 * The worker that runs programs, as the page sees it. A program that spins without waiting for simulated time occupies
 * its thread indefinitely, so the page terminates the worker if a call does not return, and starts another.
 */
import { type Remote, wrap } from 'comlink';
import type {
  LabProgram,
  MachinePicture,
  OperationPicture,
  PostedOperation,
  ProgramOrder,
  ProgramProgress,
  ProgramRemark,
} from '../protocol.ts';

/** A program did not return in time, and its worker was terminated. */
class RunawayError extends Error {
  override readonly name = 'RunawayError';

  constructor(seconds: number) {
    super(
      `The program was ended: for ${seconds} s it did not come back to the simulation. It spins without awaiting simulated time, or one step simulates very much.`,
    );
  }
}

/** Time limit of a step. */
const patienceSeconds = 10;

export class ProgramWorker {
  #worker: Worker | undefined;
  #program: Remote<LabProgram> | undefined;
  /** Settles when the last question has been answered: a session answers one after another. */
  #answered: Promise<unknown> = Promise.resolve();

  load(order: ProgramOrder): Promise<readonly ProgramRemark[]> {
    return this.#within((program) => program.load(order));
  }

  runFor(ps: number): Promise<ProgramProgress> {
    return this.#within((program) => program.runFor(ps));
  }

  operations(): Promise<readonly PostedOperation[]> {
    return this.#within((program) => program.operations());
  }

  picture(): Promise<OperationPicture> {
    return this.#within((program) => program.picture());
  }

  moment(): Promise<MachinePicture> {
    return this.#within((program) => program.moment());
  }

  /** Terminates the program, whatever it does. */
  stop(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#program = undefined;
    this.#answered = Promise.resolve();
  }

  #within<Answer>(ask: (program: Remote<LabProgram>) => Promise<Answer>): Promise<Answer> {
    const answer = this.#answered.then(() => this.#asked(ask));
    this.#answered = answer.catch(() => undefined);
    return answer;
  }

  async #asked<Answer>(ask: (program: Remote<LabProgram>) => Promise<Answer>): Promise<Answer> {
    if (this.#program === undefined) {
      this.#worker = new Worker(new URL('./program.worker.js', import.meta.url), {
        type: 'module',
        name: 'program',
      });
      this.#program = wrap<LabProgram>(this.#worker);
    }
    const worker = this.#worker;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      // Meanwhile the reader may have ended this program and started another.
      if (worker === this.#worker) this.stop();
      late.reject(new RunawayError(patienceSeconds));
    }, patienceSeconds * 1000);
    try {
      return await Promise.race([ask(this.#program), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}

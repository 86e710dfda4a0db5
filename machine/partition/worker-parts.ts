/**
 * The parts of a machine that run in workers of their own, called over comlink: the control plane. Records between
 * logical processes bypass it through shared memory.
 *
 *     machine ── PartPort ── comlink ──► worker thread ── MachinePart
 */
import * as Comlink from 'comlink';
import { type RuntimeThread, runtime } from '../../base/index.ts';
import { RunAbortedError, SharedControl, watchWorker } from '../../sim/index.ts';
import type { MachinePlan } from '../plan.ts';
import { errorOf } from './answer.ts';
import type { PartApi, PartOrder } from './part-api.ts';
import { type PartPort, partMethods } from './part-port.ts';

export class WorkerParts {
  readonly ports: readonly PartPort[];
  readonly #threads: readonly RuntimeThread[];
  readonly #control: SharedControl;
  readonly #lost: readonly Promise<never>[];
  /** Calls that a thread has not answered. */
  readonly #openCalls: number[];
  /** Whether the threads were released: another machine may use them. */
  #isClosed = false;

  /** Acquires a worker for each thread of the plan; an error in one is reported at the first call. */
  constructor(plan: MachinePlan) {
    this.#control = new SharedControl(plan.control!);
    this.#threads = plan.placement.map((_, thread) => {
      const order: PartOrder = { plan, thread };
      return runtime().startPart(order);
    });
    this.#openCalls = this.#threads.map(() => 0);
    this.#lost = this.#threads.map((worker, thread) => watchWorker(this.#control, thread, worker));
    this.ports = this.#threads.map((worker, thread) => this.#portOf(worker, thread));
  }

  /** Simulated time that every thread has promised to have passed, during a run. */
  get reachedPs(): number {
    const { processNames } = this.#control;
    return Math.min(...processNames.map((_, process) => this.#control.promisePs(process)));
  }

  /** The thread in which the run ended with an error; undefined if it ended equally in all. */
  get failedThread(): number | undefined {
    return this.#control.failedWorker;
  }

  /** Ends a run in progress with a RunAbortedError. */
  abort(reason: string): void {
    this.#control.abort(reason);
  }

  /** Terminates a thread, for tests of a crash. */
  async terminate(thread: number): Promise<void> {
    await this.#threads[thread]!.terminate();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(
      this.#threads.map((worker, thread) =>
        this.#openCalls[thread] === 0 ? worker.release() : worker.terminate(),
      ),
    );
  }

  #portOf(worker: RuntimeThread, thread: number): PartPort {
    const remote = Comlink.wrap<PartApi>(worker.endpoint as Comlink.Endpoint);
    const call = async (method: keyof PartPort, args: readonly unknown[]): Promise<unknown> => {
      // A run that was between two calls when the machine was closed: its thread would never answer.
      if (this.#isClosed) throw new RunAbortedError('the machine was closed');
      this.#openCalls[thread]!++;
      try {
        const answer = await Promise.race([remote.call(method, args), this.#lost[thread]!]);
        if ('error' in answer) throw errorOf(answer.error);
        return answer.value;
      } finally {
        this.#openCalls[thread]!--;
      }
    };
    const methods = partMethods.map(
      (method) => [method, (...args: unknown[]) => call(method, args)] as const,
    );
    return Object.fromEntries(methods) as unknown as PartPort;
  }
}

/**
 * The parts of a machine that run in workers of their own, spoken to over comlink: the control plane. Records between
 * logical processes never pass here; they go through shared memory.
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
  /** Threads are released: they may be another machine's. */
  #isClosed = false;

  /** Takes a worker for each thread of the plan; what goes wrong in one shows at the first call. */
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

  /** Simulated time that every thread has promised to have passed, while a run continues. */
  get reachedPs(): number {
    const { processNames } = this.#control;
    return Math.min(...processNames.map((_, process) => this.#control.promisePs(process)));
  }

  /** The thread in which the run ended with an error; undefined when it ended in all alike. */
  get failedThread(): number | undefined {
    return this.#control.failedWorker;
  }

  /** Ends a run that is under way with a RunAbortedError. */
  abort(reason: string): void {
    this.#control.abort(reason);
  }

  /** For tests of what happens then: ends a thread as if it had crashed. */
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

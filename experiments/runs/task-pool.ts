/**
 * Whole simulations, each a task that a module exports as its default; orders and results are plain data. They run in
 * workers, one for each free core; with one core, in this thread, which has already loaded and compiled the modules.
 *
 *     run(order) ─► task-worker.ts ─► module's default ─┬─ result
 *                                                       └─ ConfigurationError, RunError ─► rethrown here with their class
 *
 * Errors lose their class between threads, but the command line needs it to distinguish bad input from a failed run and
 * to print one line.
 *
 * A worker is terminated only after it has loaded its modules and while it has no task. Node aborts the process if a
 * worker is terminated while it loads a module, and a worker terminated as it enters Atomics.wait may wait there
 * indefinitely (seen with Node 24.21). An abandoned pool therefore lets its running tasks end, makes the queued ones do
 * nothing, and its idle workers wait in their event loops.
 */
import { once } from 'node:events';
import type { Piscina } from 'piscina';
import { ConfigurationError, runtime } from '../../base/index.ts';
import { RunError } from '../../sim/index.ts';

export interface TaskOrder {
  /** URL of the module. */
  readonly module: string;
  readonly order: unknown;
  /** Element 0 is 1 once the result is no longer wanted. */
  readonly aborted: Int32Array;
}

export type TaskAnswer =
  | { readonly result: unknown }
  | { readonly misuse: { readonly field: string; readonly value: unknown; readonly range: string } }
  | { readonly failure: string };

export interface TaskRunner<Order, Result> extends AsyncDisposable {
  /** @throws ConfigurationError, RunError as the task does; RunError also if the runner was abandoned */
  run(order: Order): Promise<Result>;
}

/** Number of concurrent simulations of a command: HCA_CORES, else the cores of the computer. */
export const tasksAtOnce = (): number => Math.max(1, runtime().coreCount);

/** @param name of the module next to this one, without its extension */
export function taskRunner<Order, Result>(
  name: string,
  threadsMax = tasksAtOnce(),
): TaskRunner<Order, Result> {
  const most = Math.min(threadsMax, tasksAtOnce());
  return most === 1 ? new TasksInTurn(name) : new TaskPool(name, most);
}

const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const urlOf = (file: string): string => new URL(`./${file}${ending}`, import.meta.url).href;

const givenUp = (): RunError => new RunError('the pool of tasks has been given up');

/** Runs tasks in this thread, one after another. */
class TasksInTurn<Order, Result> implements TaskRunner<Order, Result> {
  readonly #task: Promise<{ readonly default: (order: Order) => Promise<Result> }>;
  #last: Promise<unknown> = Promise.resolve();
  #isGivenUp = false;

  constructor(name: string) {
    this.#task = import(urlOf(name));
  }

  run(order: Order): Promise<Result> {
    const result = this.#last.then(() => this.#runNow(order));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #runNow(order: Order): Promise<Result> {
    const { default: task } = await this.#task;
    if (this.#isGivenUp) throw givenUp();
    return task(order);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isGivenUp = true;
    await this.#last;
  }
}

export class TaskPool<Order, Result> implements TaskRunner<Order, Result> {
  readonly #module: string;
  readonly #pool: Promise<Piscina>;
  readonly #aborted = new Int32Array(new SharedArrayBuffer(4));
  readonly #running = new Set<Promise<TaskAnswer>>();
  /** Workers that have loaded their modules. */
  #readyCount = 0;

  /** @param name of the module next to this one, without its extension */
  constructor(name: string, threadsMax: number) {
    this.#module = urlOf(name);
    this.#pool = this.#start(threadsMax);
  }

  /** The package is loaded only here: most commands run one simulation, in their own thread. */
  async #start(threadsMax: number): Promise<Piscina> {
    const { Piscina } = await import('piscina');
    const pool = new Piscina({
      filename: urlOf('task-worker'),
      // The pool would not report when its initial workers are ready.
      minThreads: 0,
      maxThreads: threadsMax,
      idleTimeout: Number.POSITIVE_INFINITY,
      atomics: 'disabled',
    });
    pool.on('workerCreate', () => this.#readyCount++);
    return pool;
  }

  async run(order: Order): Promise<Result> {
    if (this.#aborted[0] === 1) throw givenUp();
    const answer = await this.#answerTo({ module: this.#module, order, aborted: this.#aborted });
    if ('misuse' in answer) {
      const { field, value, range } = answer.misuse;
      throw new ConfigurationError(field, value, range);
    }
    if ('failure' in answer) throw new RunError(answer.failure);
    return answer.result as Result;
  }

  async #answerTo(task: TaskOrder): Promise<TaskAnswer> {
    const answer = this.#pool.then((pool) => pool.run(task) as Promise<TaskAnswer>);
    this.#running.add(answer);
    try {
      return await answer;
    } finally {
      this.#running.delete(answer);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    Atomics.store(this.#aborted, 0, 1);
    await Promise.allSettled(this.#running);
    const pool = await this.#pool;
    while (pool.threads.length > this.#readyCount) await once(pool, 'workerCreate');
    await pool.destroy();
  }
}

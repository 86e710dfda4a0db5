/**
 * Whole simulations in workers, each a task of a module that exports it as its default: orders and results are plain data.
 *
 *     run(order) ─► task-worker.ts ─► module's default ─┬─ result
 *                                                       └─ ConfigurationError, RunError ─► thrown here as what they were
 *
 * Errors lose their class between threads; the command line tells by it whose mistake it was, and says one line.
 */
import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import { ConfigurationError } from '../../base/assert.ts';
import { RunError } from '../../sim/index.ts';

export interface TaskOrder {
  /** URL of the module. */
  readonly module: string;
  readonly order: unknown;
}

export type TaskAnswer =
  | { readonly result: unknown }
  | { readonly misuse: { readonly field: string; readonly value: unknown; readonly range: string } }
  | { readonly failure: string };

export class TaskPool<Order, Result> {
  readonly #module: string;
  readonly #pool: Piscina;

  /** @param name of the module beside this one, without its ending */
  constructor(name: string, threadsMax = availableParallelism()) {
    const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
    const urlOf = (file: string): string => new URL(`./${file}${ending}`, import.meta.url).href;
    this.#module = urlOf(name);
    this.#pool = new Piscina({ filename: urlOf('task-worker'), minThreads: 1, maxThreads: threadsMax });
  }

  /** @throws ConfigurationError, RunError as the task does */
  async run(order: Order): Promise<Result> {
    const task: TaskOrder = { module: this.#module, order };
    const answer = (await this.#pool.run(task)) as TaskAnswer;
    if ('misuse' in answer) {
      const { field, value, range } = answer.misuse;
      throw new ConfigurationError(field, value, range);
    }
    if ('failure' in answer) throw new RunError(answer.failure);
    return answer.result as Result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }
}

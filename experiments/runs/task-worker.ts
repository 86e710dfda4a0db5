/** Executes an order of a {@link TaskPool} in a worker; see there. */
import '../../runtime/node.ts';
import { ConfigurationError } from '../../base/index.ts';
import { RunError } from '../../sim/index.ts';
import type { TaskAnswer, TaskOrder } from './task-pool.ts';

export default async function runTask({ module, order, aborted }: TaskOrder): Promise<TaskAnswer> {
  if (Atomics.load(aborted, 0) === 1) return { failure: 'the pool was given up before this task began' };
  const { default: task } = (await import(module)) as { readonly default: (order: unknown) => unknown };
  try {
    return { result: await task(order) };
  } catch (error) {
    if (error instanceof ConfigurationError) {
      const { field, value, range } = error;
      return { misuse: { field, value: typeof value === 'object' ? String(value) : value, range } };
    }
    if (error instanceof RunError) return { failure: error.message };
    throw error;
  }
}

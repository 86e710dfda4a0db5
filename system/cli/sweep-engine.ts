/**
 * Who runs the points of a sweep: this thread when one is to run at a time, else workers, which stay for the whole sweep, so that
 * modules are loaded and code is compiled once in each. Each worker has its next order before it has answered the last.
 */
import type { MachineOptions } from '../machine/machine.ts';
import type { Outcome, PointRunner } from '../sweep/index.ts';
import type { PerfOrder } from './perf-run.ts';
import runPoint, { outcomeOfError } from './sweep-run.ts';
import { TaskPool } from './task-pool.ts';

/** Orders of a worker: the one that it runs, and the next. */
const ordersPerWorker = 2;

export type LocalRunner = PointRunner & AsyncDisposable;

/** How machines are run, which changes no figure. */
export type RunChoice = Pick<MachineOptions, 'partition' | 'shortcuts'>;

/** @param jobs points that run at once */
export function localRunner(jobs: number, choice: RunChoice = {}): LocalRunner {
  const chosen = ({ machine, args }: PerfOrder): PerfOrder => ({ machine: { ...machine, ...choice }, args });
  if (jobs === 1)
    return { capacity: 1, run: (order) => runPoint(chosen(order)), [Symbol.asyncDispose]: async () => {} };
  const pool = new TaskPool<PerfOrder, Outcome>('sweep-run', jobs);
  return {
    capacity: jobs * ordersPerWorker,
    run: (order) => pool.run(chosen(order)).catch(outcomeOfError),
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

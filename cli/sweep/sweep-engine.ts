/**
 * Chooses what runs the points of a sweep: this thread for one point at a time; else workers that live for the whole
 * sweep, so that each loads modules and compiles code once; or other machines, by a queue or by Slurm.
 */
import { join } from 'node:path';
import runPoint, { outcomeOfError } from '../../experiments/runs/sweep-run.ts';
import { TaskPool, tasksAtOnce } from '../../experiments/runs/task-pool.ts';
import { BullmqEngine } from '../../experiments/sweep/bullmq/index.ts';
import {
  laneEngine,
  type Outcome,
  type PointOrder,
  type PointRunner,
  type RunManner,
  type SweepEngine,
} from '../../experiments/sweep/index.ts';
import { SlurmEngine } from '../../experiments/sweep/slurm/index.ts';
import { packageFolder } from '../../runtime/package-folder.ts';
import { defaultTasks, queueAddressOf, type SweepChoice } from './sweep-options.ts';

export type LocalRunner = PointRunner & AsyncDisposable;

const inManner = ({ machine, args }: PointOrder, manner: RunManner): PointOrder => ({
  machine: { ...machine, ...manner },
  args,
});

/** @param jobs points that run at once. A worker receives its next order before it has answered the last. */
export function localRunner(jobs: number, manner: RunManner = {}): LocalRunner {
  if (jobs > 1) return poolRunner(jobs, { manner, ordersOfWorker: 2 });
  return {
    capacity: 1,
    run: (order) => runPoint(inManner(order, manner)),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** Points always run in other threads: this one stays free. */
export function poolRunner(
  jobs: number,
  { manner = {}, ordersOfWorker = 1 }: { readonly manner?: RunManner; readonly ordersOfWorker?: number } = {},
): LocalRunner {
  const pool = new TaskPool<PointOrder, Outcome>('sweep-run', jobs);
  return {
    capacity: jobs * ordersOfWorker,
    run: (order) => pool.run(inManner(order, manner)).catch(outcomeOfError),
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

/** Purpose of an engine. */
interface EngineNeeds {
  /** Points to run. */
  readonly pointCount: number;
  /** The file of results. */
  readonly out: string;
  readonly onNotice: (text: string) => void;
}

/** @throws ConfigurationError if the chosen engine is not available */
export async function engineOf(
  choice: SweepChoice,
  { pointCount, out, onNotice }: EngineNeeds,
): Promise<SweepEngine & AsyncDisposable> {
  const { partition, shortcuts, engine, jobs, tasks = defaultTasks, sbatch } = choice;
  const manner = { partition, ...(shortcuts === undefined ? {} : { shortcuts }) };
  const isFailedRetried = choice.retryFailed === true;
  if (engine === 'local' || pointCount === 0) {
    const runner = localRunner(Math.max(1, Math.min(jobs ?? tasksAtOnce(), pointCount)), manner);
    return { run: laneEngine(runner).run, [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose]() };
  }
  if (engine === 'bullmq')
    return BullmqEngine.open(queueAddressOf(choice), { manner, isFailedRetried, onNotice });
  const command = [process.execPath, join(packageFolder, 'bin', 'hca.js')];
  const folder = `${out}.slurm`;
  const slurm = new SlurmEngine({
    folder,
    taskCount: tasks,
    jobs: jobs ?? 1,
    sbatch,
    command,
    manner,
    isFailedRetried,
    onNotice,
  });
  return { run: (points, take) => slurm.run(points, take), [Symbol.asyncDispose]: async () => {} };
}

/** `hca sweep worker` and `hca sweep task`: run the points of a sweep on other machines. */
import { availableParallelism } from 'node:os';
import type { Command } from 'commander';
import { serveQueue } from '../../experiments/sweep/bullmq/index.ts';
import type { Shard } from '../../experiments/sweep/index.ts';
import { runTask } from '../../experiments/sweep/slurm/index.ts';
import { countText } from '../../explain/text/format.ts';
import { integer } from '../options.ts';
import { Screen } from '../output.ts';
import { poolRunner } from './sweep-engine.ts';
import { jobsMax, parsedShard, queueAddressOf, queueOption, redisOption } from './sweep-options.ts';

interface WorkerChoice {
  readonly redis?: string;
  readonly queue?: string;
  readonly jobs: number;
  readonly lease: number;
}

interface TaskChoice {
  readonly shard: Shard;
  readonly jobs: number;
}

const leaseMaxSeconds = 3600;

export function addElsewhereCommands(sweep: Command): void {
  sweep
    .command('worker')
    .description('run points of sweeps with --engine bullmq, until Ctrl-C')
    .requiredOption(...redisOption)
    .option(...queueOption)
    .option('--jobs <n>', 'points that run at once', integer(1, jobsMax), availableParallelism())
    .option(
      '--lease <seconds>',
      'silence after which a worker loses its points to others',
      integer(1, leaseMaxSeconds),
      30,
    )
    .action(worker);
  sweep
    .command('task')
    .description('run some points of a file, as each task of --engine slurm does')
    .argument('<points>', 'a file that the sweep has written')
    .requiredOption('--shard <k/n>', 'every n-th point, from the k-th on', parsedShard)
    .option('--jobs <n>', 'points that run at once', integer(1, jobsMax), 1)
    .action(task);
}

async function worker(choice: WorkerChoice): Promise<void> {
  const screen = new Screen(undefined);
  const address = queueAddressOf(choice);
  await using runner = poolRunner(choice.jobs);
  const stop = new AbortController();
  const end = (): void => stop.abort();
  // A second signal ends the process as usual.
  process.once('SIGINT', end).once('SIGTERM', end);
  try {
    screen.print(
      `Points of the queue ${address.queue} run here, ${countText(choice.jobs)} at once, until Ctrl-C.`,
    );
    const ranCount = await serveQueue(address, {
      runner,
      leaseMs: choice.lease * 1000,
      stop: stop.signal,
      onNotice: (text) => process.stderr.write(`hca: ${text}\n`),
    });
    screen.print(`${countText(ranCount)} points have run here.`);
  } finally {
    process.removeListener('SIGINT', end).removeListener('SIGTERM', end);
  }
}

async function task(points: string, { shard, jobs }: TaskChoice): Promise<void> {
  await using runner = poolRunner(jobs);
  const ranCount = await runTask(points, shard, runner);
  new Screen(undefined).print(`${countText(ranCount)} points have run here.`);
}

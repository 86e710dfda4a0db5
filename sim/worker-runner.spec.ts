import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { planSharedControl, SharedControl } from './shared-control.ts';
import { type RunOutcome, SingleRunner } from './single-runner.ts';
import { Toy, type ToyConfig, toyConfigs } from './toy-process.ts';
import type { ToyAnswer, ToyOrder } from './toy-worker.ts';
import { watchWorker } from './worker-watch.ts';

const NEVER = Number.POSITIVE_INFINITY;
const DRAIN_PS = 1_000_000;

interface Started {
  readonly threads: readonly Worker[];
  readonly answers: Promise<readonly ToyAnswer[]>;
  readonly control: SharedControl;
}

/** Starts the toys in workers; `placement` has the indices of each worker's toys. */
function start(
  configs: readonly ToyConfig[],
  placement: readonly (readonly number[])[],
  limitsPs = [NEVER],
): Started {
  const channels = new Set(configs.flatMap(({ neighbours }) => neighbours.map(({ to }) => to)));
  const names = placement.map((indices) => indices.map((index) => configs[index]!.name));
  const plan = planSharedControl(names, [...channels]);
  const control = new SharedControl(plan);
  const threads = placement.map((indices, worker) => {
    const own = indices.map((index) => configs[index]!);
    const order: ToyOrder = { plan, worker, configs: own, drainPs: DRAIN_PS, limitsPs };
    return new Worker(new URL('./toy-worker.ts', import.meta.url), { workerData: order });
  });
  const answers = threads.map((thread, worker) => {
    const answer = new Promise<ToyAnswer>((resolve) => thread.once('message', resolve));
    return Promise.race([answer, watchWorker(control, worker, thread)]);
  });
  return { threads, answers: Promise.all(answers), control };
}

async function runSingle(configs: readonly ToyConfig[]): Promise<{ outcome: RunOutcome; digests: string[] }> {
  const toys = configs.map((config) => new Toy(config));
  for (const toy of toys) toy.start();
  const outcome = await new SingleRunner(toys.map((toy) => toy.process)).runUntilEnded(DRAIN_PS);
  return { outcome, digests: toys.map((toy) => toy.digest) };
}

const PLACEMENTS = {
  'one worker': [[0, 1, 2, 3]],
  'two workers': [
    [0, 1],
    [2, 3],
  ],
  'two workers, crossed': [
    [0, 2],
    [1, 3],
  ],
  'four workers': [[0], [1], [2], [3]],
};

describe('worker runner', () => {
  for (const [name, placement] of Object.entries(PLACEMENTS)) {
    it(`gives in ${name} the run of a single thread`, async () => {
      for (let seed = 1; seed <= 3; seed++) {
        const single = await runSingle(toyConfigs(seed));
        const { answers } = start(toyConfigs(seed), placement);
        const begin = performance.now();
        const found = await answers;
        console.log(
          name,
          performance.now() - begin,
          found.map((f) => f.turnCount),
          found.map((f) => f.error),
        );
        expect(found.flatMap(({ digests }) => digests).toSorted()).toEqual(single.digests.toSorted());
        for (const { outcome } of found) expect(outcome).toEqual(single.outcome);
      }
    });
  }
});

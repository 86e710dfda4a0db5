import { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';
import { NEVER } from '../base/units.ts';
import { DeadlockError, WorkerLostError } from './run-errors.ts';
import { planSharedControl, SharedControl } from './shared-control.ts';
import { type RunOutcome, SingleRunner } from './single-runner.ts';
import { Toy, type ToyConfig, toyConfigs } from './toy-process.ts';
import type { ToyAnswer, ToyOrder } from './toy-worker.ts';
import { WorkerRunner } from './worker-runner.ts';
import { watchWorker } from './worker-watch.ts';

const DRAIN_PS = 1_000_000;
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
type Placement = readonly (readonly number[])[];

interface Started {
  readonly threads: readonly Worker[];
  readonly control: SharedControl;
  /** Answer or loss of each worker. */
  readonly answers: readonly Promise<ToyAnswer>[];
}

/** Threads that have answered: they are reused for the next order, since starting one takes longer than most runs. */
const waiting: Worker[] = [];
afterAll(() => Promise.all(waiting.map((thread) => thread.terminate())));

function newThread(): Worker {
  const thread = new Worker(new URL('./toy-worker.ts', import.meta.url));
  // Each run watches its threads.
  thread.setMaxListeners(0);
  thread.once('exit', () => waiting.splice(waiting.indexOf(thread) >>> 0, 1));
  return thread;
}

/** Starts the toys in workers; `placement` has the indices of each worker's toys. */
function start(
  configs: readonly ToyConfig[],
  placement: Placement,
  changes: Partial<ToyOrder> = {},
): Started {
  const channels = new Set(configs.flatMap(({ neighbours }) => neighbours.map(({ to }) => to)));
  const names = placement.map((indices) => indices.map((index) => configs[index]!.name));
  const plan = planSharedControl(names, [...channels]);
  const control = new SharedControl(plan);
  const threads = placement.map((indices, worker) => {
    const own = indices.map((index) => configs[index]!);
    const order: ToyOrder = { plan, worker, configs: own, drainPs: DRAIN_PS, limitsPs: [NEVER], ...changes };
    const thread = waiting.pop() ?? newThread();
    thread.postMessage(order);
    return thread;
  });
  const answers = threads.map((thread, worker) => {
    const answer = new Promise<ToyAnswer>((resolve) =>
      thread.once('message', (given: ToyAnswer) => {
        waiting.push(thread);
        resolve(given);
      }),
    );
    return Promise.race([answer, watchWorker(control, worker, thread)]);
  });
  return { threads, control, answers };
}

interface Run {
  readonly outcome: RunOutcome | undefined;
  readonly digests: readonly string[];
  readonly turnCount: number;
}

async function runThreaded(...args: Parameters<typeof start>): Promise<Run> {
  const answers = await Promise.all(start(...args).answers);
  for (const answer of answers) expect(answer.error).toBeUndefined();
  for (const answer of answers) expect(answer.outcome).toEqual(answers[0]!.outcome);
  return {
    outcome: answers[0]!.outcome,
    digests: answers.flatMap(({ digests }) => digests).toSorted(),
    turnCount: answers.reduce((sum, { turnCount }) => sum + turnCount, 0),
  };
}

async function runSingle(configs: readonly ToyConfig[], limitPs = NEVER): Promise<Run> {
  const toys = configs.map((config) => new Toy(config));
  for (const toy of toys) toy.start();
  const runner = new SingleRunner(toys.map(({ process }) => process));
  const outcome = await runner.runUntilEnded(DRAIN_PS, limitPs);
  return { outcome, digests: toys.map(({ digest }) => digest).toSorted(), turnCount: runner.turnCount };
}

/** The errors of all workers, each of which must have reported one. */
async function errorsOf(started: Started): Promise<readonly NonNullable<ToyAnswer['error']>[]> {
  const answers = await Promise.all(started.answers);
  return answers.map(({ error }) => error!);
}

describe('worker runner', () => {
  for (const [name, placement] of Object.entries(PLACEMENTS)) {
    it(`gives in ${name} the run of a single thread`, async () => {
      for (let seed = 1; seed <= 3; seed++) {
        const { outcome, digests } = await runSingle(toyConfigs(seed));
        const threaded = await runThreaded(toyConfigs(seed), placement);
        expect([threaded.outcome, threaded.digests]).toEqual([outcome, digests]);
      }
    });
  }

  it('gives the same run if threads wait at once, or spin for long', async () => {
    const { outcome, digests } = await runSingle(toyConfigs(5));
    for (const spinCount of [0, 2000]) {
      const threaded = await runThreaded(toyConfigs(5), [[0], [1], [2], [3]], { spinCount });
      expect([threaded.outcome, threaded.digests]).toEqual([outcome, digests]);
    }
  });

  it('gives the same run under load on the other cores', async () => {
    const busy = [0, 1].map(() => new Worker('for (;;) Math.random();', { eval: true }));
    const { outcome, digests } = await runSingle(toyConfigs(6));
    for (const placement of [PLACEMENTS['two workers'], PLACEMENTS['four workers']]) {
      const threaded = await runThreaded(toyConfigs(6), placement);
      expect([threaded.outcome, threaded.digests]).toEqual([outcome, digests]);
    }
    await Promise.all(busy.map((worker) => worker.terminate()));
  });

  it('gives the same run if latencies are short and unequal', async () => {
    const { outcome, digests } = await runSingle(toyConfigs(7, {}, 900));
    const threaded = await runThreaded(toyConfigs(7, {}, 900), PLACEMENTS['four workers']);
    expect([threaded.outcome, threaded.digests]).toEqual([outcome, digests]);
  });

  it('gives the same run when it is cut into pieces', async () => {
    const { digests } = await runSingle(toyConfigs(8));
    const limitsPs = [1, 2_000_000, 2_000_001, 30_000_000, NEVER];
    const threaded = await runThreaded(toyConfigs(8), PLACEMENTS['two workers'], { limitsPs });
    expect(threaded.digests).toEqual(digests);
    expect(threaded.outcome?.reason).toBe('ended');
  });

  it('stops at the limit when programs have not ended by then', async () => {
    const single = await runSingle(toyConfigs(9), 3_000_000);
    const threaded = await runThreaded(toyConfigs(9), PLACEMENTS['four workers'], { limitsPs: [3_000_000] });
    expect(threaded.outcome).toEqual({ reason: 'limit', stoppedPs: 3_000_000 });
    expect(threaded.digests).toEqual(single.digests);
  });

  it('passes pauses of a millisecond without creeping through them', async () => {
    // 100 + 120 + 140 round trips, each with a pause of up to 1 ms: hundreds of ms, millions of latencies of 150 ns.
    const configs = () => toyConfigs(10, { pauseMaxPs: 1e9 });
    const { outcome, digests, turnCount } = await runSingle(configs());
    expect(outcome!.stoppedPs).toBeGreaterThan(5e10);
    const threaded = await runThreaded(configs(), PLACEMENTS['four workers']);
    expect([threaded.outcome, threaded.digests]).toEqual([outcome, digests]);
    expect(threaded.turnCount).toBeLessThan(2 * turnCount);
  });

  it('names the waiting programs, and since when, when nothing is left to do', async () => {
    const configs = () => toyConfigs(11, { ending: 'silence' });
    const single = await runSingle(configs()).catch((error: unknown) => error as DeadlockError);
    expect(single).toBeInstanceOf(DeadlockError);
    for (const limitPs of [NEVER, 1e15]) {
      const started = start(configs(), PLACEMENTS['four workers'], { limitsPs: [limitPs] });
      for (const { message } of await errorsOf(started))
        expect(message).toBe((single as DeadlockError).message);
    }
  });

  it('ends the run everywhere with the error of a process that throws', async () => {
    const configs = toyConfigs(12).map((config) =>
      config.name === 'east' ? { ...config, ending: 'throw' as const } : config,
    );
    const errors = await errorsOf(start(configs, PLACEMENTS['four workers']));
    for (const { name, message, instantPs } of errors) {
      expect(name).toBe('ProcessFailedError');
      expect(message).toMatch(/^east failed at \d+ ps: TypeError: the toy broke$/);
      expect(instantPs).toBe(errors[0]!.instantPs);
      expect(instantPs).toBeGreaterThan(0);
    }
  });

  it('notifies the others of an error that ends runs, and of the worker that has the error itself', async () => {
    const configs = toyConfigs(12).map((config) =>
      config.name === 'east' ? { ...config, ending: 'giveUp' as const } : config,
    );
    const started = start(configs, PLACEMENTS['four workers']);
    const [north, east, ...others] = await errorsOf(started);
    expect([east!.name, east!.message]).toEqual(['RunError', 'the toy gave up']);
    for (const { name, message } of [north!, ...others]) {
      expect(name).toBe('ProcessFailedError');
      expect(message).toMatch(/^east failed at \d+ ps: the toy gave up$/);
    }
    expect(started.control.failedWorker).toBe(1);
  });

  it('ends the run everywhere when a worker is terminated', async () => {
    const started = start(toyConfigs(13, { roundTrips: 1e9 }), PLACEMENTS['four workers']);
    while (started.control.progressPs < 1e8) await new Promise((resolve) => setTimeout(resolve, 5));
    void started.threads[2]!.terminate();
    const lost = await started.answers[2]!.catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(WorkerLostError);
    expect(lost).toMatchObject({ processName: 'south', message: expect.stringContaining('exit code 1') });
    expect((lost as WorkerLostError).instantPs).toBeGreaterThanOrEqual(1e8);
    for (const index of [0, 1, 3]) {
      const { error } = await started.answers[index]!;
      expect(error).toMatchObject({ name: 'WorkerLostError', message: (lost as Error).message });
    }
  });

  it('ends the run everywhere when a worker never starts', async () => {
    const configs = toyConfigs(14);
    const broken = { ...configs[3]!, seed: -1 };
    const started = start([...configs.slice(0, 3), broken], PLACEMENTS['four workers']);
    await expect(started.answers[3]!).rejects.toThrow(
      /the worker of west was lost after 0 ps: ConfigurationError: seed/,
    );
    for (const answer of started.answers.slice(0, 3))
      expect((await answer).error!.name).toBe('WorkerLostError');
  });

  it('ends the run everywhere when it is cancelled', async () => {
    const started = start(toyConfigs(15, { roundTrips: 1e9 }), PLACEMENTS['two workers']);
    while (started.control.progressPs < 1e8) await new Promise((resolve) => setTimeout(resolve, 5));
    started.control.abort('interrupted by the user');
    for (const { name, message } of await errorsOf(started)) {
      expect([name, message]).toEqual(['RunAbortedError', 'interrupted by the user']);
    }
    expect(started.control.failedWorker).toBeUndefined();
  });

  it('rejects processes that the plan does not assign to this worker', () => {
    const configs = toyConfigs(16);
    const control = new SharedControl(planSharedControl([['north'], ['east', 'south', 'west']], []));
    const east = new Toy(configs[1]!);
    expect(() => new WorkerRunner(control, 0, [east.process])).toThrow(
      'processes of worker 0 is "east", expected north',
    );
    expect(() => planSharedControl([['north'], ['north']], [])).toThrow('names of logical processes');
  });
});

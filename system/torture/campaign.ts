/**
 * Many stories side by side, each in a worker: seed after seed until there are no more, or the time is up. A story in which the
 * model never returns is terminated with its worker, and is a finding.
 */
import { Piscina } from 'piscina';
import type { StoryOrder, StoryOutcome } from './torture-worker.ts';

/** Wall-clock time after which a story counts as hung; the slowest take some tens of seconds. */
const storyLimitMs = 300_000;

/** In the package the modules are JavaScript. */
const workerFile = import.meta.url.endsWith('.ts') ? './torture-worker.ts' : './torture-worker.js';

/**
 * @param seeds what to play, in order; may be endless
 * @param how name of the one scene to be played, and whether without shortcuts
 */
export async function* campaign(
  seeds: Iterable<number>,
  jobs: number,
  isTimeUp: () => boolean,
  how: Omit<StoryOrder, 'seed'> = {},
): AsyncGenerator<StoryOutcome> {
  const pool = new Piscina({
    filename: new URL(workerFile, import.meta.url).href,
    minThreads: jobs,
    maxThreads: jobs,
    idleTimeout: Number.POSITIVE_INFINITY,
    atomics: 'disabled',
  });
  const running = new Map<number, Promise<StoryOutcome>>();
  const left = seeds[Symbol.iterator]();
  try {
    for (let isOver = false; ; ) {
      while (!isOver && running.size < jobs) {
        const next = isTimeUp() ? undefined : left.next();
        isOver = next === undefined || next.done === true;
        if (next !== undefined && next.done !== true)
          running.set(next.value, play(pool, { seed: next.value, ...how }));
      }
      if (running.size === 0) return;
      const outcome = await Promise.race(running.values());
      running.delete(outcome.seed);
      yield outcome;
    }
  } finally {
    await Promise.allSettled(running.values());
    await pool.destroy();
  }
}

async function play(pool: Piscina, order: StoryOrder): Promise<StoryOutcome> {
  const { seed } = order;
  try {
    return (await pool.run(order, { signal: AbortSignal.timeout(storyLimitMs) })) as StoryOutcome;
  } catch (error) {
    const isEndless = error instanceof Error && error.name === 'AbortError';
    const what = isEndless
      ? `the model had not come back after ${storyLimitMs / 1000} s`
      : `the worker failed: ${error instanceof Error ? error.message : String(error)}`;
    const nothing = { ends: {}, faults: {}, steps: {}, objects: {}, parameters: {} };
    return {
      seed,
      climate: 'calm',
      findings: [{ judge: 'machine', what }],
      refused: undefined,
      coverage: nothing,
    };
  }
}

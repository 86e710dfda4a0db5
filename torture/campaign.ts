/**
 * Many stories side by side, each in a worker: seed after seed until the seeds are exhausted, or the time is up. A
 * story in which the model never returns is terminated with its worker, and is a finding.
 */
import type { Piscina } from 'piscina';
import { noCoverage } from './coverage.ts';
import type { StoryOrder, StoryOutcome } from './torture-worker.ts';

/**
 * Processor time per story in progress after which a story counts as hung: the slowest take some tens of seconds. The
 * wall clock does not tell: on a loaded machine a story of seven seconds once took five minutes.
 */
const processorLimitMs = 300_000;
/** Threads in a deadlock use no processor time: then the wall clock ends the story. */
const waitLimitMs = 3_600_000;
const looksEveryMs = 1000;

/** In the package the modules are JavaScript. */
const workerFile = import.meta.url.endsWith('.ts') ? './torture-worker.ts' : './torture-worker.js';

/**
 * @param seeds the seeds to play, in order; may be endless
 * @param how name of the one scene to play, and whether without shortcuts
 */
export async function* campaign(
  seeds: Iterable<number>,
  jobs: number,
  isTimeUp: () => boolean,
  how: Omit<StoryOrder, 'seed'> = {},
): AsyncGenerator<StoryOutcome> {
  const { Piscina } = await import('piscina');
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
          running.set(next.value, play(pool, { seed: next.value, ...how }, jobs * processorLimitMs));
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

async function play(pool: Piscina, order: StoryOrder, processorMs: number): Promise<StoryOutcome> {
  const { seed } = order;
  const hung = new AbortController();
  const [beganMs, usedMs] = [performance.now(), processorTimeMs()];
  const looking = setInterval(() => {
    if (processorTimeMs() - usedMs > processorMs || performance.now() - beganMs > waitLimitMs) hung.abort();
  }, looksEveryMs);
  try {
    return (await pool.run(order, { signal: hung.signal })) as StoryOutcome;
  } catch (error) {
    const isEndless = error instanceof Error && error.name === 'AbortError';
    const what = isEndless
      ? `the model had not come back after ${((performance.now() - beganMs) / 1000).toFixed(0)} s`
      : `the worker failed: ${error instanceof Error ? error.message : String(error)}`;
    return {
      seed,
      climate: 'calm',
      findings: [{ judge: 'machine', what }],
      refused: undefined,
      coverage: noCoverage,
    };
  } finally {
    clearInterval(looking);
  }
}

/** Returns the processor time of all threads of this process. */
function processorTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

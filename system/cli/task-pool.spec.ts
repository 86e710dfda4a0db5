import { describe, expect, it } from 'vitest';
import { RunError } from '../../sim/index.ts';
import type { PerfOrder } from './perf-run.ts';
import { TaskPool } from './task-pool.ts';

const order = (sizeBytes: number): PerfOrder => ({
  machine: { partition: 'single' },
  args: {
    verb: 'write',
    isLatency: true,
    sizeBytes,
    iterations: 20,
    qpCount: 1,
    txDepth: 1,
    rxDepth: 1,
    inlineBytes: 0,
    usesEvents: false,
    cqModeration: 1,
    mtuBytes: 0,
  },
});

describe('a pool that is abandoned', () => {
  it('lets the task that it has given out end, has those behind it do nothing, and takes no more', async () => {
    const pool = new TaskPool<PerfOrder, unknown>('perf-run', 1);
    await pool.run(order(2));
    const settled = Promise.allSettled([pool.run(order(64)), pool.run(order(128)), pool.run(order(256))]);
    await pool[Symbol.asyncDispose]();
    const failures = (await settled).filter(({ status }) => status === 'rejected');
    expect(failures.length).toBeGreaterThanOrEqual(2);
    for (const failure of failures) expect(failure).toMatchObject({ reason: expect.any(RunError) });
    await expect(pool.run(order(64))).rejects.toThrow('given up');
  });

  it.each([0, 20, 60, 100, 200])('%i ms after it has begun comes to its end', async (delayMs) => {
    const pool = new TaskPool<PerfOrder, unknown>('perf-run', 2);
    const settled = Promise.allSettled([pool.run(order(64)), pool.run(order(128)), pool.run(order(256))]);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    await pool[Symbol.asyncDispose]();
    expect(await settled).toHaveLength(3);
  });
});

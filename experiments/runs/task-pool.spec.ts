import { describe, expect, it, vi } from 'vitest';
import { ConfigurationError, runtime } from '../../base/index.ts';
import { RunError } from '../../sim/index.ts';
import type { PerfOrder } from './perf-run.ts';
import { TaskPool, taskRunner, tasksAtOnce } from './task-pool.ts';

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

const strange: PerfOrder = { ...order(64), machine: { set: { 'pcie.link.lanes': 3 } } };

vi.setConfig({ testTimeout: 300_000 });

describe('with one free core', () => {
  it('tasks run one after another in this thread and their errors keep their class, until they are abandoned', async () => {
    vi.spyOn(runtime(), 'coreCount', 'get').mockReturnValue(1);
    const runner = taskRunner<PerfOrder, { readonly args: PerfOrder['args'] }>('perf-run');
    expect(runner).not.toBeInstanceOf(TaskPool);
    const answers = await Promise.allSettled([
      runner.run(order(2)),
      runner.run(strange),
      runner.run(order(8)),
    ]);
    expect(answers).toMatchObject([
      { value: { args: { sizeBytes: 2 } } },
      { reason: expect.any(ConfigurationError) },
      { value: { args: { sizeBytes: 8 } } },
    ]);
    const settled = Promise.allSettled([runner.run(order(64)), runner.run(order(128))]);
    await runner[Symbol.asyncDispose]();
    for (const answer of await settled) expect(answer).toMatchObject({ reason: expect.any(RunError) });
  });

  it('the number depends on HCA_CORES; with more cores, workers run the tasks', async () => {
    const cores = vi.spyOn(runtime(), 'coreCount', 'get').mockReturnValue(2);
    await using pool = taskRunner('perf-run');
    await using alone = taskRunner('perf-run', 1);
    expect([pool instanceof TaskPool, alone instanceof TaskPool]).toEqual([true, false]);
    cores.mockReturnValue(0);
    expect(tasksAtOnce()).toBe(1);
  });
});

describe('an abandoned pool', () => {
  it('lets its running task end, drops the queued ones, and accepts no more', async () => {
    const pool = new TaskPool<PerfOrder, unknown>('perf-run', 1);
    await pool.run(order(2));
    await expect(pool.run(strange)).rejects.toThrow(ConfigurationError);
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

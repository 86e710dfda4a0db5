import { expect, it, vi } from 'vitest';
import type { Partition } from '../../machine/index.ts';
import runPerf, { type PerfOrder } from './perf-run.ts';

vi.setConfig({ testTimeout: 120_000 });

/** A latency test, whose programs poll memory while packets are in flight. */
const orderOf = (partition: Partition): PerfOrder => ({
  machine: { partition },
  args: {
    ...{ verb: 'write', isLatency: true, sizeBytes: 64, iterations: 20, qpCount: 1, txDepth: 1, rxDepth: 1 },
    ...{ inlineBytes: 0, usesEvents: false, cqModeration: 1, mtuBytes: 0 },
  },
});

it('counts between the same instants in every partition: interrupts of the boot do not belong to the test', async () => {
  const single = await runPerf(orderOf('single'));
  expect(single.interrupts).toEqual([0, 0]);
  for (const partition of ['per-node', 'per-device'] as const)
    expect(await runPerf(orderOf(partition)), partition).toEqual(single);
});

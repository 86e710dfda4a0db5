/** Ethernet switches in a ring whose pauses wait for each other: it ends as in hardware, by a watchdog, and says so. */
import { describe, expect, it, vi } from 'vitest';
import runFabric, { type FabricRow } from '../experiments/runs/fabric-run.ts';
import { fabricDefaults } from '../experiments/workloads/index.ts';
import { parsedTopology } from '../machine/topology/index.ts';
import { expectBalanced } from './expectations.ts';

vi.setConfig({ testTimeout: 240_000 });

const ring = (set: Readonly<Record<string, string | number>>): Promise<FabricRow> =>
  runFabric({
    machine: {
      topology: parsedTopology('ring:6'),
      set: {
        'hca.capability.linkLayer': 'ethernet',
        'hca.capability.roce': 'v2',
        'switch.ethernet.bufferKib': 64,
        ...set,
      },
    },
    args: { ...fabricDefaults, pattern: 'all-to-all', hostCount: 6, messages: 1 },
  });

const pauseDropsOf = ({ outputs }: FabricRow): number =>
  outputs.reduce((sum, { pauseDrops }) => sum + pauseDrops, 0);

describe('all to all over a ring of Ethernet switches with small buffers', () => {
  it('deadlocks by pauses; after the time of the watchdog frames are dropped and sent again', async () => {
    const row = await ring({ 'switch.ethernet.pauseWatchdogMs': 100 });
    expect(pauseDropsOf(row)).toBeGreaterThan(0);
    expect(row.isEqual).toBe(true);
    expectBalanced(row.report);
    // The watchdog waits 100 ms; without it nothing would move.
    expect(row.durationPs).toBeGreaterThan(100e9);
  });

  it('does not along a tree, which has no circle', async () => {
    const row = await ring({ 'switch.ethernet.multipath': 'tree' });
    expect(pauseDropsOf(row)).toBe(0);
    expect(row.durationPs).toBeLessThan(1e9);
  });
});

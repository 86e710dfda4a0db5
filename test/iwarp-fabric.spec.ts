/** Flows of iWARP over switches: connections between any two hosts, and rates that the receiver's cable can carry. */
import { describe, expect, it, vi } from 'vitest';
import runFabric from '../experiments/runs/fabric-run.ts';
import { type FabricArgs, type FabricPattern, fabricPatterns } from '../experiments/workloads/index.ts';
import { hostsOf, parsedTopology } from '../machine/topology/index.ts';
import { expectBalanced } from './expectations.ts';
import { smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

const iwarp = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' } as const;

function trafficOf(fabric: string, pattern: FabricPattern, more: Partial<FabricArgs> = {}) {
  const topology = parsedTopology(fabric);
  const args: FabricArgs = {
    pattern,
    verb: 'write',
    hostCount: hostsOf(topology).length,
    sizeBytes: 16_384,
    messages: 4,
    window: 4,
    ...more,
  };
  return runFabric({ machine: { topology, set: { ...smallMemory, ...iwarp } }, args });
}

describe('flows of iWARP over switches', () => {
  it.each(fabricPatterns)('%s: every flow is connected to its own peer', async (pattern) => {
    const { report, elapsedPs } = await trafficOf('star:4', pattern);
    expectBalanced(report);
    // No connection waits for the two seconds after which an address counts as unreachable.
    expect(elapsedPs).toBeLessThan(1e12);
  });

  it.each(['tree', 'halving-doubling'] as const)(
    'an all-reduce by %s has the right sums',
    async (algorithm) => {
      const { isEqual } = await trafficOf('dumbbell:4', 'all-reduce', { algorithm });
      expect(isEqual).toBe(true);
    },
  );
});

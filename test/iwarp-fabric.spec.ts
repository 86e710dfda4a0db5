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
    const { report, elapsedPs, isEqual } = await trafficOf('star:4', pattern);
    expectBalanced(report);
    expect(isEqual).toBe(true);
    // No connection waits for the two seconds after which an address counts as unreachable.
    expect(elapsedPs).toBeLessThan(1e12);
  });

  it.each([
    ['write', 1, 1],
    ['write', 3, 16],
    ['read', 3, 16],
  ] as const)(
    '%s: %i messages with a window of %i end when the receiver has them',
    async (verb, messages, window) => {
      const sizeBytes = 65_536;
      const row = await trafficOf('0-1', 'incast', { verb, messages, window, sizeBytes });
      expect([row.isEqual, row.completesEarly]).toEqual([true, verb === 'write']);
      // At 10 Gb/s a byte takes 800 ps, and no header is counted.
      expect(row.durationPs).toBeGreaterThan(messages * sizeBytes * 800);
      expect(row.bytesPerSecond).toBeLessThanOrEqual(row.cableBytesPerSecond);
    },
  );

  it('with several QPs, each of which confirms that its last message has arrived', async () => {
    const row = await trafficOf('star:3', 'incast', {
      qpCount: 3,
      messages: 7,
      window: 7,
      sizeBytes: 65_536,
    });
    expect([row.isEqual, row.completesEarly]).toEqual([true, true]);
    expect(row.durationPs).toBeGreaterThan(2 * 7 * 65_536 * 800);
    // Two senders: two more connections of each than with one QP.
    const single = await trafficOf('star:3', 'incast', { messages: 1 });
    const madeBy = ({ report }: typeof row): number => report.nodes[0]!.hca.commands['RST2INIT_QP']!;
    expect(madeBy(row) - madeBy(single)).toBe(4);
  });

  it('the messages themselves are in TCP before: a single one takes less than its bytes on the cable', async () => {
    const { messageTimes } = await trafficOf('0-1', 'incast', { messages: 1, sizeBytes: 65_536 });
    expect(messageTimes.maxPs).toBeLessThan(65_536 * 800);
  });

  it('an incast gets at most what the cable of the receiver carries', async () => {
    const row = await trafficOf('star:4', 'incast', { messages: 10, window: 8, sizeBytes: 65_536 });
    expect(row.bytesPerSecond).toBeLessThanOrEqual(row.cableBytesPerSecond);
    expect(row.bytesPerSecond).toBeGreaterThan(0.9 * row.cableBytesPerSecond);
  });

  it.each(['tree', 'halving-doubling'] as const)(
    'an all-reduce by %s has the right sums',
    async (algorithm) => {
      const { isEqual } = await trafficOf('dumbbell:4', 'all-reduce', { algorithm });
      expect(isEqual).toBe(true);
    },
  );
});

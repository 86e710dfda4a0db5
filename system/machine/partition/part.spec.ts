import { describe, expect, it } from 'vitest';
import { planMachine } from '../plan.ts';
import { configurationOf } from '../profile/index.ts';
import { MachinePart } from './part.ts';
import type { Partition } from './placement.ts';

/** The first thread's part, which has the first host. */
const partOf = (partition: Partition): MachinePart => {
  const config = configurationOf({ set: { 'host.memory.sizeMib': 64 } });
  const plan = planMachine({ config, faults: [], partition, shuffleSeed: undefined, analysis: undefined });
  return new MachinePart(plan, 0);
};

describe('payload that an HCA reads', () => {
  it.each(['single', 'per-node'] as const)(
    'lands at once where host and HCA share a thread: %s',
    (partition) => {
      const { hosts, hcas } = partOf(partition);
      expect(hosts.length).toBeGreaterThan(0);
      for (const [index, { rootComplex }] of hosts.entries()) {
        expect(rootComplex.reads.landings).toBe(hcas[index]!.hca.dmaRead);
      }
    },
  );

  it('travels with its completion where they do not', () => {
    const { hosts, hcas } = partOf('per-device');
    expect([hosts.length, hcas.length]).toEqual([1, 0]);
    expect(hosts[0]!.rootComplex.reads.landings).toBeUndefined();
  });

  it('is all that does but WQEs: contexts and doorbell records may be looked at as soon as they are there', () => {
    const { requesters } = partOf('single').hcas[0]!.hca.dmaRead;
    const ahead = requesters.filter(({ landsAhead }) => landsAhead).map(({ name }) => name);
    expect(ahead.sort()).toEqual(['payloadRead', 'responseRead', 'wqeRead']);
  });
});

import { describe, expect, it } from 'vitest';
import { MachinePart } from '../partition/part.ts';
import type { Partition } from '../partition/placement.ts';
import { planMachine } from '../plan.ts';
import { configurationOf } from '../profile/index.ts';

/** The parts of a machine, all built here. */
function partsIn(partition: Partition): MachinePart[] {
  const config = configurationOf({ set: { 'host.memory.sizeMib': 64 } });
  const plan = planMachine({ config, faults: [], partition, shuffleSeed: undefined, analysis: undefined });
  return plan.placement.map((_, thread) => new MachinePart(plan, thread));
}

describe('received payload', () => {
  it('is lent by each HCA to the root complex of its own host where they share a thread', () => {
    for (const partition of ['single', 'per-node'] as const) {
      const parts = partsIn(partition);
      const hosts = parts.flatMap((part) => part.hosts);
      const hcas = parts.flatMap((part) => part.hcas);
      for (const [index, { hca }] of hcas.entries()) {
        expect(hca.linkPort.loans.canLend(hca.wirePort.rxBytes, 256)).toBe(true);
        expect(hosts[index]!.rootComplex.writes.loans).toBe(hca.linkPort.loans);
      }
      expect(hcas[0]!.hca.linkPort.loans).not.toBe(hcas[1]!.hca.linkPort.loans);
    }
  });

  it('is carried where they do not', () => {
    for (const { hca } of partsIn('per-device').flatMap((part) => part.hcas))
      expect(hca.linkPort.loans.canLend(hca.wirePort.rxBytes, 256)).toBe(false);
  });
});

import { describe, expect, it } from 'vitest';
import { planMachine } from '../plan.ts';
import { configurationOf } from '../profile/index.ts';
import { MachinePart } from './machine-part.ts';
import type { Partition } from './placement.ts';

/** The parts of a machine, all built here. */
const partsOf = (partition: Partition, shortcuts = true): MachinePart[] => {
  const config = configurationOf({ set: { 'host.memory.sizeMib': 64 } });
  const choice = { config, faults: [], partition, shuffleSeed: undefined, shortcuts, analysis: undefined };
  const plan = planMachine(choice);
  return plan.placement.map((_, thread) => new MachinePart(plan, thread));
};

describe('data that an HCA reads and writes', () => {
  it.each(['single', 'per-node'] as const)(
    'is placed early, and not copied, where it shares a thread with its own host: %s',
    (partition) => {
      const parts = partsOf(partition);
      const hosts = parts.flatMap((part) => part.hosts);
      const hcas = parts.flatMap((part) => part.hcas);
      expect([hosts.length, hcas.length]).toEqual([2, 2]);
      for (const [index, { rootComplex }] of hosts.entries()) {
        const { shared, dmaRead, wirePort } = hcas[index]!.hca;
        expect(rootComplex.device).toBe(shared);
        expect(shared.earlyPlaces).toBe(dmaRead.earlyPlaces);
        expect(shared.earlyPlaces).toBeDefined();
        expect(shared.references!.canReference(wirePort.rxBytes, 256)).toBe(true);
      }
      expect(hcas[0]!.hca.shared.references).not.toBe(hcas[1]!.hca.shared.references);
    },
  );

  it('travel in records in separate threads, and without shortcuts', () => {
    const nothing = { earlyPlaces: undefined, references: undefined };
    for (const parts of [partsOf('per-device'), partsOf('single', false)]) {
      for (const { hca } of parts.flatMap((part) => part.hcas)) expect(hca.shared).toEqual(nothing);
      for (const { rootComplex } of parts.flatMap((part) => part.hosts))
        expect(rootComplex.device ?? nothing).toEqual(nothing);
    }
  });

  it('are placed early if they are payload or WQEs: software may see contexts and doorbell records at once', () => {
    const { requesters } = partsOf('single')[0]!.hcas[0]!.hca.dmaRead;
    const early = requesters.filter(({ placesEarly }) => placesEarly).map(({ name }) => name);
    expect(early.sort()).toEqual(['payloadRead', 'responseRead', 'wqeRead']);
  });
});

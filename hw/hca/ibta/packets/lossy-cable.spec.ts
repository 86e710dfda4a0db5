/**
 * Reliable connections over a cable that damages, loses, delays or duplicates one packet in ten: every byte is in its
 * place, every request is executed once and completed in order; or a connection ends with the error of exhausted
 * retries (IBTA vol 1, 9.7, 9.9.2).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../../sim/index.ts';
import { DamagePlace, type PacketEffect } from '../../../../wire/index.ts';
import { type DataPathBench, dataPathBench, tightest } from '../../testing/data-path-bench.ts';
import { mixedTraffic } from '../../testing/mixed-traffic.ts';

const delayPs = 3_000_000;
const effects: Readonly<Record<string, PacketEffect>> = {
  lost: { kind: 'lost' },
  'damaged in their headers': { kind: 'corrupted', place: DamagePlace.HEADER, isInside: false },
  'damaged in their payload, within a switch': {
    kind: 'corrupted',
    place: DamagePlace.PAYLOAD,
    isInside: true,
  },
  late: { kind: 'late', delayPs },
  duplicated: { kind: 'duplicated', passes: 1, delayPs },
  reordered: { kind: 'reordered', passes: 3, delayPs },
  congested: { kind: 'congested' },
};
const probability = 0.1;
/** Local ACK timeout code 2: 16 us. */
const ackTimeout = 2;

function injectAll(bench: DataPathBench, wanted: readonly PacketEffect[], seed: number): number[] {
  const fired = wanted.map(() => 0);
  for (const [node, { wire }] of bench.nodes.entries())
    for (const [index, effect] of wanted.entries()) {
      const random = new Random(seed, `${node}.${index}`);
      wire.faults.addRule(effect, { chance: { probability, random } }, { fired: () => fired[index]!++ });
    }
  return fired;
}

describe.each(['go-back-n', 'selective-repeat'] as const)('reliable connections with %s', (lossRecovery) => {
  const hca = { lossRecovery };
  it.each(Object.entries(effects))(
    'IBTA 9.7: move every byte once while one packet in ten is %s',
    async (_, effect) => {
      const bench = await dataPathBench({ hca });
      const fired = injectAll(bench, [effect], 5);
      const traffic = mixedTraffic(bench, 2, 30, 77, ackTimeout);
      await bench.until(traffic.step, 20_000);
      traffic.check();
      expect(fired[0]).toBeGreaterThan(10);
      for (const { events, dataPath } of bench.nodes) {
        expect(events.lines).toEqual([]);
        expect(dataPath.parts.violations.report()).toEqual({});
      }
    },
  );

  it('IBTA 9.9.2: move every byte once, or end as exhausted retries demand, with all of that together', async () => {
    let exhausted = 0;
    const run = async (seed: number, isTight: boolean): Promise<void> => {
      const bench = await dataPathBench({ hca: isTight ? { ...hca, ...tightest } : hca });
      const fired = injectAll(bench, Object.values(effects), seed);
      const traffic = mixedTraffic(bench, 2, 16, seed, ackTimeout);
      await bench.until(traffic.stepToEnd, 50_000);
      exhausted += traffic.checkEndings();
      expect(Math.min(...fired)).toBeGreaterThan(0);
    };
    const stories = fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 31 }), fc.boolean(), run);
    await fc.assert(stories, { numRuns: 4, seed: 19 });
    expect(exhausted).toBeLessThan(4);
  });

  it('IBTA 9.9.2: end with the error of exhausted retries, and the others flushed, once no request arrives any more', async () => {
    const bench = await dataPathBench({ hca });
    bench.a.wire.faults.addRule({ kind: 'lost' }, { only: 'requests', first: 40 }, { fired: () => {} });
    const traffic = mixedTraffic(bench, 2, 30, 3, ackTimeout);
    await bench.until(traffic.stepToEnd, 20_000);
    expect(traffic.checkEndings()).toBeGreaterThan(0);
  });
});

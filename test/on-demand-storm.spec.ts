/**
 * Random two-way traffic over on-demand regions (programs/on-demand-storm.ts): every request is legal, so all must end in
 * SUCCESS with the right bytes, for any size of caches and buffers, any changes of pages, and any timers.
 */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { expectBalanced } from './expectations.ts';
import { programsOf, runPrograms } from './machines.ts';
import type { StormArgs } from './programs/on-demand-storm.ts';

vi.setConfig({ testTimeout: 300_000 });

type Hardware = Readonly<Record<string, number>>;

/** Runs a storm and checks its end: no errors, and balanced ledgers. */
async function expectCalm(args: StormArgs, set: Hardware): Promise<void> {
  const programs = programsOf('on-demand-storm', 'storm', args);
  const { results, report } = await runPrograms(programs, { set });
  expect(results).toEqual([{ wrong: [] }, { wrong: [] }]);
  expectBalanced(report);
  for (const { onDemand } of report.nodes)
    if (onDemand !== undefined)
      expect(onDemand.device.refused).toEqual({ requester: 0, responder: 0, response: 0 });
}

/** Time-outs from 4 ms on: with time-outs shorter than the arrival of a page, legal requests would use up their retries. */
const storms: fc.Arbitrary<StormArgs> = fc.record({
  seed: fc.nat(1e6),
  pairs: fc.constantFrom(1, 2, 3),
  works: fc.constantFrom(6, 12, 20),
  window: fc.constantFrom(1, 4, 16),
  mtu: fc.constantFrom<StormArgs['mtu'][]>(1, 2, 3, 4, 5),
  timeoutCode: fc.constantFrom(10, 12, 14),
  rnrTimerCode: fc.constantFrom(1, 6, 10),
  readsMax: fc.constantFrom(1, 4, 16),
  onDemand: fc.constantFrom<StormArgs['onDemand'][]>(0, 1, 'both'),
});

const hardware: fc.Arbitrary<Hardware> = fc.record({
  'driver.pageRequestPagesMax': fc.constantFrom(1, 2, 8),
  'driver.onDemandPagesMax': fc.constantFrom(16, 40, 200),
  'hca.mttCacheLines': fc.constantFrom(1, 2, 8),
  'hca.mttCacheWays': fc.constant(1),
  'hca.mptCacheEntries': fc.constantFrom(1, 2, 256),
  'hca.mptCacheWays': fc.constant(1),
  'hca.transmitBufferPackets': fc.constantFrom(2, 32),
  'hca.responseBufferPackets': fc.constantFrom(2, 32),
  'hca.burstPackets': fc.constantFrom(1, 4),
});

const usual: StormArgs = {
  seed: 1,
  pairs: 3,
  works: 24,
  window: 16,
  mtu: 5,
  timeoutCode: 14,
  rnrTimerCode: 1,
  readsMax: 16,
  onDemand: 'both',
};

describe('random two-way traffic over on-demand regions', () => {
  it.each([
    ['small packets, one at a time', { mtu: 1, window: 1, readsMax: 1, seed: 2 }],
    ['packets of a page', { seed: 3 }],
    ['a sender without pins', { onDemand: 0, mtu: 3, seed: 4 }],
    ['a receiver without pins', { onDemand: 1, mtu: 3, seed: 5 }],
    ['long waits for receivers that are not ready', { rnrTimerCode: 10, timeoutCode: 10, mtu: 2, seed: 19 }],
  ] as const)('ends successfully on default hardware: %s', async (_name, more) => {
    await expectCalm({ ...usual, ...more }, {});
  });

  it('ends successfully on hardware of the smallest sizes, with pages evicted all the time', async () => {
    await fc.assert(fc.asyncProperty(storms, hardware, expectCalm), { numRuns: 12, seed: 20_261_123 });
  });

  it('ends successfully for stories that were never played', async () => {
    await fc.assert(fc.asyncProperty(storms, hardware, expectCalm), { numRuns: 3 });
  });
});

/** Values of a report compared with programs' own measurements, by their own clock and counts: two records of the same run that share no code. */
import { beforeAll, describe, expect, it } from 'vitest';
import { renderReport } from '../explain/text/render.ts';
import type { Report } from '../machine/report/schema.ts';
import { expectBalanced } from './expectations.ts';
import { type Outcome, programsOf, runPrograms } from './machines.ts';

it.each([1, 1024])(
  'latencies of QPs whose numbers differ by %i are those that the program measured',
  async (apart) => {
    const rounds = 3;
    const { results, report } = await runPrograms(programsOf('own-clock', 'farApart', { apart, rounds }));
    const own = results[0] as { apart: number; latencyPs: number };
    expect(own.apart).toBe(apart);
    const { count, milestonesPs, latencyPs } = report.operations['WRITE']!;
    expect(count).toBe(2 * rounds);
    expect(Object.values(milestonesPs).reduce((sum, ps) => sum + ps, 0)).toBe(own.latencyPs);
    expect(latencyPs!.max).toBeGreaterThan(150e6);
    expectBalanced(report);
  },
  120_000,
);

describe('a receiver that is seldom ready', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    outcome = await runPrograms(programsOf('own-clock', 'slowReceiver'));
  }, 120_000);

  it('causes retransmissions, with each packet still sent once for the first time', () => {
    expect(outcome.results).toEqual([
      { statuses: ['SUCCESS'], count: 40 },
      { statuses: ['SUCCESS'], count: 40 },
    ]);
    const toReceiver = outcome.report.wire[0]!;
    const packetsOf = (rows: typeof toReceiver.opcodes): number =>
      Object.values(rows).reduce((sum, { packets }) => sum + packets, 0);
    // 40 messages of 10,000 bytes at an MTU of 1,024 bytes.
    expect(packetsOf(toReceiver.opcodes)).toBe(400);
    expect(packetsOf(toReceiver.retransmitted)).toBeGreaterThan(40);
    expect(toReceiver.corrupted + toReceiver.dropped).toBe(0);
  });

  it('is reported as RNR NAKs, equal at both ends, and not as a violation of rules', () => {
    const [sender, receiver] = outcome.report.nodes.map(({ hca }) => hca);
    expect(receiver!.transport['rnrNakSent']).toBeGreaterThanOrEqual(39);
    expect(sender!.transport['rnrNakReceived']).toBe(receiver!.transport['rnrNakSent']);
    expect(receiver!.transport['requestOutOfSequence']).toBeGreaterThan(0);
    expect([sender!.violations, receiver!.violations]).toEqual([{}, {}]);
    expectBalanced(outcome.report);
    expect(renderReport(outcome.report)).toMatch(/rnrNakSent.*\n/);
  });
});

/** A bandwidth test of perf over 16 MiB of random offsets, with this number of MTT cache lines. */
async function randomWrites(iterations: number, mttCacheLines: number): Promise<Report> {
  const args = {
    verb: 'write',
    isLatency: false,
    sizeBytes: 64,
    iterations,
    qpCount: 1,
    txDepth: 64,
    rxDepth: 1,
    inlineBytes: 0,
    usesEvents: false,
    cqModeration: 16,
    mtuBytes: 0,
    region: { bytes: 16 * 2 ** 20, pattern: 'random' },
  };
  const url = new URL('../experiments/workloads/perf-bandwidth.ts', import.meta.url);
  const programs = ['bandwidthClient', 'bandwidthServer'].map((exportName, node) => ({
    node,
    run: { url, exportName },
    args,
  }));
  const set = {
    'host.memory.sizeMib': 256,
    'host.memory.framePlacement': 'scattered',
    'hca.mttCacheLines': mttCacheLines,
  };
  return (await runPrograms(programs, { set })).report;
}

it('counts one translation for each WRITE of a test, at either end, and as many misses as random accesses cause', async () => {
  // 16 MiB are 4,096 pages of 4 KiB: 512 lines of eight entries. One line serves one page in 512.
  const [client, server] = (await randomWrites(1500, 1)).nodes.map(({ hca }) => hca.caches);
  for (const { hits, misses } of [client!['mtt']!.users['requester']!, server!['mtt']!.users['receiver']!]) {
    expect(hits + misses).toBe(1500);
    expect(misses / 1500).toBeGreaterThan(0.98);
  }
  expect(client!['qpc']!.users['requester']).toEqual({ hits: 1499, misses: 1 });
  expect(server!['qpc']!.users['receiver']).toEqual({ hits: 1499, misses: 1 });
  // The cache is as large as the region: each line is missed at most once, and none is abandoned.
  const [large] = (await randomWrites(1500, 1024)).nodes.map(({ hca }) => hca.caches['mtt']!);
  expect(large!.users['requester']!.misses).toBeLessThanOrEqual(513);
  expect(large!.evictions).toBe(0);
}, 120_000);

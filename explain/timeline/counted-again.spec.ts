/**
 * Cycles of blocks, cache look-ups, operation times and numbers under way, of random tests on random machines, with
 * lost and retransmitted packets; counted a second time from the records of the run. The counters of a `perf` row must
 * be those since its warm-up. COUNT_SEEDS=from..to runs others.
 */
import { describe, expect, it } from 'vitest';
import { drawShortRun, type ShortRun } from '../../experiments/bottleneck/testing/short-run.ts';
import runPerf from '../../experiments/runs/perf-run.ts';
import type { BandwidthResult } from '../../experiments/workloads/perf-result.ts';
import { kindNumbers } from '../../machine/timeline/index.ts';
import { rowsOf } from '../../test/extent.ts';
import { addAt } from './testing/add-at.ts';
import { cacheFailures, figureFailures } from './testing/figures-judge.ts';
import { machineOf, type RecordedRun, recordedRun } from './testing/recorded-run.ts';
import { seedsOf } from './testing/seeds.ts';

const messages = 60;
const categories = ['operations', 'levels', 'caches', 'blocks', 'tlps', 'interrupts'] as const;

const seeds = seedsOf(
  'COUNT_SEEDS',
  rowsOf(
    [3, 6, 10, 14],
    Array.from({ length: 16 }, (_, at) => 20 + at),
  ),
);

it.each(seeds)('figures are those of the records, of seed %i', async (seed) => {
  const run = drawShortRun(seed, messages);
  expect(figureFailures(await recordedRun(run, categories)), JSON.stringify(run)).toEqual([]);
});

const withWarmup = (seed: number): ShortRun => {
  const run = drawShortRun(seed, messages);
  const isLatency = String(run.fields['test']).endsWith('-lat');
  return isLatency ? run : { ...run, fields: { ...run.fields, warmup: 3 } };
};

const measuredRuns = seeds
  .slice(1, 3)
  .flatMap((seed) => [
    ['after a warm-up', seed, withWarmup(seed)] as const,
    ['from a cold start', seed, drawShortRun(seed, messages)] as const,
  ]);

it.each(measuredRuns)('a row counts its messages alone, %s, of seed %i', async (_how, _seed, run) => {
  const words = JSON.stringify(run);
  const { machine, args } = machineOf(run);
  const row = await runPerf({ machine, args });
  const { timeline, startPs = 0, endPs } = await recordedRun(run, ['caches', 'interrupts']);
  const since = [...timeline.records()].filter(({ atPs }) => Number(atPs) >= startPs && Number(atPs) < endPs);
  for (const [node, caches] of row.caches.entries()) {
    expect(cacheFailures(since, node, caches), words).toEqual([]);
    const delivered = since.filter(
      ({ kind, track, values }) =>
        kind === 'interrupt' && track.process === `host${node}` && values[0] === stepDelivered,
    );
    expect(row.interrupts[node], words).toBe(delivered.length);
  }
  if (args.isLatency) return;
  const { durationPs, messagesPerSecond } = row.result as BandwidthResult;
  const ways = args.isBidirectional === true ? 2 : 1;
  const sent = args.iterations * args.qpCount * ways;
  expect((messagesPerSecond * durationPs) / 1e12, words).toBeCloseTo(sent, 6);
});

/** Number of the interrupt step `delivered` in records. */
const stepDelivered = 7;

describe('the count of figures finds', () => {
  const run: ShortRun = {
    fields: { test: 'write-bw', size: 300, qps: 2, iters: 20, txDepth: 8, cqMod: 4 },
    set: {},
    faults: [],
  };
  let made: Promise<RecordedRun> | undefined;
  const given = () => (made ??= recordedRun(run, categories));

  it.each([
    ['nodes.0.hca.blocks.requester.busyCycles', 0, /^$/],
    ['nodes.0.hca.blocks.requester.busyCycles', 1, /requester: \d+ of \d+ cycles/],
    ['nodes.0.hca.caches.mtt.users.requester.misses', 1, /mtt requester.*mtt: \d+ and \d+ are no sums/],
    ['nodes.0.hca.caches.qpc.users.requester.hits', 1000, /qpc requester/],
    ['operations.WRITE.milestonesPs.remote', 1, /WRITE stages/],
    ['operations.WRITE.milestonesPs.taken', -1, /WRITE taken/],
    ['operations.WRITE.latencyPs.max', 1, /WRITE max/],
    ['operations.WRITE.silent', 1, /WRITE silent/],
  ] as const)('%s that is %i more', async (path, by, words) => {
    const { report, ...rest } = await given();
    const changed = structuredClone(report);
    addAt(changed, path.split('.'), by);
    expect(figureFailures({ ...rest, report: changed }).join('; ')).toMatch(words);
  });

  it('busy cycles that idle ones compensate', async () => {
    const { report, ...rest } = await given();
    const changed = structuredClone(report);
    addAt(changed, 'nodes.1.hca.blocks.receiver.busyCycles'.split('.'), 500);
    addAt(changed, 'nodes.1.hca.blocks.receiver.idleCycles'.split('.'), -500);
    expect(figureFailures({ ...rest, report: changed }).join('; ')).toMatch(
      /^node 1 receiver busy: \d+ cycles/,
    );
  });

  it('a request that was completed a picosecond later than its queue shows', async () => {
    const recorded = await given();
    const shifted = {
      ...recorded,
      timeline: recorded.timeline.between(0, Number(recorded.report.elapsedPs)),
    };
    const { columns } = shifted.timeline.parts.find(({ process }) => process === 'host0')!;
    const kinds = [...recorded.timeline.records()].filter(({ kind }) => kind === 'taken');
    expect(kinds.length).toBeGreaterThan(0);
    const place = columns.kind.indexOf(kindNumbers.taken);
    columns.ps[place] = columns.ps[place]! + 1;
    expect(figureFailures(shifted).join('; ')).toMatch(/requests posted and not taken: \d+ ps, \d+ are due/);
  });
});

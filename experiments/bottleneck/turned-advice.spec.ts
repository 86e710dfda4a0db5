/**
 * Judges `perf`'s bottleneck for random tests on random machines: the rate must rise if the advised parameter is
 * changed. If the tool reports that the next resource is nearly as busy, both may have to change. Changing the last
 * resource of its list must not raise the rate. ADVICE_SEEDS=from..to runs others.
 *
 * For short runs from a cold start, only the bottleneck itself is judged: boot, set-up and the end of the programs take
 * longer than the messages, and their waits are not subject to advice.
 */
import { expect, it } from 'vitest';
import { rowsOf } from '../../test/extent.ts';
import runPerf, { type PerfRow } from '../runs/perf-run.ts';
import type { BandwidthResult } from '../workloads/perf-result.ts';
import type { Resource, Turn } from './measured.ts';
import { type DrawnRun, drawRun } from './testing/drawn-run.ts';
import { orderOf, turnedBy } from './testing/turning.ts';

const rateOf = ({ result }: PerfRow): number => (result as BandwidthResult).messagesPerSecond;
const rateWith = async (run: DrawnRun): Promise<number> => rateOf(await runPerf(orderOf(run)));

const from = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

/** A rise beyond chance: runs of so few messages have start and end effects. */
const risen = 1.04;
/** The next resource, nearly as busy as the bottleneck. */
const near = 0.8;

/** The highest rate after one of the changes, as a ratio; stops at the first sufficient one. */
async function bestOf(run: DrawnRun, rate: number, turns: readonly Turn[]): Promise<number> {
  let best = 0;
  for (const turn of turns) {
    const turned = turnedBy(run, turn);
    if (turned === undefined) continue;
    best = Math.max(best, (await rateWith(turned)) / rate);
    if (best >= risen) return best;
  }
  return best;
}

/** The first possible change of each, all together. */
async function togetherOf(run: DrawnRun, rate: number, resources: readonly Resource[]): Promise<number> {
  let all = run;
  for (const { turn } of resources)
    for (const each of turn) {
      const turned = turnedBy(all, each);
      if (turned === undefined) continue;
      all = turned;
      break;
    }
  return (await rateWith(all)) / rate;
}

const [first = 0, last = -1] = (process.env['ADVICE_SEEDS'] ?? '').split('..').map(Number);
const seeds = last > first ? from(first, last) : rowsOf([1, 2], [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);

it.each(seeds)('turning what binds raises the rate, of seed %i', async (seed) => {
  const run = drawRun(seed);
  const row = await runPerf(orderOf(run));
  const { binds, next } = row.bottleneck!;
  const rate = rateOf(row);
  const words = JSON.stringify({ run, rate, binds, next: next.map(({ name, share }) => [name, share]) });
  for (const { share } of [binds, ...next]) expect(share).toBeLessThanOrEqual(1);
  expect(row.isBalanced, words).toBe(true);
  expect(binds.turn, words).not.toEqual([]);
  const close = next.filter(({ share }) => share >= near * binds.share);
  const alone = await bestOf(run, rate, binds.turn);
  const best = alone >= risen ? alone : await togetherOf(run, rate, [binds, ...close]);
  expect(best, words).toBeGreaterThanOrEqual(risen);
  const idle = next.findLast(({ kind, share }) => kind === 'server' && share < 0.3);
  const idleTurn = idle?.turn.find(({ what }) => what.startsWith('hca.'));
  // All blocks share the device's clock.
  if (idleTurn === undefined || idleTurn.what === 'hca.coreClockMHz') return;
  // After a window, every other change alters the waits of all others.
  if (binds.kind === 'window' || binds.share < 0.95) return;
  if (binds.turn.some(({ what }) => what === idleTurn.what)) return;
  const elsewhere = turnedBy(run, idleTurn);
  if (elsewhere !== undefined)
    expect((await rateWith(elsewhere)) / rate, `${idle!.name} ${words}`).toBeLessThan(1.1);
});

/** Shortens a run: no warm-up, and a few hundred messages in all. */
function shortened({ fields: { warmup: _, ...fields }, ...rest }: DrawnRun): DrawnRun {
  const total = Math.min(400, Math.max(32, 2 ** 19 / Number(fields['size'])));
  return { ...rest, fields: { ...fields, iters: Math.max(2, Math.ceil(total / Number(fields['qps']))) } };
}

it.each(rowsOf([27, 68], [18, 24, 26, 29, 33, 40]))(
  'changing the bottleneck of a short run raises its rate, for seed %i',
  async (seed) => {
    const run = shortened(drawRun(seed));
    const row = await runPerf(orderOf(run));
    const { binds } = row.bottleneck!;
    const best = await bestOf(run, rateOf(row), binds.turn);
    expect(best, JSON.stringify({ run, binds })).toBeGreaterThanOrEqual(risen);
  },
);

/** Least ratio that counts as an improvement; rates of few messages are not more precise. */
const improved = 1.01;

/** The result of the first possible advice, and whether it is qualified. */
async function firstAdviceOf(seed: number) {
  const run = shortened(drawRun(seed));
  const row = await runPerf(orderOf(run));
  const { binds, caveat } = row.bottleneck!;
  const [turn, turned] = binds.turn
    .map((each) => [each, turnedBy(run, each)] as const)
    .find(([, made]) => made !== undefined) ?? [undefined, run];
  const ratio = (await rateWith(turned!)) / rateOf(row);
  return { seed, binds: binds.name, turn, ratio, caveat };
}

it('the first advice for a short run raises its rate by 1 %, or reports another equally busy resource', async () => {
  const asked = rowsOf(
    [23, 27, 53, 54, 57, 62, 89, 97, 104, 142, 171, 220, 232, 282, 363, 428, 458],
    from(1, 120),
  );
  const advices = [];
  for (const seed of asked) advices.push(await firstAdviceOf(seed));
  expect(advices.filter(({ ratio, caveat }) => ratio < improved && caveat === undefined)).toEqual([]);
  const qualified = advices.filter(({ caveat }) => caveat !== undefined);
  for (const { caveat } of qualified)
    expect(caveat).toMatch(/^Turning that alone may change little: .+ is \d{2,3} % (busy|full), too\.$/);
  // One in three of runs 1 to 120 has it; runs with idle advice have it more often.
  expect(qualified.length).toBeLessThan(0.5 * advices.length);
});

it.each([
  [64, 5],
  [512, 3],
])(
  'ignores waits of boot and end in a run of %i bytes over Gen%i, whose rate does not depend on credits',
  async (size, generation) => {
    const set = { 'pcie.link.lanes': 8, 'dma.tagCount': 64, 'pcie.link.generation': generation };
    const run = { profile: 'gen5-x16-what-if', set, fields: { test: 'write-bw', iters: 100, qps: 4, size } };
    const row = await runPerf(orderOf(run));
    const { binds, next } = row.bottleneck!;
    const credits = { 'pcie.rootPort.postedData': 2047, 'pcie.rootPort.postedHeaders': 127 };
    expect(await rateWith({ ...run, set: { ...set, ...credits } })).toBe(rateOf(row));
    for (const { name, share } of [binds, ...next])
      if (name.includes('credits')) expect(share, name).toBeLessThan(0.1);
    expect(binds.name).toBe('core of host 0');
  },
);

/** Points that run and points that do not: resumed sweeps, failed points, equal points, shards, imported results. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { headerOf, pointsOf } from './expansion.ts';
import { ResultsFile } from './results-file.ts';
import type { Outcome, SweepRow } from './row.ts';
import { laneEngine, type PointRunner, type RunChoice, runWork, type SweepEngine, workOf } from './runner.ts';
import { checkedSpec } from './spec.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-runner-'));
afterAll(() => rmSync(folder, { recursive: true }));
let fileCount = 0;

const spec = checkedSpec({
  workload: 'write-bw,iters=10,region=4K',
  vary: { size: [64, 128, 8192], 'pcie.link.generation': [3, 4] },
});
const points = pointsOf(spec);
const header = headerOf(spec, points);

/** Answers with the size after a time that depends on it, so that points end in another order than they begin. */
class CountingRunner implements PointRunner {
  readonly ran: number[] = [];
  readonly capacity: number;
  readonly #failing: ReadonlySet<number>;

  constructor(capacity: number, failing: readonly number[] = []) {
    this.capacity = capacity;
    this.#failing = new Set(failing);
  }

  async run({ args: { sizeBytes } }: Parameters<PointRunner['run']>[0]): Promise<Outcome> {
    this.ran.push(sizeBytes);
    for (let turn = 0; turn < 200 / sizeBytes; turn++) await Promise.resolve();
    if (this.#failing.has(sizeBytes)) return { status: 'failed', error: 'it broke' };
    return { status: 'done', figures: { size: sizeBytes } };
  }
}

async function run(
  runner: PointRunner,
  choice: RunChoice = {},
  file = join(folder, `${fileCount++}.jsonl`),
): Promise<string> {
  using results = new ResultsFile(file, header);
  await runWork(workOf(points, results.rows, choice), results, laneEngine(runner));
  return file;
}

const rowsOf = (file: string): SweepRow[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(1, -1)
    .map((line) => JSON.parse(line) as SweepRow);

describe('a sweep', () => {
  it('has a row for each point: done, failed, or refused without a run', async () => {
    const runner = new CountingRunner(1, [128]);
    const rows = rowsOf(await run(runner));
    expect(rows.map(({ status }) => status)).toEqual([
      'done',
      'done',
      'failed',
      'failed',
      'refused',
      'refused',
    ]);
    expect(rows[2]).toMatchObject({
      error: 'it broke',
      axes: { size: 128, 'pcie.link.generation': 3 },
      figures: {},
    });
    expect(rows[4]!.error).toBe('region is 4096, expected at least size 8192');
    // Points of the same machine run consecutively: generation 3, then 4.
    expect(runner.ran).toEqual([64, 128, 64, 128]);
  });

  it('has the same bytes for any number of concurrent points', async () => {
    const [one, four] = [await run(new CountingRunner(1)), await run(new CountingRunner(4))];
    expect(readFileSync(four, 'utf8')).toBe(readFileSync(one, 'utf8'));
  });

  it('repeats no point, but failed ones on request', async () => {
    const file = await run(new CountingRunner(2, [128]));
    const again = new CountingRunner(2);
    await run(again, {}, file);
    expect(again.ran).toEqual([]);
    await run(again, { isFailedRetried: true }, file);
    expect(again.ran).toEqual([128, 128]);
    expect(rowsOf(file).map(({ status }) => status)).toEqual([
      'done',
      'done',
      'done',
      'done',
      'refused',
      'refused',
    ]);
  });

  it('imports the results that other sweeps have of its points', async () => {
    const reused = rowsOf(await run(new CountingRunner(1))).map((row) => ({
      ...row,
      index: row.index + 100,
    }));
    const runner = new CountingRunner(1);
    const file = await run(runner, { reused: reused.slice(0, 3) });
    expect(runner.ran).toEqual([128]);
    expect(rowsOf(file)).toEqual(rowsOf(await run(new CountingRunner(1))));
  });

  it('prefers imported figures to failures, in either order', async () => {
    const good = rowsOf(await run(new CountingRunner(1)));
    const bad = rowsOf(await run(new CountingRunner(1, [64, 128])));
    for (const reused of [
      [...good, ...bad],
      [...bad, ...good],
    ])
      expect(rowsOf(await run(new CountingRunner(1), { reused }))).toEqual(good);
  });

  it('runs equal machines and workloads once, and has a row for each point', async () => {
    const twice = checkedSpec({
      workload: 'write-bw,iters=10,size=64',
      vary: { profile: ['connectx3-qdr', 'connectx3-fdr'], 'wire.speed': ['QDR', 'FDR'] },
    });
    const all = pointsOf(twice);
    const runner = new CountingRunner(2);
    const file = join(folder, 'twice.jsonl');
    using results = new ResultsFile(file, headerOf(twice, all));
    await runWork(workOf(all, results.rows), results, laneEngine(runner));
    expect(runner.ran).toHaveLength(2);
    expect(rowsOf(file).map(({ index, status }) => [index, status])).toEqual(
      [0, 1, 2, 3].map((at) => [at, 'done']),
    );
  });

  it('is the sum of its shards, for any number of them', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), (count) => {
        const all = Array.from({ length: count }, (_, at) => {
          const { groups, known } = workOf(points, new Map(), { shard: { number: at + 1, count } });
          return [...groups.flat(), ...known].map(({ index }) => index);
        });
        expect(all.flat().toSorted((left, right) => left - right)).toEqual(points.map(({ index }) => index));
        expect(new Set(all.flat().map((index) => index % count)).size).toBe(Math.min(count, points.length));
      }),
    );
  });

  it('has one row of a point with two outcomes, and ends with an error if a point has none', async () => {
    const file = join(folder, 'twice-given.jsonl');
    using results = new ResultsFile(file, header);
    const work = workOf(points, results.rows);
    const figures = (size: number): Outcome => ({ status: 'done', figures: { size } });
    let given = 0;
    const hasty: SweepEngine = {
      run: async (all, take) => {
        for (const { hash } of all) for (const size of [1, 2]) take(hash, figures(size));
        take('of another sweep', figures(3));
        given = all.length;
      },
    };
    await runWork(work, results, hasty);
    expect(given).toBe(4);
    expect(rowsOf(file).map(({ figures: { size } }) => size)).toEqual([1, 1, 1, 1, undefined, undefined]);
    const lazy: SweepEngine = { run: async () => {} };
    await expect(runWork(work, results, lazy)).rejects.toThrow('an outcome for every point');
  });

  it('ends with the error of its file, and starts no more points', async () => {
    const runner = new CountingRunner(2);
    const file = join(folder, 'closed.jsonl');
    const results = new ResultsFile(file, header);
    const work = workOf(points, results.rows);
    results[Symbol.dispose]();
    await expect(runWork({ ...work, known: [] }, results, laneEngine(runner))).rejects.toThrow('EBADF');
    expect(runner.ran.length).toBeLessThan(4);
  });
});

/**
 * A sweep by workers of a queue on Debian's Redis: one worker is killed while it runs a point, the sweep itself is killed and comes
 * back, and the rows are those of a sweep on one machine.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hcaWithin, mainPath } from '../../system/cli/testing/in-process.ts';
import { connected } from '../../system/sweep/bullmq/connection.ts';
import { clusterTree, Started, startRedis, until } from './cluster.ts';
import { rowCountOf, sweepSpec } from './sweep-spec.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-bullmq-'));
const inFolder = (name: string): string => join(folder, name);
let redis: Awaited<ReturnType<typeof startRedis>>;

beforeAll(async () => {
  redis = await startRedis(await clusterTree());
  writeFileSync(inFolder('spec.yaml'), sweepSpec);
  const words = ['sweep', 'spec.yaml', '--jobs', '1', '--out', 'local.jsonl'];
  expect((await hcaWithin({ cwd: folder }, words)).code).toBe(0);
});
afterAll(async () => {
  await redis?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const startHca = (...words: string[]): Started =>
  new Started(process.execPath, [mainPath, 'sweep', ...words], { cwd: folder });
const startWorker = (): Started => startHca('worker', '--redis', redis.url, '--jobs', '1', '--lease', '5');
const startSweep = (): Started =>
  startHca('spec.yaml', '--engine', 'bullmq', '--redis', redis.url, '--out', 'queue.jsonl');

it('has each point once, though a worker and the sweep are killed', async () => {
  rmSync(inFolder('queue.jsonl'), { force: true });
  const { packages, redis: connection } = await connected({ url: redis.url, queue: 'hca-sweep' });
  const events = new packages.QueueEvents('hca-sweep', { connection });
  const hashes: Record<string, string[]> = { stalled: [], completed: [], failed: [] };
  for (const [event, seen] of Object.entries(hashes))
    events.on(event, ({ jobId }: { readonly jobId: string }) => seen.push(jobId));
  await events.waitUntilReady();
  try {
    await using first = startWorker();
    await using second = startWorker();
    {
      await using sweep = startSweep();
      await until('two rows', () => rowCountOf(inFolder('queue.jsonl')) >= 2);
      expect(await first.kill('SIGKILL')).toBe('SIGKILL');
      expect(await sweep.kill('SIGKILL')).toBe('SIGKILL');
    }
    // What the other one runs while there is no sweep is kept for it.
    const doneCount = hashes['completed']!.length;
    await until('a point without a sweep', () => hashes['completed']!.length > doneCount);
    await using again = startSweep();
    expect([await again.ended(), again.text]).toEqual([
      0,
      expect.stringContaining('12 of 12 points are done.'),
    ]);
    expect(readFileSync(inFolder('queue.jsonl'), 'utf8')).toBe(readFileSync(inFolder('local.jsonl'), 'utf8'));
    // The point that the dead worker had was run by the other; no point ended twice.
    expect(hashes['stalled']!.length).toBeGreaterThan(0);
    expect(hashes['completed']).toHaveLength(12);
    expect(new Set(hashes['completed']).size).toBe(12);
    expect(hashes['failed']).toEqual([]);
    const ended = await second.kill('SIGTERM');
    expect([ended, second.text]).toEqual([0, expect.stringMatching(/\d+ points have run here/)]);
  } finally {
    await events.close();
    connection.disconnect();
  }
});

it('has a worker of another version refuse a point, which stays for others', async () => {
  const { packages, redis: connection } = await connected({ url: redis.url, queue: 'other' });
  const queue = new packages.Queue('other', { connection });
  try {
    const options = { jobId: 'abc', removeOnComplete: { age: 60 }, removeOnFail: { age: 60 } };
    await queue.add('point', { version: '0.0.9', machine: {}, workload: 'write-bw,size=64' }, options);
    const words = ['sweep', 'worker', '--redis', redis.url, '--queue', 'other', '--jobs', '1'];
    const { code, err } = await hcaWithin({ cwd: folder }, words);
    expect(err).toMatch(/^hca: version of the sweep is "0.0.9", expected [\d.]+, as this emulator is\n$/);
    expect(code).toBe(2);
    expect((await queue.getJob('abc'))!.finishedOn).toBeUndefined();
  } finally {
    await queue.close();
    connection.disconnect();
  }
});

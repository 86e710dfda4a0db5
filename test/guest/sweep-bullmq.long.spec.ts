/**
 * A sweep by workers of a queue on Debian's Redis and Valkey: one worker is killed while it runs a point, the sweep itself is
 * killed and restarted, and the rows equal those of a sweep on one machine. A point that kills its workers is abandoned.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hcaWithin, mainPath } from '../../cli/testing/in-process.ts';
import { connected, keepOptions } from '../../experiments/sweep/bullmq/connection.ts';
import { BullmqEngine } from '../../experiments/sweep/bullmq/index.ts';
import { checkedSpec, type Outcome, pointsOf } from '../../experiments/sweep/index.ts';
import { type QueueServer, Started, startQueueServer, until } from './cluster.ts';
import { rowCountOf, sweepSpec } from './sweep-spec.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-bullmq-'));
const inFolder = (name: string): string => join(folder, name);
let redis: QueueServer;
let valkey: QueueServer;

beforeAll(async () => {
  redis = await startQueueServer('redis');
  valkey = await startQueueServer('valkey');
  writeFileSync(inFolder('spec.yaml'), sweepSpec);
  const words = ['sweep', 'spec.yaml', '--jobs', '1', '--out', 'local.jsonl'];
  expect((await hcaWithin({ cwd: folder }, words)).code).toBe(0);
});
afterAll(async () => {
  await redis?.[Symbol.asyncDispose]();
  await valkey?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const startHca = (...words: string[]): Started =>
  new Started(process.execPath, [mainPath, 'sweep', ...words], { cwd: folder });
const placeOf = ({ url }: QueueServer, queue: string): string[] => ['--redis', url, '--queue', queue];
const startWorker = (place: readonly string[], leaseSeconds: number): Started =>
  startHca('worker', ...place, '--jobs', '1', '--lease', `${leaseSeconds}`);
const startSweep = (place: readonly string[], spec: string, out: string): Started =>
  startHca(spec, '--engine', 'bullmq', ...place, '--out', out);
/** A repeated test has its own queue and file. */
let triesCount = 0;

/** The hashes of points for each event of a server's queue, in order of arrival. */
async function watched([, url, , queue]: readonly string[]): Promise<
  AsyncDisposable & { of(event: string): string[] }
> {
  const { packages, redis: connection } = await connected({ url: url!, queue: queue! });
  const events = new packages.QueueEvents(queue!, { connection });
  const hashes: Record<string, string[]> = { active: [], stalled: [], completed: [], failed: [] };
  for (const [event, seen] of Object.entries(hashes))
    events.on(event, ({ jobId }: { readonly jobId: string }) => seen.push(jobId));
  await events.waitUntilReady();
  return {
    of: (event) => hashes[event]!,
    async [Symbol.asyncDispose]() {
      await events.close();
      connection.disconnect();
    },
  };
}

it('has each point once, even if a worker and the sweep are killed', async () => {
  const place = placeOf(redis, `own-${++triesCount}`);
  const out = `queue-${triesCount}.jsonl`;
  await using events = await watched(place);
  await using first = startWorker(place, 5);
  await using second = startWorker(place, 5);
  {
    await using sweep = startSweep(place, 'spec.yaml', out);
    await until('two rows', () => rowCountOf(inFolder(out)) >= 2);
    expect(await first.kill('SIGKILL')).toBe('SIGKILL');
    expect(await sweep.kill('SIGKILL')).toBe('SIGKILL');
  }
  // Results of the second worker while no sweep runs are kept for the next one.
  const doneCount = events.of('completed').length;
  await until('a point without a sweep', () => events.of('completed').length > doneCount);
  await using again = startSweep(place, 'spec.yaml', out);
  expect([await again.ended(), again.text]).toEqual([
    0,
    expect.stringContaining('12 of 12 points are done.'),
  ]);
  expect(readFileSync(inFolder(out), 'utf8')).toBe(readFileSync(inFolder('local.jsonl'), 'utf8'));
  // The second worker ran the dead worker's point; no point ended twice.
  expect(events.of('stalled').length).toBeGreaterThan(0);
  expect(events.of('completed')).toHaveLength(12);
  expect(new Set(events.of('completed')).size).toBe(12);
  expect(events.of('failed')).toEqual([]);
  const ended = await second.kill('SIGTERM');
  expect([ended, second.text]).toEqual([0, expect.stringMatching(/\d+ points have run here/)]);
});

it('abandons a point that has killed three workers', async () => {
  const place = placeOf(valkey, `long-${++triesCount}`);
  writeFileSync(inFolder('long.yaml'), 'workload: write-bw,size=64\nvary: { iters: [100000000] }\n');
  await using events = await watched(place);
  await using sweep = startSweep(place, 'long.yaml', `long-${triesCount}.jsonl`);
  for (let lost = 0; lost < 3; lost++) {
    await using worker = startWorker(place, 1);
    await until('a worker at work', () => events.of('active').length > lost);
    await worker.kill('SIGKILL');
  }
  await using _last = startWorker(place, 1);
  expect([await sweep.ended(), sweep.text]).toEqual([
    1,
    expect.stringContaining('what ran it was lost 3 times'),
  ]);
  expect(events.of('completed')).toEqual([]);
});

it('has a worker of another version reject a point, which remains for others', async () => {
  const { packages, redis: connection } = await connected({ url: valkey.url, queue: 'other' });
  const queue = new packages.Queue('other', { connection });
  try {
    const options = { jobId: 'abc', removeOnComplete: { age: 60 }, removeOnFail: { age: 60 } };
    await queue.add('point', { version: '0.0.9', machine: {}, workload: 'write-bw,size=64' }, options);
    const words = ['sweep', 'worker', '--redis', valkey.url, '--queue', 'other', '--jobs', '1'];
    const { code, err } = await hcaWithin({ cwd: folder }, words);
    expect(err).toMatch(/^hca: version of the sweep is "0.0.9", expected [\d.]+, as this emulator is\n$/);
    expect(code).toBe(2);
    expect((await queue.getJob('abc'))!.finishedOn).toBeUndefined();
  } finally {
    await queue.close();
    connection.disconnect();
  }
});

/** Two points that no worker has. */
const points = pointsOf(checkedSpec({ workload: 'write-bw', vary: { size: [64, 128] } })).map(
  ({ hash, order }) => ({ hash, order: order! }),
);

it('treats an invalid result as a failure, and ends when its points are removed from the queue', async () => {
  const address = { url: valkey.url, queue: 'strange' };
  const { packages, redis: connection } = await connected(address);
  const queue = new packages.Queue('strange', { connection });
  const times = { concurrency: 1, lockDuration: 30_000, stalledInterval: 30_000, maxStalledCount: 1 };
  const worker = new packages.Worker('strange', async () => 7, { connection, ...times, ...keepOptions });
  try {
    await using engine = await BullmqEngine.open(address, { manner: {}, onNotice: () => {} });
    const outcomes: unknown[] = [];
    await engine.run(points, (_, outcome) => outcomes.push(outcome));
    expect(outcomes).toEqual(Array(2).fill({ status: 'failed', error: 'a worker gave no outcome' }));
    await worker.close();
    const ended = engine.run(points.slice(0, 1), () => {}).catch((error: unknown) => error);
    let removedCount = 0;
    await until('three times', async () => {
      const job = await queue.getJob(points[0]!.hash);
      await job?.remove();
      if (job !== undefined) removedCount++;
      return removedCount === 3;
    });
    expect(String(await ended)).toContain('was taken out of the queue 3 times');
  } finally {
    await Promise.all([worker.close(), queue.close()]);
    connection.disconnect();
  }
});

it('repeats on request the failed points of a killed sweep', async () => {
  const address = { url: valkey.url, queue: 'failed' };
  const { packages, redis: connection } = await connected(address);
  const queue = new packages.Queue('failed', { connection });
  const times = { concurrency: 1, lockDuration: 30_000, stalledInterval: 30_000, maxStalledCount: 1 };
  const [point] = points;
  let isBroken = true;
  const work = async (): Promise<unknown> => {
    if (isBroken) throw new Error('broken');
    return { status: 'done', figures: {} };
  };
  const worker = new packages.Worker('failed', work, { connection, ...times, ...keepOptions });
  try {
    const assigned = { jobId: point!.hash, ...keepOptions };
    await queue.add('point', {}, assigned);
    await until('a failure', async () => (await queue.getJob(point!.hash))?.finishedOn !== undefined);
    isBroken = false;
    const statusOf = async (isFailedRetried: boolean): Promise<unknown[]> => {
      const options = { manner: {}, isFailedRetried, onNotice: () => {} };
      await using engine = await BullmqEngine.open(address, options);
      const outcomes: Outcome[] = [];
      await engine.run([point!], (_, outcome) => outcomes.push(outcome));
      return outcomes.map(({ status }) => status);
    };
    expect(await statusOf(true)).toEqual(['done']);
    isBroken = true;
    await queue.add('point', {}, assigned);
    await until('a failure', async () => (await queue.getJob(point!.hash))?.finishedOn !== undefined);
    isBroken = false;
    expect(await statusOf(false)).toEqual(['failed']);
  } finally {
    await Promise.all([worker.close(), queue.close()]);
    connection.disconnect();
  }
});

it('ends with one line when the server has ended, in any state', async () => {
  const options = { manner: {}, onNotice: () => {}, retries: 2 };
  await using engine = await BullmqEngine.open({ url: valkey.url, queue: 'gone' }, options);
  const ended = engine.run(points, () => {}).catch((error: unknown) => error);
  const { packages, redis: connection } = await connected({ url: valkey.url, queue: 'gone' }, 0);
  const queue = new packages.Queue('gone', { connection });
  queue.on('error', () => {});
  await until('a point', async () => (await queue.getJob(points[0]!.hash)) !== undefined);
  await valkey[Symbol.asyncDispose]();
  expect(String(await ended)).toMatch(
    /^RunError: redis:.* did not answer to 2 attempts \(connect ECONNREFUSED/,
  );
  await expect(engine.run(points, () => {})).rejects.toThrow('did not answer to 2 attempts');
});

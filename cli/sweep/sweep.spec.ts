/** `hca sweep` from the user's view: killed and resumed, with one worker and with two, in shards. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readSqlite } from '../../experiments/sweep/index.ts';
import { type Ended, hcaWithin, mainPath } from '../testing/in-process.ts';

// Whole simulations, some in worker threads on machines with few cores.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-sweep-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));
const inFolder = (name: string): string => join(folder, name);
const textOf = (name: string): string => readFileSync(inFolder(name), 'utf8');
/** After the line that names the sweep. */
const rowsOf = (name: string): string[] => textOf(name).trim().split('\n').slice(1);

/** Runs `hca sweep` in the folder. */
const sweep = (...args: string[]): Promise<Ended> => hcaWithin({ cwd: folder }, ['sweep', ...args]);

/** Kills the sweep as soon as its file has this many rows. */
async function killedAfter(rowCount: number, file: string, args: readonly string[]): Promise<void> {
  const options = { cwd: folder, stdio: 'ignore' } as const;
  const child = spawn(process.execPath, [mainPath, 'sweep', ...args], options);
  const ended = new Promise((resolve) => child.on('close', resolve));
  const poll = setInterval(() => {
    if (existsSync(file) && readFileSync(file, 'utf8').split('\n').length > rowCount + 1)
      child.kill('SIGKILL');
  }, 5);
  await ended;
  clearInterval(poll);
  expect(child.signalCode).toBe('SIGKILL');
}

/** Six points, the last two of which are impossible. */
const spec = `
workload: write-bw,iters=40,region=4K
vary:
  size: [64, 4096, 8192]
  hca.mttCacheLines: 16..32*2
`;

beforeAll(async () => {
  writeFileSync(inFolder('plain.yaml'), spec);
  const { code, err } = await sweep('plain.yaml', '--jobs', '1');
  expect([code, err]).toEqual([0, '']);
});

describe('a sweep', () => {
  it('writes a row for each point under the name of its specification, and a summary', async () => {
    const rows = rowsOf('plain.jsonl');
    expect(rows).toHaveLength(6);
    const { out } = await sweep('plain.yaml', '--sqlite', 'plain.sqlite');
    expect(out).toContain('6 points; plain.jsonl has 6 of them. 0 to go');
    expect(out).toContain('4 of 6 points are done, 2 cannot be.');
    expect(out).toContain('The first that cannot be is size=8192, mttCacheLines=16: region is 4096');
    expect(out).toContain('hca.mttCacheLines changes none of these figures, at any point.');
    const { rows: stored } = readSqlite(inFolder('plain.sqlite'));
    expect(stored.map((row) => JSON.stringify(row.axes))).toEqual(
      rows.map((line) => JSON.stringify((JSON.parse(line) as { axes: object }).axes)),
    );
    const size = stored[0]!.figures['averageBytesPerSecond'] as number;
    expect(size / (stored[0]!.figures['messagesPerSecond'] as number)).toBeCloseTo(64, 6);
  });

  it('that is killed continues where it was, and produces the same bytes', async () => {
    const args = ['plain.yaml', '--out', 'killed.jsonl', '--jobs', '1'];
    await killedAfter(1, inFolder('killed.jsonl'), args);
    await killedAfter(2, inFolder('killed.jsonl'), args);
    const before = textOf('killed.jsonl').split('\n').length - 2;
    expect(before).toBeGreaterThanOrEqual(2);
    const { code, out } = await sweep(...args);
    expect([code, out.split('\n')[0]]).toEqual([
      0,
      `6 points; killed.jsonl has ${before} of them. ${6 - before} to go, each a row of killed.jsonl.`,
    ]);
    expect(textOf('killed.jsonl')).toBe(textOf('plain.jsonl'));
    expect(existsSync(inFolder('killed.jsonl.lock'))).toBe(false);
  });

  it('has the same bytes with two workers, in any partition, and from options', async () => {
    await sweep('plain.yaml', '--out', 'two.jsonl', '--jobs', '2');
    expect(textOf('two.jsonl')).toBe(textOf('plain.jsonl'));
    const slow = ['--partition', 'per-node', '--no-shortcuts', '--shard', '2/3'];
    await sweep('plain.yaml', '--out', 'nodes.jsonl', ...slow);
    expect(rowsOf('nodes.jsonl')).toEqual([1, 4].map((point) => rowsOf('plain.jsonl')[point]));
    const options = ['--workload', 'write-bw,iters=40,region=4K', '--vary', 'size=64,4K,8K'];
    await sweep(...options, '--vary', 'hca.mttCacheLines=16..32*2', '--jobs', '1');
    expect(textOf('sweep.jsonl')).toBe(textOf('plain.jsonl'));
  });

  it('is the sum of its shards', async () => {
    await sweep('plain.yaml', '--shard', '1/2', '--out', 'a.jsonl', '--jobs', '1');
    const part = await sweep('merge', 'a.jsonl');
    expect([part.code, part.err]).toEqual([1, 'hca: 3 points are not there: 1, 3, 5 (counted from 0)\n']);
    await sweep('plain.yaml', '--shard', '2/2', '--out', 'b.jsonl', '--jobs', '1');
    const whole = await sweep('merge', 'b.jsonl', 'a.jsonl', '--out', 'joined.jsonl', '--json', '-');
    expect([whole.code, whole.err]).toEqual([0, '']);
    expect(textOf('joined.jsonl')).toBe(textOf('plain.jsonl'));
    expect(JSON.parse(whole.out)).toMatchObject({ schema: 'hca-sweep-results/1', pointCount: 6 });
  });

  it('has failed points as rows, then ends with exit code 1, and repeats them on request', async () => {
    const options = ['--workload', 'write-bw,size=64', '--vary', 'iters=1,40', '--out', 'failed.jsonl'];
    // No packet arrives from the fifth on: one message is unaffected.
    const faults = ['--fault', 'packet=corrupted,nth=5-'];
    const { code, out } = await sweep(...options, ...faults);
    expect(out).toContain('1 of 2 points are done, 1 failed.');
    expect(code).toBe(1);
    const again = await sweep(...options, ...faults);
    expect(again.out).toContain('0 to go');
    const retried = await sweep(...options, ...faults, '--retry-failed');
    expect(retried.out).toContain('1 to go');
    expect(textOf('failed.jsonl').split('\n')).toHaveLength(4);
  });

  it('on other machines names missing services, and leaves its file to continue with', async () => {
    const elsewhere = ['plain.yaml', '--out', 'elsewhere.jsonl', '--engine'];
    const path = process.env['PATH'];
    process.env['PATH'] = folder;
    try {
      const { code, err } = await sweep(...elsewhere, 'slurm');
      expect([code, err]).toEqual([
        2,
        'hca: --engine is "slurm", expected Slurm\'s squeue in the PATH of this machine\n',
      ]);
    } finally {
      process.env['PATH'] = path;
    }
    const { code, err } = await sweep(...elsewhere, 'bullmq', '--redis', 'redis://:word@127.0.0.1:1');
    expect([code, err]).toEqual([2, expect.stringMatching(/^hca: --redis is "redis:..:…@127.*ECONNREFUSED/)]);
    await sweep('plain.yaml', '--out', 'elsewhere.jsonl', '--jobs', '1');
    expect(textOf('elsewhere.jsonl')).toBe(textOf('plain.jsonl'));
  });

  it('prints the schema of its specifications', async () => {
    const { out } = await sweep('--schema');
    expect(JSON.parse(out)).toMatchObject({ $id: 'hca-sweep-spec/1', required: ['workload'] });
  });
});

describe('bad input ends with exit code 2 and one line, before anything is written', () => {
  it.each([
    [['none.yaml'], 'a readable file (ENOENT)'],
    [['plain.yaml', '--vary', 'size=64'], '--vary is "plain.yaml", expected in the specification'],
    [[], 'a specification, or --workload and --vary'],
    [['--workload', 'write-bw'], 'at least one axis, or points'],
    [['--workload', 'write-bw', '--vary', 'size'], '--vary is "size", expected path=values'],
    [['--workload', 'write-bw', '--vary', 'size=2', '--vary', 'size=4'], 'size given once'],
    [['--workload', 'write-bw', '--vary', 'size=2', '--sample-seed', '3'], 'left out without --sample'],
    [['--workload', 'write-bw', '--vary', 'size=2', '--shard', '3/2'], 'k/n with k from 1 to n'],
    [['--workload', 'write-bw', '--vary', 'size=2', '--jobs', '0'], 'an integer from 1'],
    [
      ['--workload', 'write-bw', '--vary', 'size=2', '--out', 'plain.jsonl'],
      'it is of another sweep, of 6 points',
    ],
    [['plain.yaml', '--out', 'plain.yaml'], 'not read as well'],
    [['plain.yaml', '--json', 'plain.jsonl'], 'not written as well'],
    [['plain.yaml', '--out', 'new.jsonl', '--reuse', 'plain.yaml'], 'line 1 is not one of its rows'],
    [['merge', 'plain.jsonl', '--out', 'plain.jsonl'], 'not read as well'],
    [['merge', 'plain.jsonl', 'none.jsonl'], 'a file that can be read (ENOENT)'],
    [['merge', 'plain.jsonl', '--jobs', '2'], "unknown option '--jobs'"],
    [['plain.yaml', '--redis', 'redis://head'], 'left out without --engine bullmq'],
    [['plain.yaml', '--engine', 'bullmq', '--sbatch=--time=1'], 'left out without --engine slurm'],
    [['plain.yaml', '--engine', 'bullmq'], '--redis is "left out", expected the address of a server'],
    [['plain.yaml', '--engine', 'bullmq', '--redis', 'redis://head', '--queue', 'a:b'], '--queue is "a:b"'],
    [
      ['plain.yaml', '--engine', 'bullmq', '--redis', 'redis://head', '--jobs', '2'],
      'given to hca sweep worker',
    ],
    [['plain.yaml', '--engine', 'cloud'], 'Allowed choices are local, bullmq, slurm'],
    [['worker'], "required option '--redis <url>' not specified"],
    [['task', 'none.jsonl', '--shard', '1/2'], 'a file of points that can be read (ENOENT)'],
  ])('%j', async (args, words) => {
    const { code, out, err } = await sweep(...args);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(words);
    expect(err.split('\n')).toHaveLength(2);
    expect(existsSync(inFolder('new.jsonl'))).toBe(false);
  });
});

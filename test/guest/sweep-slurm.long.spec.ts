/**
 * A sweep by job arrays of Debian's Slurm: a task is killed while it runs a point, the sweep itself is killed and restarted,
 * and the rows equal those of a sweep on one machine.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hcaWithin, mainPath } from '../../cli/testing/in-process.ts';
import { type Slurm, Started, startSlurm, until } from './cluster.ts';
import { rowCountOf, sweepSpec } from './sweep-spec.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-array-'));
let slurm: Slurm;

beforeAll(async () => {
  slurm = await startSlurm();
  writeFileSync(join(folder, 'spec.yaml'), sweepSpec);
  const { code } = await hcaWithin({ cwd: folder }, [
    'sweep',
    'spec.yaml',
    '--jobs',
    '1',
    '--out',
    'local.jsonl',
  ]);
  expect(code).toBe(0);
});
afterAll(async () => {
  await slurm?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const start = (file: string, ...words: string[]): Started =>
  new Started(file, words, { cwd: folder, env: slurm.env });

it('has each point once, even if a task and the sweep are killed', async () => {
  const words = [
    mainPath,
    'sweep',
    'spec.yaml',
    '--engine',
    'slurm',
    '--tasks',
    '2',
    '--sbatch=--time=30',
    '--out',
    'array.jsonl',
  ];
  {
    await using sweep = start(process.execPath, ...words);
    await until('two rows', () => rowCountOf(join(folder, 'array.jsonl')) >= 2);
    const array = /Submitted array (\d+) of 2 tasks/.exec(sweep.text)![1];
    await using cancel = start('scancel', '--batch', '--signal=KILL', `${array}_1`);
    expect([await cancel.ended(), cancel.text]).toEqual([0, '']);
    expect(await sweep.kill('SIGKILL')).toBe('SIGKILL');
  }
  expect(rowCountOf(join(folder, 'array.jsonl'))).toBeLessThan(12);
  await using again = start(process.execPath, ...words);
  expect([await again.ended(), again.text]).toEqual([
    0,
    expect.stringContaining('12 of 12 points are done.'),
  ]);
  // Points that the dead task had not run were submitted again.
  expect(again.text).toMatch(/Submitted array \d+ of \d tasks/);
  expect(readFileSync(join(folder, 'array.jsonl'), 'utf8')).toBe(
    readFileSync(join(folder, 'local.jsonl'), 'utf8'),
  );
  expect(existsSync(join(folder, 'array.jsonl.slurm'))).toBe(false);
});

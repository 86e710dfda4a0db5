import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { GroupResult, RowResult } from '../../experiments/validate/index.ts';
import { type Ended, hcaWithin } from '../testing/in-process.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-validate-'));
afterAll(() => rmSync(folder, { recursive: true }));

const validate = (...args: string[]): Promise<Ended> => hcaWithin({ columns: 80 }, ['validate', ...args]);

describe('hca validate', () => {
  it.each([
    [['--rows', 'A-0001'], /--rows is "A-0001".*A-001/],
    [['--rows', 'K'], /--rows is "K", expected a group/],
    [['--group', 'infound'], /--group is "infound"/],
    [['--rows', 'J', '--set', 'hca.sameQpIntervalCycle=1'], /did you mean hca.sameQpIntervalCycles/],
    [['--rows', 'J', '--set', 'hca.sameQpIntervalCycles=0'], /sameQpIntervalCycles/],
    [['--rows', 'J', '--json', '/no/such/folder/x.json'], /\/no\/such\/folder/],
  ])('rejects %j before it runs anything', async (args, message) => {
    const { code, out, err } = await validate(...args);
    expect(err.trim().split('\n')).toHaveLength(1);
    expect(err).toMatch(message);
    expect([code, out]).toEqual([2, '']);
  });

  it('runs rows, prints measured, simulated, error and verdict, and counts rows that did not run', async () => {
    const [json, html] = [join(folder, 'a.json'), join(folder, 'a.html')];
    const args = ['--rows', 'A-001,A-003..A-004,I-002a,F-084,D-066', '--json', json, '--html', html];
    const { code, out, err } = await validate(...args);
    expect([code, err]).toEqual([0, '']);
    expect(out.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(out).toMatch(/I-002a .* 436 ns .* 435 .*holds/);
    expect(out).toMatch(/Not run: D-066/);
    const { schema, groups, rows } = JSON.parse(readFileSync(json, 'utf8')) as {
      schema: string;
      groups: GroupResult[];
      rows: RowResult[];
    };
    expect(schema).toBe('hca-validate/1');
    // measurements.csv A-001: 0.98 µs; F-084: 0.17 µs.
    expect(rows[0]).toMatchObject({
      id: 'A-001',
      measured: 0.98,
      unit: 'us',
      verdict: 'holds',
      tolerance: 'rate',
    });
    expect(rows[0]!.simulated).toBeCloseTo(0.98, 2);
    expect(rows.find(({ id }) => id === 'F-084')!.simulated).toBeCloseTo(0.17, 9);
    expect(groups.at(-1)).toMatchObject({ group: 'all', rows: 6, holds: 5, misses: 0, failed: 0, notRun: 1 });
    const page = readFileSync(html, 'utf8');
    expect(page).toContain('uPlot');
    expect(page).toContain('write latency, median, measured');
    expect(page).not.toMatch(/\b(?:src|href)=/);
  });

  it('lists how rows would run without running them, and accepts changed parameters', async () => {
    const { code, out } = await validate('--list', '--group', 'D');
    expect(code).toBe(0);
    expect(out).toMatch(/Not run: the authors'/);
    const changed = await validate(
      '--rows',
      'I-002a',
      '--set',
      'pcie.rootComplex.readLatencyPs=170000',
      '--json',
      '-',
    );
    const { set, rows } = JSON.parse(changed.out) as { set: unknown; rows: RowResult[] };
    expect(set).toEqual({ 'pcie.rootComplex.readLatencyPs': 170_000 });
    // 90 ns more than 435.
    expect(rows[0]).toMatchObject({ verdict: 'misses' });
    expect(rows[0]!.simulated).toBeCloseTo(525, -1);
  });
});

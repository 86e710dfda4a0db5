import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { FoldResult, ValueResult } from '../../experiments/cross-validation/index.ts';
import type { GroupResult, RowResult } from '../../experiments/validate/index.ts';
import { type Ended, hcaWithin } from '../testing/in-process.ts';
import { faultsOf } from '../testing/schemas.ts';

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
    [['--folds', 'odd'], /--folds is "odd", expected no use without --cross-validate/],
    [['--save', 'runs.jsonl'], /--save .* without --cross-validate/],
    [['--cross-validate', '--list'], /--list .* no use with --cross-validate/],
    [['--cross-validate', '--set', 'hca.gatherCycles=1'], /--set .* no use with --cross-validate/],
    [['--cross-validate', '--rows-file', 'mine.csv'], /--rows-file .* no use with/],
    [
      ['--cross-validate', '--folds', 'odd,H'],
      /--folds is "H", expected folds of A, C, D, E, F, I, B, G, T, odd, even/,
    ],
    [['--cross-validate', '--parameters', 'hca.blueFlameWqe'], /did you mean hca.blueFlameWqes/],
    [['--cross-validate', '--fabric'], /--fabric .* no use with --cross-validate/],
    [['--fabric', '--rows-file', 'mine.csv'], /--fabric is true, expected no use with --rows-file/],
    [['--rows', 'X-071'], /--rows is "X-071", expected left out without --fabric/],
    [['--cross-validate', '--rows', 'J'], /--rows .* ConnectX-3/],
    [['--cross-validate', '--rows', 'I', '--save', '/'], /--save is "\/"/],
    [['--cross-validate', '--rows', 'I', '--save', 'package.json'], /--save .*it has another head/],
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

  it('runs rows of fabrics with --fabric, and says what others lack', async () => {
    const { code, out } = await validate('--fabric', '--rows', 'X-071,X-250', '--json', '-');
    const { groups, rows } = JSON.parse(out) as { groups: GroupResult[]; rows: RowResult[] };
    // fabric-measurements.csv X-071: 0.99 Mops; X-250 is the source of a parameter.
    expect(rows).toMatchObject([
      { id: 'X-071', group: 'X', measured: 0.99, unit: 'Mops', verdict: 'holds', isGiven: false },
      { id: 'X-250', verdict: 'not run', kind: 'no measurement', isGiven: true },
    ]);
    expect(groups.at(-1)).toMatchObject({ rows: 2, holds: 1, notRun: 1 });
    expect(code).toBe(0);
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

describe('hca validate --cross-validate', () => {
  const save = join(folder, 'runs.jsonl');
  const args = ['--cross-validate', '--rows', 'I', '--parameters', 'pcie.rootComplex.readLatencyPs'];
  const read = (file: string): CrossValidated => JSON.parse(readFileSync(file, 'utf8')) as CrossValidated;

  interface CrossValidated {
    readonly schema: string;
    readonly simulations: number;
    readonly values: readonly ValueResult[];
    readonly folds: readonly FoldResult[];
  }

  it('says how many simulations it runs, fits, judges, and continues from a file with a torn end', async () => {
    const [first, second] = [join(folder, 'cv1.json'), join(folder, 'cv2.json')];
    const html = join(folder, 'cv.html');
    const whole = await validate(
      ...args,
      '--folds',
      'odd,even',
      '--save',
      save,
      '--json',
      first,
      '--html',
      html,
    );
    expect([whole.code, whole.err]).toEqual([0, '']);
    expect(whole.out.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(whole.out.replaceAll(/\s+/g, ' ')).toMatch(
      /First \d+ simulations, at most.*Then the fits, in \d+ sim/,
    );
    const { schema, simulations, values, folds } = read(first);
    expect(schema).toBe('hca-cross-validation/1');
    expect(faultsOf(read(first))).toEqual([]);
    // measurements.csv I-002a: 436 ns are measured; 80 ns at the root complex give 435, and each ns more one more.
    expect(values).toMatchObject([{ start: 170_000, folds: [80_000, 80_000], verdict: 'steady' }]);
    expect(folds.map(({ fold }) => fold)).toEqual(['odd', 'even']);
    for (const { heldOut } of folds) expect(heldOut.fitted).toEqual(heldOut.published);
    expect(readFileSync(html, 'utf8')).toContain('pcie.rootComplex.readLatencyPs');

    const lines = readFileSync(save, 'utf8').trimEnd().split('\n');
    expect(lines).toHaveLength(1 + simulations);
    writeFileSync(save, `${lines.slice(0, -3).join('\n')}\n${lines.at(-1)!.slice(0, 40)}`);
    const rest = await validate(...args, '--folds', 'odd,even', '--save', save, '--json', second);
    expect(rest.out).toContain('3 simulations ran.');
    expect({ ...read(second), invocation: undefined }).toEqual({ ...read(first), invocation: undefined });
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { families } from './families/index.ts';
import { belongs, isRun } from './family.ts';
import { circumstance, type Measurement, parsedMeasurements } from './measurements.ts';
import { pointKey } from './points.ts';
import { commonRate } from './rates.ts';
import { type Case, casesOf, chosen, groupsOf, judged, pointsOf, resultOf } from './validation.ts';
import { verdictOf } from './verdict.ts';

const text = readFileSync(new URL('../../reference/measurements.csv', import.meta.url), 'utf8');
const rows = parsedMeasurements(text);
const cases = casesOf(rows);
const idsOf = (some: readonly Case[]): string[] => some.map(({ row }) => row.id);

describe('the measurements', () => {
  it('are read with their quoted cells: one for each line, ids once, all columns', () => {
    expect(rows).toHaveLength(text.trim().split('\n').length - 1);
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    const first = rows.find(({ id }) => id === 'A-001')!;
    expect(first.link).toBe('IB 4X "Rate: 40" (QDR, 32 Gb/s data), MTU 2048');
    expect(first.value).toBe(0.98);
    for (const { id, role, verified } of rows) expect([id, role, verified]).toEqual([id, 'accept', 'yes']);
  });

  it('are rejected with a missing cell, an additional cell, and without a value', () => {
    const [head, line] = text.split('\n') as [string, string];
    expect(() => parsedMeasurements(`${head}\n${line.replace(',accept', '')}`)).toThrow(/A-001/);
    expect(() => parsedMeasurements(`${head}\n${line},more`)).toThrow(/A-001/);
    expect(() => parsedMeasurements(`${head}\n${line.replace(',0.98,', ',,')}`)).toThrow(/A-001/);
    expect(() => parsedMeasurements(`${line}\n${line}`)).toThrow(/measurements.csv/);
  });

  it('have their conditions as numbers, with units of bytes', () => {
    const with_ = (params: string): Measurement => ({ ...rows[0]!, params });
    expect(circumstance(with_('size=64; window=16'), 'window')).toBe(16);
    expect(circumstance(with_('MR size=4 MB, 4 KB pages'), 'MR size')).toBe(4 * 2 ** 20);
    expect(circumstance(with_('size=16 KB, 4 KB pages'), 'size')).toBe(16 * 2 ** 10);
    expect(() => circumstance(with_('window=16'), 'size')).toThrow(/size/);
  });
});

describe('families', () => {
  it('cover every row of the file exactly once', () => {
    const owners = rows.map((row) => [row.id, families.filter((family) => belongs(row, family)).length]);
    expect(owners.filter(([, count]) => count !== 1)).toEqual([]);
  });

  it('have distinct names and rows, and a reason if they do not run', () => {
    expect(new Set(families.map(({ name }) => name)).size).toBe(families.length);
    for (const family of families) {
      expect(
        rows.some((row) => belongs(row, family)),
        family.name,
      ).toBe(true);
      if (!isRun(family)) expect(family.notRun.why.length, family.name).toBeGreaterThan(10);
    }
  });

  it('give each row its points as plain data, equal ones once', () => {
    for (const { row, family, points } of cases) expect(points.length > 0, row.id).toBe(isRun(family));
    const points = pointsOf(cases);
    expect(new Set(points.map(pointKey)).size).toBe(points.length);
    expect(structuredClone(points)).toEqual(points);
    // Message rate and bandwidth of one size come from one run.
    expect(pointsOf(chosen(cases, { rows: 'A-096,A-097' }))).toHaveLength(1);
  });

  it('reject a row that no family covers', () => {
    expect(() => casesOf([{ ...rows[0]!, id: 'Z-001' }])).toThrow(/Z-001/);
  });
});

describe('rows are chosen', () => {
  it('by group, id and range, and by part of a family’s name', () => {
    expect(idsOf(chosen(cases, { rows: 'J' }))).toEqual(['J-001', 'J-002', 'J-003']);
    expect(idsOf(chosen(cases, { rows: 'C-151, A-001..A-003' }))).toEqual([
      'A-001',
      'A-002',
      'A-003',
      'C-151',
    ]);
    expect(idsOf(chosen(cases, { group: 'J' }))).toEqual(['J-001', 'J-002', 'J-003']);
    expect(idsOf(chosen(cases, { group: 'rnr' }))).toHaveLength(9);
    // Most names have an a.
    expect(new Set(idsOf(chosen(cases, { group: 'A' })).map((id) => id[0]))).toEqual(new Set(['A']));
    expect(idsOf(chosen(cases, { rows: 'A', group: 'atomic rate' }))).toEqual(['A-087']);
  });

  it('and rejected with the existing ones', () => {
    expect(() => chosen(cases, { rows: 'A-9999' })).toThrow(/--rows.*a group \(A, C, D/);
    expect(() => chosen(cases, { rows: 'A-003..A-001' })).toThrow(/--rows/);
    expect(() => chosen(cases, { rows: '' })).toThrow(/--rows/);
    expect(() => chosen(cases, { group: 'no such' })).toThrow(/--group/);
  });
});

describe('a verdict', () => {
  it('is relative to the measured value, in either direction, including the bound', () => {
    expect(verdictOf(10, 11, 'rate')).toEqual({ error: 0.1, holds: true });
    expect(verdictOf(10, 8.99, 'rate').holds).toBe(false);
    expect(verdictOf(100, 103, 'ceiling').holds).toBe(true);
    expect(verdictOf(100, 103.1, 'ceiling').holds).toBe(false);
    expect(verdictOf(28, 28, 'exact').holds).toBe(true);
    expect(verdictOf(28, 29, 'exact').holds).toBe(false);
  });

  it('holds above a lower bound, is absolute for a measured 0, and never holds without a figure', () => {
    expect(verdictOf(4, 8, 'least').holds).toBe(true);
    expect(verdictOf(4, 2, 'least').holds).toBe(false);
    expect(verdictOf(0, 0.05, 'rate').holds).toBe(true);
    expect(verdictOf(0, 3, 'rate').holds).toBe(false);
    expect(verdictOf(1, Number.NaN, 'rate').holds).toBe(false);
  });

  it('of a group has the median of its errors: for two, the mean', () => {
    const row = (error: number) => ({ ...resultOf(cases[0]!, new Map()), group: 'A', error });
    const medianOf = (...errors: number[]) => groupsOf(errors.map(row)).at(-1)!.medianError;
    expect([medianOf(), medianOf(-0.4), medianOf(0.1, -0.3), medianOf(0.5, 0, -0.2)]).toEqual([
      0, 0.4, 0.2, 0.2,
    ]);
  });

  it('ignores rows that did not run, and counts a failed simulation as missed', () => {
    const of = (id: string): Case => cases.find(({ row }) => row.id === id)!;
    const left = judged(of('C-132'), Number.NaN);
    expect(left).toMatchObject({ verdict: 'not run', kind: 'machines' });
    const outcomes = new Map([[pointKey(of('A-003').points[0]!), { failure: 'lost' }]]);
    const failed = resultOf(of('A-003'), outcomes);
    expect(failed).toMatchObject({ verdict: 'failed', why: 'lost' });
    const results = [judged(of('A-001'), 0.98), judged(of('A-002'), 2), failed, left];
    expect(groupsOf(results)).toMatchObject([
      { group: 'A', rows: 3, holds: 1, misses: 1, failed: 1, notRun: 0, share: 1 / 3 },
      { group: 'C', rows: 1, holds: 0, misses: 0, failed: 0, notRun: 1, share: 0 },
      { group: 'all', rows: 4, holds: 1, misses: 1, failed: 1, notRun: 1 },
    ]);
  });
});

describe('the rate of threads', () => {
  it('covers the work of all while all were busy', () => {
    // One message per microsecond from 0 to 100 µs; two per microsecond from 10 to 60 µs, whose first quarter ends at
    // 22.5.
    const slow = [
      [0, 0],
      [25e6, 25],
      [100e6, 100],
    ] as const;
    const fast = [
      [10e6, 0],
      [22.5e6, 25],
      [60e6, 100],
    ] as const;
    // Both run from 25 to 60 µs: 35 of the one and 70 of the other.
    expect(commonRate([slow, fast])).toBeCloseTo(3e6, 3);
  });

  it('is undefined for threads that were never busy together', () => {
    const first = [
      [0, 0],
      [10, 10],
    ] as const;
    const second = [
      [20, 0],
      [30, 10],
    ] as const;
    expect(commonRate([first, second])).toBeNaN();
  });
});

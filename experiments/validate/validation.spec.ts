import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { families } from './families/index.ts';
import { machineOf } from './families/machines.ts';
import { sourceMachines } from './families/sources.ts';
import { belongs, isRun } from './family.ts';
import { circumstance, isGiven, type Measurement, parsedMeasurements } from './measurements.ts';
import { pointKey } from './points.ts';
import { commonRate } from './rates.ts';
import {
  type Case,
  casesOf,
  chosen,
  groupsOf,
  judged,
  ownCasesOf,
  pointsOf,
  resultOf,
} from './validation.ts';
import { verdictOf } from './verdict.ts';

const textOf = (name: string): string =>
  readFileSync(new URL(`../../reference/${name}`, import.meta.url), 'utf8');
const text = textOf('measurements.csv');
const given = parsedMeasurements(text);
const second = parsedMeasurements(textOf('measurements-second.csv'));
const third = parsedMeasurements(textOf('measurements-third.csv'));
const fabrics = parsedMeasurements(textOf('fabric-measurements.csv'));
const rows = [...given, ...second, ...third];
const everyRow = [...rows, ...fabrics];
const cases = casesOf(rows);
const idsOf = (some: readonly Case[]): string[] => some.map(({ row }) => row.id);

describe('the measurements', () => {
  it('are read with their quoted cells: one for each line, ids once, all columns', () => {
    expect(given).toHaveLength(text.trim().split('\n').length - 1);
    expect(second).toHaveLength(532);
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    const first = rows.find(({ id }) => id === 'A-001')!;
    expect(first.link).toBe('IB 4X "Rate: 40" (QDR, 32 Gb/s data), MTU 2048');
    expect(first.value).toBe(0.98);
    for (const { id, role, verified } of given) expect([id, role, verified]).toEqual([id, 'accept', 'yes']);
    // Mechanisms were fitted to these rows of the second file later.
    const since = second.filter(isGiven).map(({ id }) => id);
    expect(since).toHaveLength(48);
    const ofCards = /^(?:C-13[69]|E-0(?:33|35|[5-9]\d)|E-10\d|H-(?:001|035|071|099|139|187))$/;
    const ofSources = /^(?:B-022|F-030|G-0(?:01|04|09|38|39|41|58)|I-267)$/;
    for (const id of since) expect(ofCards.test(id) || ofSources.test(id), id).toBe(true);
    expect(third).toHaveLength(187);
    for (const { id, role, verified } of third) {
      expect(id).toMatch(/^T-\d{3}$/);
      const isFitted = ['T-011', 'T-022', 'T-074', 'T-099', 'T-115', 'T-126', 'T-134', 'T-181'].includes(id);
      expect([id, role, verified]).toEqual([id, isFitted ? 'accept' : 'third', 'yes']);
    }
  });

  it('found later, and those of fabrics, quote the figure and name a source of sources.md', () => {
    const sources = textOf('sources.md');
    expect(fabrics).toHaveLength(619);
    expect(textOf('fabric-measurements.csv').split('\n')[0]).toBe(text.split('\n')[0]);
    for (const { id, role } of fabrics) {
      expect(id).toMatch(/^X-\d{3}$/);
      expect(role, id).toMatch(/^(?:fabric|congestion|collective|switch|accept)$/);
    }
    for (const { id, source, evidence } of [...third, ...fabrics]) {
      expect(sources, id).toContain(source);
      expect(evidence, id).not.toBe('');
    }
    for (const { id, evidence } of third) expect(evidence, id).toMatch(/"[^"]*\d[^"]*"$/);
  });

  it('are rejected with a missing cell, an additional cell, and without a value', () => {
    const [head, line] = text.split('\n') as [string, string];
    expect(() => parsedMeasurements(`${head}\n${line.replace(',accept', '')}`)).toThrow(/A-001/);
    expect(() => parsedMeasurements(`${head}\n${line},more`)).toThrow(/A-001/);
    expect(() => parsedMeasurements(`${head}\n${line.replace(',0.98,', ',,')}`)).toThrow(/A-001/);
    expect(() => parsedMeasurements(`${line}\n${line}`)).toThrow(/measurements.csv/);
    expect(() => parsedMeasurements(`${head}\n${line}\n${line}`)).toThrow(/A-001/);
    expect(() => parsedMeasurements(head, 'mine.csv')).toThrow(/mine.csv/);
  });

  it('of a user need the eight columns that say what was measured, in any order', () => {
    const mine =
      'unit,value,metric,params,workload,link,nic,id\r\nus,2.1,latency t_typical,size=8,ib_read_lat,IB FDR,ConnectX-3,m-1\r\n';
    expect(parsedMeasurements(`\uFEFF${mine}`, 'mine.csv')).toMatchObject([
      { id: 'm-1', value: 2.1, unit: 'us', role: '' },
    ]);
    expect(() => parsedMeasurements(mine.replace('unit', 'units'), 'mine.csv')).toThrow(/mine.csv.*unit/);
    for (const value of ['1e999', '-1', '0x10', ''])
      expect(() => parsedMeasurements(mine.replace('2.1', value), 'mine.csv')).toThrow(/line 2 \(m-1\)/);
    expect(() => parsedMeasurements(mine.replace('nic', 'link'), 'mine.csv')).toThrow(/mine.csv/);
    expect(() => parsedMeasurements(mine.replace('m-1', 'm,1'), 'mine.csv')).toThrow(/line 2/);
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
  it('cover every row of the files exactly once', () => {
    const owners = everyRow.map((row) => [row.id, families.filter((family) => belongs(row, family)).length]);
    expect(owners.filter(([, count]) => count !== 1)).toEqual([]);
  });

  it('have distinct names and rows, and a reason if they do not run', () => {
    expect(new Set(families.map(({ name }) => name)).size).toBe(families.length);
    for (const family of families) {
      expect(
        everyRow.some((row) => belongs(row, family)),
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
    expect(() => casesOf([{ ...rows[0]!, workload: 'ib_other' }])).toThrow(/A-001/);
  });

  const own: Measurement = {
    ...{ ...rows[0]!, id: 'Z-1', source: '', where: '', role: '' },
    ...{ nic: 'ConnectX-3', link: 'IB FDR, MTU 1024, switch' },
    ...{ workload: 'ib_read_bw', params: 'size=4 KiB; QPs=4', metric: 'bandwidth average', unit: 'Gb/s' },
  };

  it('run a user’s row by its nic, link and test', () => {
    const [run] = ownCasesOf([own]);
    expect(run!.points).toEqual([
      {
        machine: { profile: 'connectx3-fdr-fitted', set: { 'wire.switchLatencyNs': 170 } },
        workload: { kind: 'perf', test: { test: 'read-bw', size: 4096, mtu: 1024, qps: 4 } },
      },
    ]);
    expect(judged(run!, 10)).toMatchObject({ group: 'own', isGiven: false });
  });

  it('run a user’s row of datagrams, and of the 99th percentile of a thousand messages', () => {
    const datagram = { workload: 'ib_send_lat UD', params: 'size=64', unit: 'us' };
    const [run, none] = ownCasesOf([
      { ...own, ...datagram, metric: 'latency 99th percentile' },
      { ...own, ...datagram, id: 'Z-2', metric: 'latency t_min' },
    ]);
    expect(run!.points[0]!.workload).toEqual({
      kind: 'perf',
      test: { test: 'send-lat', size: 64, mtu: 1024, connection: 'UD', iters: 1000 },
    });
    expect(judged(none!, 1).why).toMatch(/no family/);
  });

  it('have the speed and the slot that the columns link and pcie declare', () => {
    const setOf = (pcie: string, link: string, nic = 'ConnectX-5') => machineOf({ nic, link, pcie }).set;
    expect(setOf('Gen3 x16', 'IB EDR')).toEqual({ 'pcie.link.lanes': 16 });
    expect(setOf('card x16; slot not stated', 'IB EDR')).toEqual({});
    expect(setOf('not stated', 'IB FDR10, switch', 'ConnectX-3')).toEqual({
      'wire.speed': 'FDR10',
      'wire.switchLatencyNs': 170,
    });
    expect(setOf('not stated', 'RoCE 10 GbE', 'ConnectX-3')).toEqual({ 'ethernet.gigabitsPerSecond': 10 });
    expect(setOf('not stated', 'RoCE 100')).toEqual({});
    expect(setOf('not stated', 'IB 40 Gb/s switch', 'ConnectX-3')).toEqual({ 'wire.switchLatencyNs': 100 });
  });

  it('have the level of their source, and of those of its rows that state it', () => {
    const setOf = (id: string) => machineOf(rows.find((row) => row.id === id)!).set;
    const postPs = 'pcie.rootComplex.cpuStoreLatencyPs';
    expect(setOf('T-115')).toHaveProperty([postPs], 427_000);
    expect(setOf('T-131')).not.toHaveProperty([postPs]);
    const interruptNs = 'host.interrupt.deliveryNs';
    expect(setOf('T-181')).toHaveProperty([interruptNs], 10_000);
    expect(setOf('T-166')).not.toHaveProperty([interruptNs]);
    for (const { source, set } of sourceMachines) {
      const own = rows.filter((row) => source.test(row.source));
      expect(new Set(own.map((row) => row.source)).size, `${source}`).toBe(1);
      expect(Object.keys(set).length, `${source}`).toBeLessThanOrEqual(2);
    }
  });

  it.each([
    [{ unit: 'MB/s' }, /unit is "MB\/s"/],
    [{ nic: 'ConnectX-4' }, /nic is "ConnectX-4"/],
    [{ link: '' }, /link is ""/],
    [{ link: 'roce 40' }, /link is "roce 40"/],
    [{ link: 'IB FDR, MTU=1024' }, /link/],
    [{ link: 'RoCE 40' }, /no profile is of a ConnectX-3 with RoCE 40/],
    [{ workload: 'ib_read_bw -b' }, /workload is "ib_read_bw -b"/],
    [{ workload: 'ib_read_lat' }, /ib_read_lat has no bandwidth/],
    [{ workload: 'ib_atomic_bw' }, /8 bytes/],
    [{ params: 'QPs=4' }, /lack size/],
    [{ params: 'size=64 kB' }, /params/],
    [{ params: 'size=65,536' }, /params/],
    [{ params: 'inline_size=236; size=1024' }, /params/],
    [{ params: 'size=64; qps=4' }, /params/],
    [{ params: 'size=64; QPs=100000' }, /100000/],
    [{ value: 0 }, /value is 0/],
  ])('do not run a user’s row with %j, and say why', (change, why) => {
    const [left] = ownCasesOf([{ ...own, ...change }]);
    expect(judged(left!, 1)).toMatchObject({ verdict: 'not run', why: expect.stringMatching(why) });
  });

  it('read a row with a source as a published one', () => {
    const published = { ...rows.find(({ id }) => id === 'C-023')!, id: 'C-99' };
    expect(ownCasesOf([published])[0]!.points).toHaveLength(4);
    const unknown = { ...published, workload: 'something else' };
    expect(judged(ownCasesOf([unknown])[0]!, 1).why).toMatch(/no family/);
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
    expect(idsOf(chosen(cases, { group: 'rnr' }))).toHaveLength(13);
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
      { group: 'A', rows: 3, holds: 1, misses: 1, failed: 1, notRun: 0, share: 1 / 3, unseen: { rows: 0 } },
      { group: 'C', rows: 1, holds: 0, misses: 0, failed: 0, notRun: 1, share: 0 },
      { group: 'all', rows: 4, holds: 1, misses: 1, failed: 1, notRun: 1 },
    ]);
  });

  it('is counted apart for rows that no parameter was fitted to', () => {
    const of = (id: string): Case => cases.find(({ row }) => row.id === id)!;
    const all = groupsOf([judged(of('A-001'), 0.98), judged(of('H-005'), 0.93), judged(of('H-003'), 9)]).at(
      -1,
    )!;
    expect([all.given, all.unseen]).toMatchObject([
      { rows: 1, holds: 1, share: 1 },
      { rows: 2, holds: 1, misses: 1, share: 0.5 },
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

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import runPoint from '../runs/validate-run.ts';
import { isRun, notRunKinds } from './family.ts';
import { isGiven, parsedMeasurements } from './measurements.ts';
import type { Figures } from './points.ts';
import { type Case, casesOf, judged, type RowResult } from './validation.ts';

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const rows = parsedMeasurements(textOf('reference/fabric-measurements.csv'));
const cases = casesOf(rows);
const of = (id: string): Case => cases.find(({ row }) => row.id === id)!;

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);
/** Rows whose card, hosts and software the model has, as read in the file. */
const runnable = [
  ...[1, 9, 21, 24],
  ...range(33, 38),
  ...range(40, 49),
  ...range(64, 71),
  ...range(73, 87),
  ...[104, 545, 547, 549, 551, 553],
  ...range(565, 575),
  ...range(609, 619),
].map((number) => `X-${String(number).padStart(3, '0')}`);

describe('rows of fabrics', () => {
  it('run, or say what they lack', () => {
    expect(cases.filter(({ family }) => isRun(family)).map(({ row }) => row.id)).toEqual(runnable);
    for (const one of cases) {
      if (isRun(one.family)) continue;
      const { kind, why = '' } = judged(one, Number.NaN);
      expect(notRunKinds, one.row.id).toContain(kind);
      expect(why.length, one.row.id).toBeGreaterThan(10);
    }
  });

  it.each([
    // HPCC: an FPGA; ns-3 with 320 hosts. HERD: 186 client machines. Pleiades: 24 ranks of a host; no card is stated.
    ['X-150', 'card'],
    ['X-164', 'size'],
    ['X-002', 'size'],
    ['X-251', 'software'],
    ['X-475', 'card'],
    ['X-088', 'unstated'],
    ['X-250', 'no measurement'],
  ])('%s does not run for want of %s', (id, kind) => {
    expect(judged(of(id), Number.NaN)).toMatchObject({ verdict: 'not run', kind });
  });

  it('are unseen unless they repeat a given row or a parameter follows from them', () => {
    const given = rows.filter(isGiven).map(({ id }) => id);
    expect(given).toEqual(['X-033', 'X-034', 'X-104', 'X-250']);
  });

  it('that were measured with and without a switch are judged by the difference', () => {
    // X-549 less X-548: 1.81 and 1.26 us. X-545 less X-544: 2170 and 1632 ns.
    expect(of('X-549').row.value).toBeCloseTo(0.55, 9);
    expect(judged(of('X-545'), 538)).toMatchObject({ measured: 538, verdict: 'holds' });
    expect(() => casesOf(rows.filter(({ id }) => id !== 'X-548'))).toThrow(/base of row X-549/);
  });

  it('have a kept figure each', () => {
    const { rows: figures } = JSON.parse(textOf('docs/reference/fidelity.json')) as {
      readonly rows: Readonly<Record<string, number>>;
    };
    for (const id of runnable) expect(figures[id], id).toBeGreaterThan(0);
  });
});

describe('a row of fabrics, simulated', () => {
  const figuresOf = async (id: string): Promise<readonly Figures[]> =>
    Promise.all(of(id).points.map((point) => runPoint({ point, set: {} })));
  const resultOf = async (id: string): Promise<RowResult> => {
    const { family } = of(id);
    const [figures] = await figuresOf(id);
    return judged(of(id), figures![isRun(family) ? String(family.figure) : '']!);
  };

  it('17 hosts read from one at FDR as fast as HERD measured, and no faster than the cable carries', async () => {
    // 0.99 Mops of 6 x (16 + 1024) bytes; 4X FDR carries 54.5 Gb/s.
    const { measured, verdict, simulated = 0 } = await resultOf('X-071');
    expect([measured, verdict]).toEqual([0.99, 'holds']);
    expect(simulated * 6240 * 8e-3).toBeLessThan(54.5);
  });

  it('16 hosts read from one by RoCE at 10 Gb/s as fast as the port carries frames', async () => {
    // 9.76 Gb/s. 4096 bytes travel in a frame of 4162 (with AETH and FCS), 20 more on the cable.
    const { verdict, simulated = 0 } = await resultOf('X-575');
    expect(verdict).toBe('holds');
    expect(simulated).toBeLessThan((10 * 4096) / 4182);
    expect(simulated).toBeGreaterThan(0.99 * ((10 * 4096) / 4182));
  });

  it('ten clients of a store, each on its own host, have four requests each in flight', async () => {
    // Little's law: rate times mean time is the number of requests in flight; less at the end, when clients finish.
    const [figures] = await figuresOf('X-001');
    const inFlight = figures!['mops']! * figures!['averageUs']!;
    expect(inFlight).toBeLessThanOrEqual(40);
    expect(inFlight).toBeGreaterThan(36);
  });
});

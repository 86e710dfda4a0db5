/** What results come to: knees, best and worst, idle axes, grids, Pareto fronts. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { gridsOver } from './axis-grid.ts';
import { figureKindOf, figureText } from './figure-kinds.ts';
import { kneeOf, type Point } from './knee.ts';
import { paretoFront } from './pareto.ts';
import type { SweepRow } from './row.ts';
import { idleAxesOf, summaryOf } from './summary.ts';

const rowOf = (index: number, axes: SweepRow['axes'], figures: SweepRow['figures']): SweepRow => ({
  hash: `h${index}`,
  index,
  status: 'done',
  axes,
  figures,
});

/** Powers of two from 1 on, with these values. */
const over = (...ys: readonly number[]): Point[] => ys.map((y, at) => [2 ** at, y]);

describe('the knee of a line', () => {
  test.each([
    ['where it begins to be flat', over(1, 2, 4, 8, 8, 8, 8), 8],
    ['where a flat one begins to fall', over(8, 8, 8, 4, 2, 1), 4],
    ['where a falling one begins to be flat', over(9, 5, 1, 1, 1), 4],
    ['at the top of a peak', over(1, 5, 9, 5, 1), 4],
  ])('is %s', (_what, points, knee) => {
    expect(kneeOf(points)).toBe(knee);
  });

  test.each([
    ['straight', over(1, 2, 3, 4, 5)],
    ['flat', over(5, 5, 5, 5, 5)],
    ['nearly flat', over(100, 103, 104, 104, 104)],
    ['short', over(1, 9, 9)],
    ['empty', []],
  ])('is not there where the line is %s', (_what, points) => {
    expect(kneeOf(points)).toBeUndefined();
  });

  it('does not depend on units, and is one of the points', () => {
    const ys = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 4, maxLength: 12 });
    fc.assert(
      fc.property(ys, fc.integer({ min: 1, max: 9 }), (values, factor) => {
        const knee = kneeOf(over(...values));
        expect(kneeOf(over(...values.map((y) => y * factor)))).toBe(knee);
        if (knee !== undefined) expect(over(...values).map(([x]) => x)).toContain(knee);
      }),
    );
  });
});

describe('a figure', () => {
  test.each([
    ['messagesPerSecond', 5_438_920.9, '5.439 Mmsg/s'],
    ['averageBytesPerSecond', 3.934e9, '3934 MB/s'],
    ['typicalPs', 980_000, '0.98 µs'],
    ['caches.0.mtt.misses', 12, '12'],
  ])('%s has its unit', (name, value, text) => {
    expect(figureText(name, value)).toBe(text);
  });

  it('says whether more of it is better, by its name', () => {
    const names = ['messagesPerSecond', 'typicalPs', 'caches.1.qpc.evictions', 'iterations'];
    expect(names.map((name) => figureKindOf(name).isMoreBetter)).toEqual([true, false, false, undefined]);
    // What work costs: interrupts of a host, cycles of a core.
    const costs = ['interrupts.0', 'cores.1.cycles.poll', 'onDemand.1.device.rnrNaks'];
    expect(costs.map((name) => figureKindOf(name).isMoreBetter)).toEqual([false, false, false]);
  });
});

describe('a summary', () => {
  const rows = [16, 32, 64, 128, 256].flatMap((lines, at) =>
    [3, 4].map((generation, side) =>
      rowOf(
        at * 2 + side,
        { lines, generation },
        { messagesPerSecond: Math.min(lines, 64), typicalPs: 900 - lines },
      ),
    ),
  );

  it('has the best and the worst of each figure, of equal ones the first, and knees by line', () => {
    const [rate, latency] = summaryOf(rows, ['lines', 'generation']);
    expect([rate!.best.value, rate!.best.row.index, rate!.worst.row.index]).toEqual([64, 4, 0]);
    expect(rate!.knees).toEqual([{ axis: 'lines', lineCount: 2, at: [64, 64] }]);
    expect([latency!.best.row.axes['lines'], latency!.worst.row.axes['lines']]).toEqual([256, 16]);
  });

  it('names axes that change nothing, which have to have more than one value', () => {
    expect(idleAxesOf(rows, ['lines', 'generation'])).toEqual(['generation']);
    expect(idleAxesOf(rows.slice(0, 1), ['lines', 'generation'])).toEqual([]);
  });
});

describe('a grid', () => {
  it('has each row at its place, holes where there is none, and one grid for each of the other axes', () => {
    const rows = [
      rowOf(0, { a: 2, b: 'x', c: 1 }, { f: 10 }),
      rowOf(1, { a: 1, b: 'y', c: 1 }, { f: 11 }),
      rowOf(2, { a: 1, b: 'y', c: 2 }, { f: 12 }),
    ];
    expect(gridsOver(rows, ['a', 'b', 'c'], ['a', 'b'], 'f')).toEqual([
      {
        fixed: { c: 1 },
        xs: [1, 2],
        ys: ['x', 'y'],
        cells: [
          [undefined, 10],
          [11, undefined],
        ],
        indexes: [
          [undefined, 0],
          [1, undefined],
        ],
      },
      { fixed: { c: 2 }, xs: [1], ys: ['y'], cells: [[12]], indexes: [[2]] },
    ]);
  });
});

describe('a Pareto front', () => {
  const figures = fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 20 })), {
    minLength: 1,
    maxLength: 30,
  });

  it('of a rate and the interrupts that it takes has the fewest of them', () => {
    const rows = [54, 6, 7].map((interrupts, index) =>
      rowOf(index, {}, { 'interrupts.0': interrupts, messagesPerSecond: [9, 5, 4][index]! }),
    );
    const front = paretoFront(rows, 'interrupts.0', 'messagesPerSecond');
    expect(front.map(({ figures: { 'interrupts.0': interrupts } }) => interrupts)).toEqual([6, 54]);
  });

  it('is what no other point beats, of a rate to be high and a latency to be low', () => {
    fc.assert(
      fc.property(figures, (pairs) => {
        const rows = pairs.map(([rate, ps], index) =>
          rowOf(index, {}, { messagesPerSecond: rate, typicalPs: ps }),
        );
        const front = paretoFront(rows, 'messagesPerSecond', 'typicalPs');
        const isBeaten = ([rate, ps]: readonly [number, number]): boolean =>
          pairs.some(([r, p]) => r >= rate && p <= ps && (r > rate || p < ps));
        const expected = new Set(pairs.filter((pair) => !isBeaten(pair)).map(String));
        expect(new Set(front.map(({ index }) => String(pairs[index])))).toEqual(expected);
        expect(front).toHaveLength(expected.size);
      }),
    );
  });
});

/** Analyses of results: knees, best and worst, idle axes, grids, Pareto fronts. */
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

/**
 * The knee of a rising concave curve, by the steps of the paper (Satopää and others 2011, section III) without
 * smoothing: the first local maximum of the difference curve after which the curve falls below its threshold, which is
 * the maximum minus the mean step of x.
 */
function kneedle(points: readonly Point[]): number | undefined {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const unit = (values: readonly number[]): number[] => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return values.map((value) => (value - low) / (high - low));
  };
  const normal = unit(xs);
  const difference = unit(ys).map((y, at) => y - normal[at]!);
  let threshold: number | undefined;
  let candidate = 0;
  for (let at = 1; at < xs.length; at++) {
    const [before, here, after = -1] = difference.slice(at - 1, at + 2) as [number, number, number?];
    if (threshold !== undefined && here < threshold) return xs[candidate];
    if (at < xs.length - 1 && here > before && here >= after) {
      candidate = at;
      threshold = here - 1 / (xs.length - 1);
    }
  }
  return undefined;
}

/** Points of a function from 0 to 1. */
const sampled = (count: number, of: (x: number) => number): Point[] =>
  Array.from({ length: count }, (_, at) => at / (count - 1)).map((x) => [x, of(x)]);

/** WRITEs of 1024 QPs on machines with context caches of 64 lines and more, in messages per second: all contexts fit from 1024 on. */
const contexts: readonly Point[] = [
  [64, 2_022_730],
  [128, 2_196_345],
  [256, 2_490_250],
  [512, 3_712_539],
  [1024, 10_724_349],
  [2048, 10_724_349],
  [4096, 10_724_349],
];

/** WRITEs per second over regions of this many MiB: on chip up to 1 GiB, nearly so there, and not beyond (docs/studies/scale.md). */
const regions: readonly Point[] = [
  [16, 22.2],
  [256, 21.9],
  [1024, 17],
  [4096, 2.7],
  [8192, 2.35],
  [16_384, 2.2],
  [32_768, 2.14],
  [65_536, 2.11],
];

describe('the knee of a line', () => {
  test.each([
    ['where it begins to be flat', over(1, 2, 4, 8, 8, 8, 8), 8],
    ['where a flat one begins to fall', over(8, 8, 8, 4, 2, 1), 4],
    ['where a falling one begins to be flat', over(9, 5, 1, 1, 1), 4],
    ['at the top of a peak', over(1, 5, 9, 5, 1), 4],
    ['where a steep rise ends, not at its foot', contexts, 1024],
    ['where the range ends while the rise steepens', contexts.slice(0, 5), 1024],
    ['where a cliff begins', over(100, 99, 98, 97, 30, 29), 8],
    ['where a rate of regions from 16 MiB to 64 GiB begins to fall', regions, 256],
    ['where a cliff in the middle begins, not at its foot', over(23, 23, 23, 2.6, 2.1, 2.0, 2.2), 4],
  ])('is %s', (_what, points, knee) => {
    expect(kneeOf(points)).toBe(knee);
  });

  it('of a figure to be low is the place where it is low enough, or begins to grow', () => {
    expect(kneeOf(over(900, 500, 110, 105, 100, 100), false)).toBe(4);
    expect(kneeOf(over(5, 5, 5.2, 6, 60, 90), false)).toBe(8);
  });

  it('equals that of the function in the paper: −1/(x + 0.1) + 5 at ten points has it at 0.22', () => {
    const points = sampled(10, (x) => 5 - 1 / (x + 0.1));
    expect(kneeOf(points)).toBeCloseTo(0.2222, 4);
    expect(kneedle(points)).toBe(kneeOf(points));
  });

  it('is the place where the slope equals that between both ends, for curves with a derivative', () => {
    for (const k of [0.02, 0.1, 0.3]) {
      const saturating = (x: number): number => x / (x + k);
      // k / (x + k)² = 1 / (1 + k)
      expect(kneeOf(sampled(401, saturating))).toBeCloseTo(Math.sqrt(k * (1 + k)) - k, 2);
      expect(kneeOf(sampled(401, (x) => -saturating(x)))).toBeCloseTo(Math.sqrt(k * (1 + k)) - k, 2);
      expect(kneeOf(sampled(401, (x) => saturating(1 - x)))).toBeCloseTo(1 - Math.sqrt(k * (1 + k)) + k, 2);
    }
  });

  it('equals the result of the paper’s steps, for random curves that saturate', () => {
    const shape = fc.record({
      count: fc.integer({ min: 6, max: 40 }),
      bend: fc.integer({ min: 1, max: 30 }).map((each) => each / 100),
      scale: fc.integer({ min: 1, max: 1e6 }),
    });
    fc.assert(
      fc.property(shape, ({ count, bend, scale }) => {
        const points = sampled(count, (x) => (scale * x) / (x + bend));
        // Two points may be equally far from the line: x / (x + 0.05) at nine points. Then either is the knee.
        const distances = points.map(([x, y]) => y / points.at(-1)![1] - x).toSorted((a, b) => b - a);
        fc.pre(distances[0]! - distances[1]! > 1e-9);
        expect(kneeOf(points)).toBe(kneedle(points));
        // Mirrored and counted from the other end it falls, and the knee is the same point.
        const falling = points.map(([x, y]): Point => [1 - x, y]).toReversed();
        expect(kneeOf(falling)).toBe(1 - kneeOf(points)!);
        expect(
          kneeOf(
            points.map(([x, y]): Point => [x, -y]),
            false,
          ),
        ).toBe(kneeOf(points));
      }),
    );
  });

  test.each([
    ['straight over the logarithm', over(1, 2, 3, 4, 5)],
    ['straight', over(1, 2, 4, 8, 16)],
    ['straight and falls', over(16, 15, 13, 9, 1)],
    ['flat', over(5, 5, 5, 5, 5)],
    ['nearly flat', over(100, 103, 104, 104, 104)],
    ['noise', over(5, 9, 6, 10, 5, 8, 9, 5)],
    ['straight but for noise', over(10, 21, 29, 41, 49, 61, 69, 81)],
    ['short', over(1, 9, 9)],
    ['empty', []],
  ])('is undefined if the line is %s', (_what, points) => {
    expect(kneeOf(points)).toBeUndefined();
  });

  it('exists in hardly any sequence of random numbers', () => {
    let state = 1;
    const next = (): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    const found = Array.from({ length: 1000 }, () => sampled(10, next)).filter(
      (points) => kneeOf(points) !== undefined,
    );
    expect(found.length).toBeLessThan(150);
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

  it('states by its name whether more of it is better', () => {
    const names = ['messagesPerSecond', 'typicalPs', 'caches.1.qpc.evictions', 'iterations'];
    expect(names.map((name) => figureKindOf(name).isMoreBetter)).toEqual([true, false, false, undefined]);
    // Costs of work: interrupts of a host, cycles of a core.
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

  it('has the best and the worst of each figure, the first of equal ones, and knees by line', () => {
    const [rate, latency] = summaryOf(rows, ['lines', 'generation']);
    expect([rate!.best.value, rate!.best.row.index, rate!.worst.row.index]).toEqual([64, 4, 0]);
    expect(rate!.knees).toEqual([{ axis: 'lines', lineCount: 2, at: [64, 64], end: 256 }]);
    expect([latency!.best.row.axes['lines'], latency!.worst.row.axes['lines']]).toEqual([256, 16]);
  });

  it('names axes with several values that change nothing', () => {
    expect(idleAxesOf(rows, ['lines', 'generation'])).toEqual(['generation']);
    expect(idleAxesOf(rows.slice(0, 1), ['lines', 'generation'])).toEqual([]);
  });
});

describe('a grid', () => {
  it('has each row at its place, holes for missing rows, and one grid for each of the other axes', () => {
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

  it('of a rate and its interrupts has the point with the fewest interrupts', () => {
    const rows = [54, 6, 7].map((interrupts, index) =>
      rowOf(index, {}, { 'interrupts.0': interrupts, messagesPerSecond: [9, 5, 4][index]! }),
    );
    const front = paretoFront(rows, 'interrupts.0', 'messagesPerSecond');
    expect(front.map(({ figures: { 'interrupts.0': interrupts } }) => interrupts)).toEqual([6, 54]);
  });

  it('has the points that no other beats, for a rate to be high and a latency to be low', () => {
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

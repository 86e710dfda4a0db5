/** Properties of a Latin hypercube sample. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Axis } from './axis.ts';
import { latinHypercube } from './latin-hypercube.ts';

const listed = fc.integer({ min: 1, max: 12 }).map(
  (length): Axis => ({
    path: `list.${length}`,
    values: Array.from({ length }, (_, at) => at),
  }),
);
const count = fc.integer({ min: 1, max: 60 });
const seed = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const columnOf = (points: readonly (readonly unknown[])[], at: number): number[] =>
  points.map((values) => Number(values[at]));

describe('a Latin hypercube', () => {
  it('has one point in each stratum of a span', () => {
    fc.assert(
      fc.property(count, seed, fc.integer({ min: 0, max: 1000 }), (points, of, from) => {
        // All strata have equally many numbers: then the stratum of a number is known.
        const width = 7;
        const axis: Axis = { path: 'x', span: { from, to: from + points * width - 1 } };
        const strata = columnOf(latinHypercube([axis], { count: points, seed: of }), 0)
          .map((value) => Math.floor((value - from) / width))
          .toSorted((left, right) => left - right);
        expect(strata).toEqual(Array.from({ length: points }, (_, at) => at));
      }),
    );
  });

  it('has each value of a list equally often, within one', () => {
    fc.assert(
      fc.property(listed, count, seed, (axis, points, of) => {
        const { length } = 'values' in axis ? axis.values : [];
        const column = columnOf(latinHypercube([axis], { count: points, seed: of }), 0);
        const counts = Array.from({ length }, (_, value) => column.filter((each) => each === value).length);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('stays within its axes, also in a span with fewer numbers than points', () => {
    fc.assert(
      fc.property(count, seed, fc.integer({ min: 0, max: 5 }), (points, of, extent) => {
        const axis: Axis = { path: 'x', span: { from: 10, to: 10 + extent } };
        for (const value of columnOf(latinHypercube([axis], { count: points, seed: of }), 0)) {
          expect(value).toBeGreaterThanOrEqual(10);
          expect(value).toBeLessThanOrEqual(10 + extent);
        }
      }),
    );
  });

  it('is equal for equal seeds, different for others, and axes do not affect each other’s draws', () => {
    const [x, y]: [Axis, Axis] = [
      { path: 'x', span: { from: 0, to: 999 } },
      { path: 'y', span: { from: 0, to: 999 } },
    ];
    const once = latinHypercube([x, y], { count: 50, seed: 1 });
    expect(latinHypercube([x, y], { count: 50, seed: 1 })).toEqual(once);
    expect(latinHypercube([x, y], { count: 50, seed: 2 })).not.toEqual(once);
    expect(columnOf(latinHypercube([y], { count: 50, seed: 1 }), 0)).toEqual(columnOf(once, 1));
    expect(columnOf(once, 0)).not.toEqual(columnOf(once, 1));
  });
});

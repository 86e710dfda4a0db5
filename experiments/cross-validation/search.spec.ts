import { describe, expect, it } from 'vitest';
import { fitted, type Judge, type Search, type SearchedValue } from './search.ts';

interface Row {
  readonly x: number;
  readonly measured: number;
}

/** y = a + b x, within tolerance at an error of a tenth. */
const line: Judge<Row> = ({ x, measured }, { a, b }) => {
  const error = Math.abs(a! + b! * x - measured) / measured;
  return Promise.resolve({ holds: error <= 0.1, error });
};

const a: SearchedValue = { name: 'a', start: 0, candidates: [0, 5, 10, 15] };
const b: SearchedValue = { name: 'b', start: 1, candidates: [1, 2, 3] };
const searchOf = (rows: readonly Row[], more: Partial<Search<Row>> = {}): Search<Row> => ({
  ...{ values: [a, b], rowsOf: () => rows, judge: line, passesMax: 4, atOnce: 1 },
  ...more,
});

describe('a fit', () => {
  // Measured: 10 + 2 x at 1, 2, 3 and 4.
  const rows = [12, 14, 16, 18].map((measured, at) => ({ x: at + 1, measured }));

  it('finds the values of a curve that the model has, by hand in two passes', async () => {
    // First a, with b = 1: a + x is 11 to 14 at a = 10, errors 1/12 2/14 3/16 4/18: three missed, and at 15 it is 16 to
    // 19, errors 4/12 3/14 2/16 1/18: three missed, median (2/16 + 3/14) / 2 = 0.170 against (2/14 + 3/16) / 2 = 0.165:
    // 10. Then b = 2, exact. The second pass changes nothing.
    expect(await fitted(searchOf(rows))).toEqual({ values: { a: 10, b: 2 }, passes: 2 });
  });

  it('stops after the most passes', async () => {
    expect(await fitted(searchOf(rows, { passesMax: 1 }))).toEqual({ values: { a: 10, b: 2 }, passes: 1 });
  });

  it('weighs rows out of tolerance before the median error', async () => {
    // At x = 0 only a counts. a = 10: errors 0, 0 and 1/6: one missed, median 0. a = 11: 0.1, 0.1 and 1/12: none missed.
    const three = [10, 10, 12].map((measured) => ({ x: 0, measured }));
    const one: SearchedValue = { name: 'a', start: 10, candidates: [10, 11] };
    expect(await fitted(searchOf(three, { values: [one, b] }))).toMatchObject({ values: { a: 11 } });
  });

  it('leaves a value at its start without evidence: no row, or rows that are equal for all candidates', async () => {
    expect(await fitted(searchOf([]))).toEqual({ values: { a: 0, b: 1 }, passes: 1 });
    const atZero = [{ x: 0, measured: 10 }];
    expect(await fitted(searchOf(atZero))).toEqual({ values: { a: 10, b: 1 }, passes: 2 });
  });

  it('is the same with several rows at once', async () => {
    for (const atOnce of [2, 3, 7])
      expect(await fitted(searchOf(rows, { atOnce }))).toEqual(await fitted(searchOf(rows)));
  });

  it('abandons a candidate once it has missed more rows than the best', async () => {
    const judged: number[] = [];
    const judge: Judge<Row> = (row, values) => {
      if (values['a'] === 15) judged.push(row.x);
      return line(row, values);
    };
    // With b = 2, a = 10 is exact, and 15 misses the first row already.
    const fixed: SearchedValue = { name: 'b', start: 2, candidates: [2] };
    await fitted(searchOf(rows, { values: [{ ...a, start: 10 }, fixed], judge }));
    expect(judged).toEqual([1]);
  });
});

import { expect, it } from 'vitest';
import { foldsOf } from './folds.ts';
import { toyCurve } from './testing/toy-card.ts';

const idsOf = (cases: ReturnType<typeof toyCurve>): string[] => cases.map(({ row }) => row.id);
const shownOf = (cases: ReturnType<typeof toyCurve>, name: string): [string[], string[]] => {
  const [fold] = foldsOf(cases, [name]);
  return [idsOf([...fold!.training]), idsOf([...fold!.heldOut])];
};
const rowsOf = (group: string, xs: readonly number[]) =>
  xs.map((x) => ({ id: `${group}-${x}`, x, measured: 1 }));

it('a source is left out as a whole, and rows that were kept back are in no fold', () => {
  const cases = [
    ...toyCurve('one', [...rowsOf('A', [1, 2]), { id: 'A-9', x: 9, measured: 1, isKeptBack: true }]),
    ...toyCurve('two', rowsOf('C', [1, 2])),
  ];
  expect(foldsOf(cases).map(({ name }) => name)).toEqual(['A', 'C', 'odd', 'even']);
  expect(shownOf(cases, 'A')).toEqual([
    ['C-1', 'C-2'],
    ['A-1', 'A-2'],
  ]);
});

it('every second point of a curve is left out, in the order of its x axis', () => {
  const cases = toyCurve('one', rowsOf('A', [4, 1, 3, 2, 5]));
  expect(shownOf(cases, 'odd')).toEqual([
    ['A-4', 'A-2'],
    ['A-1', 'A-3', 'A-5'],
  ]);
  expect(shownOf(cases, 'even')[1]).toEqual(['A-4', 'A-2']);
});

it('rows of one simulation are on one side, whatever their families', () => {
  const rates = toyCurve('rate', rowsOf('A', [1, 2, 3, 4]));
  // Alternation alone would put x = 2 and x = 4 of the second curve on the other side.
  const bandwidths = toyCurve('bandwidth', rowsOf('B', [2, 3, 4]));
  expect(shownOf([...bandwidths, ...rates], 'odd')[1]).toEqual(['B-2', 'B-4', 'A-1', 'A-2', 'A-4']);
  expect(shownOf([...rates, ...bandwidths], 'odd')[1]).toEqual(['A-1', 'A-3', 'B-3']);
});

it('a short curve trains, unless it shares a simulation with a long one', () => {
  const cases = [...toyCurve('short', rowsOf('B', [1, 9])), ...toyCurve('long', rowsOf('A', [1, 2, 3]))];
  expect(shownOf(cases, 'odd')).toEqual([
    ['B-9', 'A-2'],
    ['B-1', 'A-1', 'A-3'],
  ]);
});

it('a row whose simulations are on both sides is on none', () => {
  const long = toyCurve('long', rowsOf('A', [1, 2, 3]));
  const ratio = toyCurve('ratio', rowsOf('B', [1])).map((one) => ({
    ...one,
    points: long.slice(0, 2).flatMap(({ points }) => points),
  }));
  for (const name of ['odd', 'even']) expect(shownOf([...long, ...ratio], name).flat()).not.toContain('B-1');
});

it('a fold that does not exist is rejected with the existing ones', () => {
  expect(() => foldsOf(toyCurve('one', rowsOf('A', [1])), ['Z'])).toThrow(/--folds is "Z".*A, odd, even/);
});

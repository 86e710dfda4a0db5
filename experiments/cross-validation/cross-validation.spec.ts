import { describe, expect, it } from 'vitest';
import { fittedConnectx3 } from '../../machine/profile/fitted-connectx3.ts';
import { configurationOf, parametersByPath } from '../../machine/profile/index.ts';
import {
  cardFits,
  foldResult,
  probeCount,
  searchCount,
  together,
  valueResults,
  verdictOf,
} from './cross-validation.ts';
import { foldsOf } from './folds.ts';
import { crossValidationSentences, valueTable } from './shown.ts';
import { toyBench, toyCurve, toyFit } from './testing/toy-card.ts';

describe('cross-validation', () => {
  // Measured: 10 + 2 x; the kept-back row as well.
  const rows = [1, 2, 3, 4, 5, 6].map((x) => ({ id: `A-${x}`, x, measured: 10 + 2 * x }));
  const cases = toyCurve('line', [...rows, { id: 'A-9', x: 9, measured: 28, isKeptBack: true }]);

  const resultsOf = async (
    fits: Parameters<typeof toyBench>[0],
    y: Parameters<typeof toyBench>[1],
    of = cases,
    names?: readonly string[],
  ) => {
    const { bench, ran } = toyBench(fits, y);
    await bench.probe(of);
    const results = [];
    for (const fold of foldsOf(of, names))
      results.push(await foldResult(bench, of, fits, fold, { passesMax: 3, atOnce: 2 }));
    return { bench, results, ran, values: valueResults(bench, of, fits, results) };
  };

  it('finds a mechanism from every second point, and holds at the others', async () => {
    const fits = [toyFit('a', 0, [0, 10, 20], 10), toyFit('b', 1, [1, 2, 3], 2)];
    const { results, values } = await resultsOf(fits, (x, { a, b }) => a! + b! * x, cases, ['odd', 'even']);
    for (const { training, heldOut, keptBack, values: found } of results) {
      expect(found).toEqual({ a: 10, b: 2 });
      expect([training, heldOut, keptBack].map(({ fitted: { holds } }) => holds)).toEqual([3, 3, 1]);
    }
    expect(values.map(({ verdict }) => verdict)).toEqual(['steady', 'steady']);
    expect(together(results, 'halves')).toMatchObject({ training: 1, heldOut: 1, heldOutRows: 6 });
  });

  it('shows a low held-out share of a model with a value for each point, and that these jump', async () => {
    const fits = rows.map(({ x, measured }) => toyFit(`at${x}`, 0, [0, 8, measured], measured, [`A-${x}`]));
    // The published values agree with every row; at x = 9 the model uses the last of them.
    const y = (x: number, values: Readonly<Record<string, number>>) => values[`at${Math.min(x, 6)}`]!;
    const { results, values } = await resultsOf(fits, y, cases, ['odd', 'even']);
    for (const { training, heldOut, keptBack } of results) {
      expect([training.fitted.share, training.published.share]).toEqual([1, 1]);
      expect([heldOut.fitted.share, heldOut.published.share]).toEqual([0, 1]);
      expect(keptBack.published.share).toBe(0);
    }
    expect(together(results, 'halves')).toMatchObject({ training: 1, heldOut: 0, heldOutHolds: 0 });
    // The first point of odd x is held out first: no row says anything of its value then.
    expect(values.map(({ folds }) => folds)).toEqual(
      rows.map(({ x, measured }) => (x % 2 === 1 ? [0, measured] : [measured, 0])),
    );
    expect(new Set(values.map(({ verdict }) => verdict))).toEqual(new Set(['jumps']));
    const sentences = crossValidationSentences(values, results).join('\n');
    expect(sentences).toContain('0 of 6, 0.0 %');
    expect(sentences).toContain('The rows do not identify at1 · at2');
  });

  it('leaves a value at its start if only the source that is left out shows it', async () => {
    const ofC = toyCurve(
      'other',
      [1, 2, 3].map((x) => ({ id: `C-${x}`, x, measured: 7, run: 'other' })),
    );
    const fits = [toyFit('a', 0, [0, 10], 10), toyFit('c', 3, [3, 7], 7)];
    const y = (x: number, { a, c }: Readonly<Record<string, number>>) => a! + 2 * x + 0 * c!;
    const both = [...cases, ...ofC];
    const { bench } = toyBench(fits, y);
    await bench.probe(both);
    expect(bench.changes(both[0]!, 'c')).toBe(false);
    const { results, values } = await resultsOf(fits, (x, { a }) => a! + 2 * x, both, ['A', 'C']);
    expect(results.map((one) => one.values)).toEqual([{ a: 0 }, { a: 10 }]);
    expect(values[1]).toMatchObject({ folds: [null, null], verdict: 'unshown', rows: 0 });
    expect(valueTable(values, results).rows[1]).toContain('no row shows it');
  });

  it('names a published number that no fold finds', async () => {
    // The slope of the rows is 2; 3 is published.
    const fits = [toyFit('b', 1, [1, 2, 3], 3)];
    const { results, values } = await resultsOf(fits, (x, { b }) => 10 + b! * x, cases, ['odd', 'even']);
    const sentences = crossValidationSentences(values, results);
    expect(sentences.at(-1)).toBe('No fold finds the published number of b.');
    // With 3, the errors are x of 10 + 2 x: 1/12 holds, 2/14 does not, nor any after.
    expect(results.map(({ heldOut }) => [heldOut.fitted.holds, heldOut.published.holds])).toEqual([
      [3, 1],
      [3, 0],
    ]);
  });

  it('runs equal simulations once, and no more than it said', async () => {
    const fits = [toyFit('a', 0, [0, 10, 20], 10), toyFit('b', 1, [1, 2, 3], 2)];
    const { bench, ran } = await resultsOf(fits, (x, { a, b }) => a! + b! * x);
    expect(ran()).toBe(bench.runCount);
    const folds = foldsOf(cases);
    expect(bench.runCount).toBeLessThanOrEqual(
      probeCount(cases, fits) + searchCount(bench, cases, fits, folds, 3),
    );
    // Seven points under at most three times three values.
    expect(bench.runCount).toBeLessThanOrEqual(7 * 9);
  });

  it('calls a value that keeps to neighbouring candidates moving, and one that leaves them out jumping', () => {
    expect(verdictOf([1, 2, 4, 8], [2, 2, null])).toBe('steady');
    expect(verdictOf([1, 2, 4, 8], [4, 2, 4])).toBe('moves');
    expect(verdictOf([1, 2, 4, 8], [8, null, 2])).toBe('jumps');
    expect(verdictOf([1, 2], [null, null])).toBe('unshown');
  });
});

describe('the values of the card', () => {
  const defaults = configurationOf({ profile: 'connectx3-qdr' });
  const defaultOf = (path: string): unknown =>
    path.split('.').reduce<unknown>((group, name) => (group as Record<string, unknown>)[name], defaults);

  it('have rising candidates in the range of their parameters, the start and the published value among them', () => {
    for (const { name, paths, start, candidates, published } of cardFits()) {
      expect([...candidates], name).toEqual(candidates.toSorted((left, right) => left - right));
      expect(candidates, name).toContain(start);
      expect(candidates, name).toContain(published);
      for (const path of paths)
        for (const value of candidates)
          expect(
            () => configurationOf({ profile: 'connectx3-qdr', set: { [path]: value } }),
            path,
          ).not.toThrow();
    }
  });

  it('start without the fit: at the default of a parameter, or at the lowest candidate', () => {
    for (const { name, paths, start, candidates } of cardFits())
      expect([...paths.map(defaultOf), candidates[0]], name).toContain(start);
  });

  it('are all numbers of the profile: choices between mechanisms are not fitted again', () => {
    const paths = cardFits().flatMap((fit) => fit.paths);
    const numbers = Object.entries(fittedConnectx3).filter(([, value]) => typeof value === 'number');
    for (const [path] of numbers) expect(paths).toContain(path);
    for (const path of paths) expect([...parametersByPath.keys()]).toContain(path);
  });
});

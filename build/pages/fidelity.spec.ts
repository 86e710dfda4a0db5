import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { together } from '../../experiments/cross-validation/index.ts';
import { casesOf, groupsOf, isRun, judged, shareText } from '../../experiments/validate/index.ts';
import {
  bandsOfKept,
  bandsText,
  fabricRows,
  figuresOf,
  keptCrossValidations,
  keptFigures,
  measuredRows,
  pageOfKept,
  pageText,
} from './fidelity.ts';

describe('docs/reference/fidelity.md (else: npm run docs)', () => {
  it('contains the kept figures and the measurements', () => {
    expect(pageText()).toBe(pageOfKept());
  });

  it('comes with the error bands of its unseen rows', () => {
    expect(bandsText()).toBe(bandsOfKept());
  });

  it('and the README state one share of given rows and one of unseen ones', () => {
    const figures = keptFigures();
    const cases = casesOf(measuredRows());
    const all = groupsOf(cases.map((one) => judged(one, figures[one.row.id] ?? Number.NaN))).at(-1)!;
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    for (const { share } of [all.given, all.unseen]) expect(readme).toContain(shareText(share));
  });

  it('and the README state the shares of held-out rows, of both kinds of folds', () => {
    const folds = keptCrossValidations().flatMap((run) => run.folds);
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    for (const kind of ['sources', 'halves'] as const)
      expect(readme).toContain(shareText(together(folds, kind).heldOut));
  });

  it('is not generated from a run whose parameters were changed', () => {
    const rows = [{ id: 'A-001', simulated: 0.98123456 }];
    expect(figuresOf({ set: {}, rows })).toEqual({ 'A-001': 0.981235 });
    expect(() => figuresOf({ set: { 'hca.wqeDecodeCycles': 9 }, rows })).toThrow(/--set .*wqeDecodeCycles/);
  });

  it('is generated from figures of every row that is run, and of no other', () => {
    const run = casesOf([...measuredRows(), ...fabricRows()]).filter(({ family }) => isRun(family));
    expect(Object.keys(keptFigures())).toEqual(run.map(({ row }) => row.id));
  });
});

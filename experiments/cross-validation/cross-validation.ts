/**
 * Cross-validation of a card: for each fold its values are fitted afresh to the training rows, from their starts, and
 * judged on the rows that are held out, and on those that were kept back from every fit.
 */
import { configurationOf } from '../../machine/profile/index.ts';
import { type Case, cardValues, isGiven, isRun, pointKey, type Tally, tallyOf } from '../validate/index.ts';
import { type CardBench, type CardFit, probesOf } from './card-bench.ts';
import { type Fold, isHalf } from './folds.ts';
import { fitted, type Search, type Values } from './search.ts';

/** Profiles that have the card's fitted values. */
const profiles: ReadonlySet<string> = new Set(['connectx3-qdr-fitted', 'connectx3-fdr-fitted']);
/** A second pass corrects values that were fitted before others. */
export const passesPreset = 2;

/** The card's fitted values, with their published numbers. */
export function cardFits(): CardFit[] {
  const config = configurationOf({ profile: 'connectx3-fdr-fitted' });
  return Object.entries(cardValues).map(([name, { rows, start, candidates }]) => {
    const paths = name.split(', ');
    const published = paths[0]!
      .split('.')
      .reduce<unknown>((group, part) => (group as Record<string, unknown>)[part], config) as number;
    return { name, paths, published, start, candidates, derivedFrom: rows.match(/[A-Z]-\d+/g)! };
  });
}

/** The rows that run on the card with its fitted values. */
export const cardCases = (cases: readonly Case[]): Case[] =>
  cases.filter(
    ({ family, points }) => isRun(family) && points.every(({ machine }) => profiles.has(machine.profile)),
  );

/** Simulations that find the rows which each value changes, at most. */
export function probeCount(cases: readonly Case[], fits: readonly CardFit[]): number {
  const families = Map.groupBy(cases, ({ family }) => family.name);
  const points = new Set([...families.values()].flatMap((own) => probesOf(own).map(pointKey)));
  return points.size * (fits.length + 1);
}

const pointCount = (cases: readonly Case[]): number =>
  new Set(cases.flatMap(({ points }) => points.map(pointKey))).size;

/** Simulations of the fits and their judgement, at most: equal ones run once, and bad candidates stop early. */
export function searchCount(
  bench: CardBench,
  cases: readonly Case[],
  fits: readonly CardFit[],
  folds: readonly Fold[],
  passesMax: number,
): number {
  const changed = pointCount(cases.filter((one) => bench.changes(one)));
  const perFold = folds.map(({ training }) => {
    const tries = fits.map(({ name, candidates }) => {
      const rows = training.filter((one) => bench.changes(one, name));
      return (candidates.length - 1) * pointCount(rows);
    });
    return passesMax * tries.reduce((sum, count) => sum + count, 0) + changed;
  });
  return perFold.reduce((sum, count) => sum + count, changed);
}

/** Rows under fitted values, and under the published ones. */
interface Shares {
  readonly fitted: Tally;
  readonly published: Tally;
}

export interface FoldResult {
  readonly fold: string;
  /** Rows that the fit used. */
  readonly training: Shares;
  /** Rows that the fold held out. */
  readonly heldOut: Shares;
  /** Rows that were kept back from every fit, the published one included. */
  readonly keptBack: Shares;
  /** The fitted values, by name; a value without training rows is missing. */
  readonly values: Values;
  readonly passes: number;
}

export async function foldResult(
  bench: CardBench,
  cases: readonly Case[],
  fits: readonly CardFit[],
  fold: Fold,
  limits: Pick<Search<Case>, 'passesMax' | 'atOnce'>,
): Promise<FoldResult> {
  const changed = (rows: readonly Case[]): Case[] => rows.filter((one) => bench.changes(one));
  const training = interleaved(changed(fold.training));
  const rowsOf = (name: string): Case[] => training.filter((one) => bench.changes(one, name));
  const judge = (one: Case, values: Values) => bench.judge(one, values);
  const { values, passes } = await fitted({ values: fits, rowsOf, judge, ...limits });
  const published = Object.fromEntries(fits.map((fit) => [fit.name, fit.published]));
  const sharesOf = async (rows: readonly Case[]): Promise<Shares> => {
    const tally = async (of: Values): Promise<Tally> =>
      tallyOf(await Promise.all(changed(rows).map((one) => bench.resultOf(one, of))));
    return { fitted: await tally(values), published: await tally(published) };
  };
  const found = fits.filter(({ name }) => rowsOf(name).length > 0);
  return {
    fold: fold.name,
    training: await sharesOf(fold.training),
    heldOut: await sharesOf(fold.heldOut),
    keptBack: await sharesOf(cases.filter(({ row }) => !isGiven(row))),
    values: Object.fromEntries(found.map(({ name }) => [name, values[name]!])),
    passes,
  };
}

/** Rows of all families in turn, so that a bad candidate misses some early. */
function interleaved(cases: readonly Case[]): Case[] {
  const places = [...Map.groupBy(cases, ({ family }) => family).values()].flatMap((own) =>
    own.map((one, at) => ({ one, place: (at + 0.5) / own.length })),
  );
  return places.toSorted((left, right) => left.place - right.place).map(({ one }) => one);
}

/** A value over all folds. */
export interface ValueResult {
  readonly name: string;
  readonly start: number;
  readonly published: number;
  readonly candidates: readonly number[];
  /** Rows that it changes, and their sources. */
  readonly rows: number;
  readonly sources: readonly string[];
  /** The fitted number of each fold; null if no training row of the fold shows it. */
  readonly folds: readonly (number | null)[];
  readonly verdict: ValueVerdict;
}

/**
 * How far a value moves between folds: `steady` not at all; `moves` to a neighbouring candidate; `jumps` further, so the
 * rows do not identify it; `unshown` if no fold has a row that shows it.
 */
export type ValueVerdict = 'steady' | 'moves' | 'jumps' | 'unshown';

export function verdictOf(candidates: readonly number[], folds: readonly (number | null)[]): ValueVerdict {
  const places = folds.flatMap((value) => (value === null ? [] : [candidates.indexOf(value)]));
  if (places.length === 0) return 'unshown';
  const reach = Math.max(...places) - Math.min(...places);
  return reach === 0 ? 'steady' : reach === 1 ? 'moves' : 'jumps';
}

export const valueResults = (
  bench: CardBench,
  cases: readonly Case[],
  fits: readonly CardFit[],
  folds: readonly FoldResult[],
): ValueResult[] =>
  fits.map(({ name, start, published, candidates }) => {
    const rows = cases.filter((one) => isGiven(one.row) && bench.changes(one, name));
    const found = folds.map(({ values }) => values[name] ?? null);
    const sources = [...new Set(rows.map(({ row }) => row.id[0]!))];
    const verdict = verdictOf(candidates, found);
    return { name, start, published, candidates, rows: rows.length, sources, folds: found, verdict };
  });

/** Rows of several folds together. */
export interface Together {
  readonly folds: readonly string[];
  readonly training: number;
  readonly heldOut: number;
  readonly heldOutRows: number;
  readonly heldOutHolds: number;
}

const runOf = ({ holds, misses, failed }: Tally): number => holds + misses + failed;

/** Shares over the folds of a kind: those that leave a source out, or those that leave half of the points out. */
export function together(folds: readonly FoldResult[], kind: 'sources' | 'halves'): Together {
  const own = folds.filter(({ fold }) => isHalf(fold) === (kind === 'halves'));
  const sum = (of: (fold: FoldResult) => number): number => own.reduce((total, fold) => total + of(fold), 0);
  const [heldOutHolds, heldOutRows] = [
    sum(({ heldOut }) => heldOut.fitted.holds),
    sum(({ heldOut }) => runOf(heldOut.fitted)),
  ];
  return {
    folds: own.map(({ fold }) => fold),
    training: sum(({ training }) => training.fitted.holds) / sum(({ training }) => runOf(training.fitted)),
    heldOut: heldOutHolds / heldOutRows,
    heldOutRows,
    heldOutHolds,
  };
}

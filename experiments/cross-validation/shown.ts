/** Cross-validation in sentences and tables, for terminal, page and Markdown alike. */
import { shareText, tallyText } from '../validate/index.ts';
import {
  type FoldResult,
  type Together,
  together,
  type ValueResult,
  type ValueVerdict,
} from './cross-validation.ts';

export interface ShownTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export const foldTable = (folds: readonly FoldResult[]): ShownTable => ({
  title: 'Rows within tolerance by fold: refitted values, and the published ones for the same rows',
  head: ['fold', 'fitted rows', 'published', 'held-out rows', 'published', 'kept-back rows', 'published'],
  rows: folds.map(({ fold, training, heldOut, keptBack }) => [
    fold,
    ...[training, heldOut, keptBack].flatMap(({ fitted, published }) => [
      tallyText(fitted),
      shareText(published.share),
    ]),
  ]),
});

const verdictWords: Readonly<Record<ValueVerdict, string>> = {
  steady: 'steady',
  moves: 'moves by one candidate',
  jumps: 'jumps: not identified',
  unshown: 'no row shows it',
};

export const valueTable = (values: readonly ValueResult[], folds: readonly FoldResult[]): ShownTable => ({
  title: 'Fitted values by fold; – where no training row shows the value',
  head: ['value', 'published', 'start', ...folds.map(({ fold }) => fold), 'between folds', 'rows', 'sources'],
  rows: values.map(({ name, start, published, folds: found, verdict, rows, sources }) => [
    name.replaceAll('hca.', ''),
    `${published}`,
    `${start}`,
    ...found.map((value) => (value === null ? '–' : `${value}`)),
    verdictWords[verdict],
    `${rows}`,
    sources.join(' '),
  ]),
});

/** The results in words. */
export function crossValidationSentences(
  values: readonly ValueResult[],
  folds: readonly FoldResult[],
): string[] {
  const kinds = [
    ['values fitted without the source of these rows', together(folds, 'sources')],
    ['values fitted to the other points of the same curves', together(folds, 'halves')],
  ] as const;
  const shares = kinds.flatMap(([words, sums]) => (sums.folds.length === 0 ? [] : [sentenceOf(words, sums)]));
  const jumping = values.filter(({ verdict }) => verdict === 'jumps').map(({ name }) => name);
  const steady = values.filter(({ verdict }) => verdict === 'steady').length;
  const spread =
    folds.length < 2
      ? []
      : [
          jumping.length === 0
            ? `No value jumps between folds; ${steady} of ${values.length} are the same in all.`
            : `The rows do not identify ${jumping.join(' · ')}: between folds these jump over a candidate or more. ${steady} of ${values.length} values are the same in all folds.`,
        ];
  return [...shares, ...spread, ...notFound(values)];
}

/** Published numbers that no fold finds. */
function notFound(values: readonly ValueResult[]): string[] {
  const names = values
    .filter(({ folds, published, verdict }) => verdict !== 'unshown' && !folds.includes(published))
    .map(({ name }) => name);
  return names.length === 0 ? [] : [`No fold finds the published number of ${names.join(' · ')}.`];
}

const sentenceOf = (words: string, { heldOutHolds, heldOutRows, heldOut, training }: Together): string =>
  `Of held-out rows, ${heldOutHolds} of ${heldOutRows}, ${shareText(heldOut)}, are within tolerance with ${words}; of the rows of these fits, ${shareText(training)}.`;

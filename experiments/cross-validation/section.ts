/** The section of docs/reference/fidelity.md about cross-validation: the kept runs in Markdown. */
import { paragraph } from '../../explain/text/paragraph.ts';
import { cardValues } from '../validate/index.ts';
import type { FoldResult, ValueResult } from './cross-validation.ts';
import { crossValidationSentences, foldTable, type ShownTable, valueTable } from './shown.ts';

/** A run of `hca validate --cross-validate`, with the commit that it ran on. */
export interface KeptCrossValidation {
  readonly command: string;
  readonly commit: string;
  readonly rows: number;
  readonly simulations: number;
  readonly values: readonly ValueResult[];
  readonly folds: readonly FoldResult[];
}

export const crossValidationSection = (runs: readonly KeptCrossValidation[]): string =>
  [
    '## Cross-validation',
    paragraph(
      'The shares above are of values that were fitted once. Here the values of a ConnectX-3 are fitted again without some of the given rows, and these judge them. Fold C leaves out every row of source C; `odd` leaves out the first, third, fifth … point of each curve, `even` the others. A fit is a coordinate descent: for each value in turn it tries the candidates below, the other values fixed, and keeps the one with the fewest training rows out of tolerance, then with the least median error. It begins at values that no row was used for.',
    ),
    paragraph(
      'Only rows count that one of the values changes. Next to each refitted share is that of the published values for the same rows, which they were fitted to, except the rows that were kept back. The held-out shares are upper bounds: the mechanisms were designed when all given rows were known, the published value is among the candidates, and values that a run does not fit are the published ones.',
    ),
    ...runs.flatMap(runParts),
    '### Candidates',
    markdownOf({
      title: '',
      head: ['value', 'start', 'candidates', 'reason for the bounds'],
      rows: Object.entries(cardValues).map(([name, { start, candidates, bounds }]) => [
        codes(name),
        `${start}`,
        candidates.join(', '),
        bounds,
      ]),
    }),
  ].join('\n\n');

function runParts({ command, commit, rows, simulations, values, folds }: KeptCrossValidation): string[] {
  return [
    `\`\`\`sh\nnpx ${command}\n\`\`\``,
    paragraph(`With the model of commit ${commit}: ${rows} rows, ${simulations} simulations.`),
    ...crossValidationSentences(values, folds).map((sentence) => paragraph(sentence)),
    markdownOf(foldTable(folds)),
    markdownOf(valueTable(values, folds)),
  ];
}

const codes = (names: string): string =>
  names
    .split(', ')
    .map((name) => `\`${name}\``)
    .join(', ');

const markdownOf = ({ head, rows }: ShownTable): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

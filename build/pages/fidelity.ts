/**
 * docs/reference/fidelity.md, generated from docs/reference/fidelity.json, docs/reference/cross-validation.json and
 * the files of reference/measurements.md. If its argument is a file written by `hca validate --json`, it first reads
 * the figures of its rows from that file; files of `hca validate --cross-validate --json` replace the kept runs of
 * cross-validation.
 */
import '../../runtime/node.ts';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { InvariantError } from '../../base/index.ts';
import {
  crossValidationSection,
  type KeptCrossValidation,
} from '../../experiments/cross-validation/index.ts';
import {
  bandsOf,
  casesOf,
  fidelityPage,
  judged,
  type Measurement,
  parsedMeasurements,
  type RowResult,
  type SimulatedFigures,
} from '../../experiments/validate/index.ts';

const page = new URL('../../docs/reference/fidelity.md', import.meta.url);
const kept = new URL('../../docs/reference/fidelity.json', import.meta.url);
const keptCross = new URL('../../docs/reference/cross-validation.json', import.meta.url);
const measurements = ['measurements.csv', 'measurements-second.csv', 'measurements-third.csv'].map(
  (name) => new URL(`../../reference/${name}`, import.meta.url),
);
const fabricMeasurements = new URL('../../reference/fabric-measurements.csv', import.meta.url);
const bandsFile = new URL('../../experiments/fidelity/error-bands.ts', import.meta.url);
const schema = 'hca-fidelity/1';
/** More digits have no meaning, given the tolerances. */
const digits = 6;

const rowsOf = (file: URL): Measurement[] => parsedMeasurements(readFileSync(file, 'utf8'));
export const measuredRows = (): Measurement[] => measurements.flatMap(rowsOf);
export const fabricRows = (): Measurement[] => rowsOf(fabricMeasurements);

/** Results of the last complete run. */
export function keptFigures(): SimulatedFigures {
  return (JSON.parse(readFileSync(kept, 'utf8')) as { readonly rows: SimulatedFigures }).rows;
}

export const pageText = (): string => readFileSync(page, 'utf8');
export const pageOfKept = (): string =>
  fidelityPage(measuredRows(), keptFigures(), crossValidationSection(keptCrossValidations()), fabricRows());

/** The runs of cross-validation that the page shows. */
export const keptCrossValidations = (): readonly KeptCrossValidation[] =>
  (JSON.parse(readFileSync(keptCross, 'utf8')) as { readonly runs: readonly KeptCrossValidation[] }).runs;

/** The file of the error bands. */
export const bandsText = (): string => readFileSync(bandsFile, 'utf8');
export function bandsOfKept(): string {
  const figures = keptFigures();
  const cases = casesOf(measuredRows());
  const results = cases.map((one) => judged(one, figures[one.row.id] ?? Number.NaN));
  const lines = Object.entries(bandsOf(cases, results)).map(
    ([key, { rows, sources, low, high }]) =>
      `  '${key}': { rows: ${rows}, sources: ${sources}, low: ${low}, high: ${high} },\n`,
  );
  return `// Made by \`npm run docs\` from docs/reference/fidelity.json and the files of reference/measurements.md.
import type { ErrorBand } from './error-band.ts';

export const errorBands: Readonly<Record<string, ErrorBand>> = {
${lines.join('')}};
`;
}

/** Output of `hca validate --json`. */
interface Validated {
  /** Parameters that were changed. */
  readonly set: object;
  readonly rows: readonly Pick<RowResult, 'id' | 'simulated'>[];
}

/** Simulated value of each row. @throws InvariantError if parameters were changed, which the page does not mention */
export function figuresOf({ set, rows }: Validated): SimulatedFigures {
  if (Object.keys(set).length > 0)
    throw new InvariantError(
      '--set of hca validate',
      JSON.stringify(set),
      'none, for a page of the profiles',
    );
  return Object.fromEntries(
    rows.flatMap(({ id, simulated }) =>
      simulated === undefined ? [] : [[id, Number(simulated.toPrecision(digits))] as const],
    ),
  );
}

/** Figures of a run, and the kept ones of rows that it leaves out: those of fabrics run apart from all others. */
function mergedWith(output: Validated): SimulatedFigures {
  const run = new Set(output.rows.map(({ id }) => id));
  const figures = figuresOf(output);
  const measured = new Set([...measuredRows(), ...fabricRows()].map(({ id }) => id));
  return Object.fromEntries(
    Object.entries({ ...keptFigures(), ...figures }).filter(
      ([id]) => measured.has(id) && (!run.has(id) || id in figures),
    ),
  );
}

/** Output of `hca validate --cross-validate --json`. */
interface CrossValidated extends Omit<KeptCrossValidation, 'command' | 'commit'> {
  readonly schema: string;
  readonly invocation: { readonly arguments: readonly string[] };
}

function keep(files: readonly string[]): void {
  const outputs = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as CrossValidated | Validated);
  for (const output of outputs)
    if (!('folds' in output))
      writeFileSync(kept, `${JSON.stringify({ schema, rows: mergedWith(output) }, undefined, 2)}\n`);
  const runs = outputs.flatMap((output) => ('folds' in output ? [keptOf(output)] : []));
  if (runs.length > 0)
    writeFileSync(
      keptCross,
      `${JSON.stringify({ schema: 'hca-cross-validations/1', runs }, undefined, 1)}\n`,
    );
}

/** @returns the run, with the commit of this checkout, at which it must have run */
function keptOf({ invocation, rows, simulations, values, folds }: CrossValidated): KeptCrossValidation {
  const command = ['hca', 'validate', ...invocation.arguments].join(' ');
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  return { command, commit, rows, simulations, values, folds };
}

if (process.argv[1] === import.meta.filename) {
  const [, , ...files] = process.argv;
  keep(files);
  writeFileSync(page, pageOfKept());
  writeFileSync(bandsFile, bandsOfKept());
}

/**
 * `hca validate --cross-validate`: fits the values of a ConnectX-3 afresh without some rows, and judges them on these.
 * A file given by --cache keeps each simulation, so that an interrupted command continues.
 */
import type { Command } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import {
  CardBench,
  type CardFit,
  cardCases,
  cardFits,
  crossValidationSentences,
  type Fold,
  type FoldResult,
  foldResult,
  foldsOf,
  foldTable,
  type Order,
  orderKey,
  passesPreset,
  probeCount,
  searchCount,
  valueResults,
  valueTable,
} from '../../experiments/cross-validation/index.ts';
import { type TaskRunner, taskRunner, tasksAtOnce } from '../../experiments/runs/task-pool.ts';
import type { ValidateOrder } from '../../experiments/runs/validate-run.ts';
import type { Case, Figures, PointOutcome } from '../../experiments/validate/index.ts';
import { tableOf } from '../../explain/text/table.ts';
import { hintFor } from '../../machine/profile/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { chartPage } from '../chart/index.ts';
import { CountBar } from '../count-bar.ts';
import { type HtmlChoice, headOf, writePage } from '../html-output.ts';
import { argumentsOf, invocationOf } from '../invocation.ts';
import { Screen, writeJson } from '../output.ts';
import { failureOf } from './failure.ts';
import { KeptRuns } from './kept-runs.ts';

const crossValidationSchema = 'hca-cross-validation/1';

export interface CrossValidationOptions extends HtmlChoice {
  readonly parameters?: string;
  readonly folds?: string;
  readonly passes?: number;
  readonly save?: string;
  readonly json?: string;
}

/** @param cases the chosen rows, of any card */
export async function crossValidate(
  cases: readonly Case[],
  options: CrossValidationOptions,
  command: Command,
): Promise<void> {
  const rows = cardCases(cases);
  if (rows.length === 0)
    throw new ConfigurationError('--rows', 0, 'rows that run on a ConnectX-3 with fitted values');
  const fits = chosenFits(options.parameters);
  const folds = foldsOf(
    rows,
    options.folds?.split(',').map((name) => name.trim()),
  );
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  await using runs = new CountedRuns(options.save);
  const bench = new CardBench(fits, (order) => runs.run(order));
  screen.print(beforeText(rows, fits, folds));
  await runs.counted(probeCount(rows, fits), () => bench.probe(rows));
  const { passes = passesPreset } = options;
  const most = searchCount(bench, rows, fits, folds, passes);
  screen.print(
    `Then the fits, in ${most} simulations at most: equal ones run once, and a candidate stops when it is worse.`,
  );
  const results: FoldResult[] = [];
  await runs.counted(most, async () => {
    for (const fold of folds)
      results.push(await foldResult(bench, rows, fits, fold, { passesMax: passes, atOnce: tasksAtOnce() }));
  });
  const values = valueResults(bench, rows, fits, results);
  const sentences = crossValidationSentences(values, results);
  const tables = [foldTable(results), valueTable(values, results)];
  for (const { title, head, rows: cells } of tables) screen.print(tableOf(`\n${title}`, head, cells));
  screen.print();
  for (const sentence of sentences) screen.print(sentence);
  screen.print(`${runs.count} simulations ran.`);
  if (options.json !== undefined)
    writeJson(options.json, {
      schema: crossValidationSchema,
      invocation: invocationOf(command, argumentsOf(command)),
      rows: rows.length,
      simulations: bench.runCount,
      values,
      folds: results,
    });
  const head = headOf(command, { title: 'Cross-validation of the fitted values', sentences });
  writePage(options, () => chartPage(head, { charts: [], tables }), screen);
}

/** @throws ConfigurationError for a path that no fitted value has */
function chosenFits(parameters: string | undefined): CardFit[] {
  const fits = cardFits();
  if (parameters === undefined) return fits;
  const paths = fits.flatMap((fit) => fit.paths);
  const wanted = new Set(parameters.split(',').map((path) => path.trim()));
  for (const path of wanted)
    if (!paths.includes(path))
      throw new ConfigurationError(
        '--parameters',
        path,
        `fitted values, such as ${paths[0]}; docs/reference/fidelity.md lists them${hintFor(path, paths)}`,
      );
  return fits.filter((fit) => fit.paths.some((path) => wanted.has(path)));
}

const beforeText = (rows: readonly Case[], fits: readonly CardFit[], folds: readonly Fold[]): string =>
  `${fits.length} values, ${rows.length} rows, folds ${folds.map(({ name }) => name).join(', ')}. First ${probeCount(rows, fits)} simulations, at most, find the rows that each value changes.`;

/** Simulations in the pool, those of a file left out, under a bar. */
class CountedRuns implements AsyncDisposable {
  readonly #pool: TaskRunner<ValidateOrder, Figures> = taskRunner('validate-run');
  readonly #kept: KeptRuns | undefined;
  #bar: CountBar | undefined;
  /** Simulations that ran, not read from the file. */
  count = 0;

  constructor(file: string | undefined) {
    this.#kept = file === undefined ? undefined : new KeptRuns(file);
  }

  async run(order: Order): Promise<PointOutcome> {
    const key = orderKey(order);
    const kept = this.#kept?.outcomeOf(key);
    if (kept !== undefined) return kept;
    const outcome = await this.#pool.run(order).catch(failureOf);
    this.#kept?.keep(key, outcome);
    this.#bar?.update(++this.count);
    return outcome;
  }

  /** Shows the number of simulations while some run. */
  async counted(most: number, work: () => Promise<void>): Promise<void> {
    this.#bar = new CountBar(this.count + most, 'simulations');
    try {
      await work();
    } finally {
      this.#bar.stop();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool[Symbol.asyncDispose]();
    this.#kept?.[Symbol.dispose]();
  }
}

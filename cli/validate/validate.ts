/** `hca validate`: runs the workloads of published measurements on the model and shows each figure next to the measured one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { taskRunner } from '../../experiments/runs/task-pool.ts';
import { machineOf, type ValidateOrder } from '../../experiments/runs/validate-run.ts';
import {
  type Case,
  casesOf,
  chosen,
  type Figures,
  groupsOf,
  ownCasesOf,
  type PointOutcome,
  parsedMeasurements,
  pointKey,
  pointsOf,
  type RowChoice,
  resultOf,
} from '../../experiments/validate/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import { readSmallFile } from '../../runtime/files.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { packageFolder } from '../../runtime/package-folder.ts';
import { CountBar } from '../count-bar.ts';
import { headOf, htmlOption, writePage } from '../html-output.ts';
import { integer, machineOptionsOf } from '../options.ts';
import { codeOf, exitFailed, Screen, writeJson } from '../output.ts';
import { type CrossValidationOptions, crossValidate } from './cross-validate.ts';
import { failureOf } from './failure.ts';
import { validatePage, validateSentences } from './validate-page.ts';
import { familyTables, listTable, reasons, summaryTable } from './validate-table.ts';

const validateSchema = 'hca-validate/1';

interface ValidateOptions extends RowChoice, CrossValidationOptions {
  readonly set: readonly string[];
  readonly list?: boolean;
  readonly fabric?: boolean;
  readonly rowsFile?: string;
  readonly crossValidate?: boolean;
}

export function addValidateCommand(program: Command): void {
  program
    .command('validate')
    .description(
      'run the workloads of published measurements of real cards, and say how far off the model is',
    )
    .option('--rows <list>', 'groups, rows and ranges of rows: A,C-074..C-083,D-030 (default: all)')
    .option('--group <name>', "a group's letter, or a part of the name of families: inbound")
    .option('--rows-file <csv>', 'measurements of your own, with the columns of reference/measurements.csv')
    .option('--fabric', 'instead of all others, the rows of fabrics of many hosts: group X')
    .option('--list', 'list how each row would run, and run nothing')
    .option(
      '--set <path=value>',
      'change a parameter; may be repeated',
      (text, before: string[]) => [...before, text],
      [],
    )
    .option('--cross-validate', 'fit the values of a ConnectX-3 without some rows, and judge them on these')
    .option('--parameters <list>', 'with --cross-validate: the values to fit (default: all that were fitted)')
    .option('--folds <list>', 'with --cross-validate: sources to leave out, odd, even (default: all)')
    .option(
      '--passes <n>',
      'with --cross-validate: passes over the values of a fit (default: 2)',
      integer(1, 16),
    )
    .option('--save <file>', 'with --cross-validate: keep each simulation, and continue from there')
    .option('--json <file>', 'write the figures as JSON; - is standard output')
    .option(...htmlOption)
    .action(validate);
}

async function validate({ set: changes, ...options }: ValidateOptions, command: Command): Promise<void> {
  const set = machineOptionsOf({ set: changes }).set!;
  checkCrossValidation({ set: changes, ...options });
  const cases = chosen(casesIn(options), options);
  if (options.crossValidate === true) return crossValidate(cases, options, command);
  const orders = pointsOf(cases).map((point) => ({ point, set }));
  for (const order of orders) configurationOf(machineOf(order));
  checkWritable(options.json);
  checkWritable(options.html);
  if (cases.length === 0)
    throw new ConfigurationError('--group', options.group, 'families of rows that --rows leaves');
  if (options.list === true && (options.json ?? options.html) !== undefined)
    throw new ConfigurationError('--list', true, 'neither --json nor --html: it runs nothing');
  const screen = new Screen(options.json);
  if (options.list === true) {
    screen.print(
      listTable(
        cases,
        cases.map((one) => resultOf(one, new Map())),
      ),
    );
    return;
  }
  const outcomes = await outcomesOf(orders);
  const results = cases.map((one) => resultOf(one, outcomes));
  const groups = groupsOf(results);
  for (const table of familyTables(cases, results)) screen.print(table);
  screen.print();
  for (const reason of reasons(cases, results)) screen.print(reason);
  screen.print(summaryTable(groups));
  if (options.json !== undefined)
    writeJson(options.json, { schema: validateSchema, set, groups, rows: results });
  const ran = { title: 'The model beside real cards', sentences: validateSentences(groups) };
  writePage(options, () => validatePage(headOf(command, ran), cases, results, groups), screen);
  if (results.some(({ verdict }) => verdict === 'failed')) process.exitCode = exitFailed;
}

/** @throws ConfigurationError for options that apply only with the other way of validation */
function checkCrossValidation(options: ValidateOptions): void {
  const {
    crossValidate: isCross = false,
    parameters,
    folds,
    passes,
    save,
    rowsFile,
    fabric,
    list,
    set,
  } = options;
  const refused = isCross
    ? {
        '--rows-file': rowsFile,
        '--fabric': fabric,
        '--list': list,
        '--set': set.length > 0 ? set : undefined,
      }
    : { '--parameters': parameters, '--folds': folds, '--passes': passes, '--save': save };
  for (const [name, value] of Object.entries(refused))
    if (value !== undefined)
      throw new ConfigurationError(name, value, `no use ${isCross ? 'with' : 'without'} --cross-validate`);
  if (fabric === true && rowsFile !== undefined)
    throw new ConfigurationError('--fabric', true, 'no use with --rows-file');
}

function textOfFile(path: string): string {
  try {
    return readSmallFile(path);
  } catch (error) {
    throw new ConfigurationError('--rows-file', path, `a CSV file (${codeOf(error)})`);
  }
}

const ownFiles = ['measurements.csv', 'measurements-second.csv', 'measurements-third.csv'];
const fabricFiles = ['fabric-measurements.csv'];

/** @throws ConfigurationError for a file that cannot be read, or a line without the needed columns */
function casesIn({ rowsFile, fabric = false }: Pick<ValidateOptions, 'rowsFile' | 'fabric'>): Case[] {
  if (rowsFile !== undefined) return ownCasesOf(parsedMeasurements(textOfFile(rowsFile), rowsFile));
  const files = fabric ? fabricFiles : ownFiles;
  const texts = files.map((name) => readFileSync(join(packageFolder, 'reference', name), 'utf8'));
  return casesOf(texts.flatMap((text, at) => parsedMeasurements(text, files[at])));
}

/** Runs all points under a progress bar. A failure is a result too: the other rows keep theirs. */
async function outcomesOf(orders: readonly ValidateOrder[]): Promise<ReadonlyMap<string, PointOutcome>> {
  const outcomes = new Map<string, PointOutcome>();
  if (orders.length === 0) return outcomes;
  const bar = new CountBar(orders.length, 'simulations');
  try {
    await using pool = taskRunner<ValidateOrder, Figures>('validate-run');
    const all = orders.map(async (order) => {
      outcomes.set(pointKey(order.point), await pool.run(order).catch(failureOf));
      bar.update(outcomes.size);
    });
    // A failure is handled where it is awaited.
    for (const one of all) one.catch(() => {});
    for (const one of all) await one;
  } finally {
    bar.stop();
  }
  return outcomes;
}

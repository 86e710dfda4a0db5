/** `hca sweep`: runs a workload on many machines, one row of results each; `hca sweep merge` joins the results of shards. */

import type { Command } from 'commander';
import {
  headerOf,
  mergedResults,
  missingOf,
  pointsOf,
  type Results,
  ResultsFile,
  readResults,
  runWork,
  type SweepRow,
  specSchema,
  workOf,
  writeJoinedResults,
  writeSqlite,
} from '../../experiments/sweep/index.ts';
import type { PageHead } from '../../explain/page/index.ts';
import { countText } from '../../explain/text/format.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { CountBar } from '../count-bar.ts';
import { expectedErrors } from '../expected-error.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import type { JsonOutput } from '../json-outputs.ts';
import { checkApart, exitFailed, jsonText, Screen, writeJson } from '../output.ts';
import { addElsewhereCommands } from './sweep-elsewhere.ts';
import { engineOf } from './sweep-engine.ts';
import { addSweepOptions, checkEngine, outFileOf, type SweepChoice, specOf } from './sweep-options.ts';
import { sweepPage } from './sweep-page.ts';
import { sweepSummary } from './sweep-summary.ts';

const jsonOption = ['--json <file>', 'write the results as JSON; - is standard output'] as const;

export function addSweepCommand(program: Command): void {
  const command = program
    .command('sweep')
    .description('run a workload over ranges of parameters: a row for each point; a killed sweep continues')
    .argument('[spec]', 'a YAML or JSON file that defines the sweep; otherwise the options do')
    .option(...jsonOption)
    .option(...htmlOption)
    .action(sweep);
  // Arguments after `merge` belong to that command.
  addSweepOptions(command).enablePositionalOptions();
  command
    .command('merge')
    .description('join results of one sweep that were written apart, no point twice')
    .argument('<files...>', 'results of shards')
    .option('--out <file>', 'file of the joined results')
    .option('--sqlite <file>', 'write them as an SQLite database')
    .option(...jsonOption)
    .option(...htmlOption)
    .action(merge);
  addElsewhereCommands(command);
}

async function sweep(
  file: string | undefined,
  choice: SweepChoice & HtmlChoice,
  command: Command,
): Promise<void> {
  if (choice.schema === true) {
    process.stdout.write(jsonText(specSchema));
    return;
  }
  checkEngine(choice);
  const spec = specOf(file, choice);
  const out = outFileOf(file, choice);
  // Default names are known only here.
  checkApart(
    [],
    [out, choice.json, choice.sqlite, choice.html].filter((name) => name !== undefined),
  );
  checkWritable(choice.json);
  checkWritable(choice.sqlite);
  checkWritable(choice.html);
  const reused = choice.reuse.flatMap((name) => readResults(name).rows);
  const points = pointsOf(spec);
  const header = headerOf(spec, points);
  const screen = new Screen(choice.json);
  using results = new ResultsFile(out, header);
  const work = workOf(points, results.rows, {
    reused,
    isFailedRetried: choice.retryFailed === true,
    ...(choice.shard === undefined ? {} : { shard: choice.shard }),
  });
  const left = work.groups.reduce((sum, group) => sum + group.length, work.known.length);
  screen.print(beginText(points.length, results.rows.size, left, out));
  const bar = new CountBar(left, 'points');
  try {
    const onNotice = (text: string): void => {
      bar.erase();
      screen.print(text);
    };
    await using engine = await engineOf(choice, { pointCount: work.groups.length, out, onNotice });
    await runWork(work, results, engine, (count) => bar.update(count));
  } finally {
    bar.stop();
  }
  const rows = [...results.rows.values()].toSorted((left, right) => left.index - right.index);
  const head = headOf(command, { title: 'A sweep', words: file === undefined ? [] : [file] });
  conclude({ header, rows }, choice, head, screen);
  for (const sentence of expectedErrors(points)) screen.print(sentence);
  if (rows.some(({ status }) => status === 'failed')) process.exitCode = exitFailed;
}

function beginText(pointCount: number, rowCount: number, left: number, out: string): string {
  const there = rowCount === 0 ? '' : `; ${out} has ${countText(rowCount)} of them`;
  return `${countText(pointCount)} points${there}. ${countText(left)} to go, each a row of ${out}.`;
}

interface MergeChoice extends Outputs {
  readonly out?: string;
}

interface Outputs extends HtmlChoice {
  readonly sqlite?: string;
  readonly json?: string;
}

function merge(files: readonly string[], choice: MergeChoice, command: Command): void {
  checkWritable(choice.json);
  checkWritable(choice.sqlite);
  checkWritable(choice.out);
  checkWritable(choice.html);
  const results = mergedResults(files.map((file) => ({ file, ...readResults(file) })));
  if (choice.out !== undefined) writeJoinedResults(choice.out, results);
  const screen = new Screen(choice.json);
  conclude(results, choice, headOf(command, { title: 'Joined results of a sweep', words: files }), screen);
  const missing = missingOf(results);
  if (missing.length === 0) return;
  const some = missing.slice(0, 10).join(', ');
  process.stderr.write(
    `hca: ${countText(missing.length)} points are not there: ${some}${missing.length > 10 ? ' …' : ''} (counted from 0)\n`,
  );
  process.exitCode = exitFailed;
}

/** Files and output for the available rows. */
function conclude(results: Results, outputs: Outputs, head: PageHead, screen: Screen): void {
  const { sqlite, json } = outputs;
  const { header, rows } = results;
  for (const text of sweepSummary(rows, header.axes, header.pointCount)) screen.print(text);
  if (sqlite !== undefined) writeSqlite(sqlite, results);
  if (json !== undefined) writeJson(json, jsonOf(header, rows));
  writePage(outputs, () => sweepPage(head, results), screen);
}

const jsonOf = (header: Results['header'], rows: readonly SweepRow[]): JsonOutput => {
  const { schema: _, ...facts } = header;
  return { schema: 'hca-sweep-results/1', ...facts, rows };
};

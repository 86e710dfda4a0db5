/** `hca ask`: the questions of docs/studies. Each is a resumable sweep, a page, and three sentences computed from the figures. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { type Study, StudyFigures, studies, studyMarkdown } from '../../experiments/studies/index.ts';
import {
  checkedSpec,
  headerOf,
  laneEngine,
  pointsOf,
  type Results,
  ResultsFile,
  runWork,
  workOf,
} from '../../experiments/sweep/index.ts';
import { foldedSection, type PageHead } from '../../explain/page/index.ts';
import { countText } from '../../explain/text/format.ts';
import { checkWritable, writeFileAtomically } from '../../runtime/output-files.ts';
import { chartPage } from '../chart/index.ts';
import { CountBar } from '../count-bar.ts';
import { expectedErrors } from '../expected-error.ts';
import { headOf, htmlFile } from '../html-output.ts';
import type { JsonOutput } from '../json-outputs.ts';
import { integer } from '../options.ts';
import { checkApart, Screen, writeJson } from '../output.ts';
import { plotOf } from '../plot/plot-choice.ts';
import { plotPage } from '../plot/plot-page.ts';
import { pointReports } from '../plot/point-reports.ts';
import { localRunner } from '../sweep/sweep-engine.ts';

interface AskChoice {
  readonly out?: string;
  readonly html?: string;
  readonly markdown?: string;
  readonly json?: string;
  readonly jobs: number;
}

export function addAskCommand(program: Command): void {
  program
    .command('ask')
    .description(
      'answer a question of docs/studies by a sweep: a page and three sentences; without a name, list them',
    )
    .argument('[name]', `one of ${studies.map(({ name }) => name).join(', ')}`)
    .option('--out <file>', 'results file, which a later run continues (default: ask-NAME.jsonl)')
    .option('--html <file>', 'file of the page (default: ask-NAME.html)', htmlFile)
    .option('--markdown <folder>', 'write the answer with its figures as NAME.md there')
    .option('--json <file>', 'write answer and figures as JSON; - is standard output')
    .option('--jobs <n>', 'points that run at once', integer(1, 256), 1)
    .action(ask);
}

async function ask(name: string | undefined, choice: AskChoice, command: Command): Promise<void> {
  if (name === undefined) return list(choice.json);
  const study = studyNamed(name);
  const out = choice.out ?? `ask-${name}.jsonl`;
  const html = choice.html ?? `ask-${name}.html`;
  const markdown = choice.markdown === undefined ? undefined : join(choice.markdown, `${name}.md`);
  checkApart(
    [],
    [out, html, markdown, choice.json].filter((file) => file !== undefined),
  );
  checkWritable(html);
  checkWritable(markdown);
  checkWritable(choice.json);
  const screen = new Screen(choice.json);
  screen.print(study.question);
  const results = await resultsOf(study, out, choice.jobs, screen);
  const answer = answerOf(study, results);
  for (const sentence of [...answer, ...expectedErrors(pointsOf(checkedSpec(study.spec)))])
    screen.print(sentence);
  const { version, sweep, pointCount } = results.header;
  const source = `Sweep ${sweep.slice(0, 12)} of ${pointCount} points, hca-emulator ${version}.`;
  const head = headOf(command, { title: study.question, words: [name], sentences: [...answer, source] });
  writeFileAtomically(html, pageOf(head, study, results));
  if (markdown !== undefined) writeFileAtomically(markdown, studyMarkdown(study, results, answer));
  if (choice.json !== undefined) writeJson(choice.json, jsonOf(study, results, answer));
  screen.print(`Wrote ${html}.`);
}

function list(json: string | undefined): void {
  checkWritable(json);
  const screen = new Screen(json);
  const width = Math.max(...studies.map(({ name }) => name.length));
  for (const { name, question } of studies) screen.print(`hca ask ${name.padEnd(width)}  ${question}`);
  const questions = studies.map(({ name, question }) => ({ name, question }));
  if (json !== undefined) writeJson(json, { schema: 'hca-studies/1', questions } satisfies JsonOutput);
}

/** @throws ConfigurationError for an unknown study */
function studyNamed(name: string): Study {
  const found = studies.find((study) => study.name === name);
  if (found !== undefined) return found;
  throw new ConfigurationError('ask', name, `one of ${studies.map((study) => study.name).join(', ')}`);
}

/** Runs the missing points. */
async function resultsOf(study: Study, out: string, jobs: number, screen: Screen): Promise<Results> {
  const points = pointsOf(checkedSpec(study.spec));
  const header = headerOf(checkedSpec(study.spec), points);
  using file = new ResultsFile(out, header);
  const work = workOf(points, file.rows, { reused: [], isFailedRetried: true });
  const left = work.groups.reduce((sum, group) => sum + group.length, work.known.length);
  screen.print(`${countText(points.length)} points, ${countText(left)} to go, each a row of ${out}.`);
  const bar = new CountBar(left, 'points');
  try {
    await using runner = localRunner(Math.max(1, Math.min(jobs, work.groups.length)));
    await runWork(work, file, laneEngine(runner), (count) => bar.update(count));
  } finally {
    bar.stop();
  }
  return { header, rows: [...file.rows.values()].toSorted((left, right) => left.index - right.index) };
}

/**
 * Returns the sentences.
 * @throws ConfigurationError if a point has no figures
 */
function answerOf(study: Study, { rows }: Results): readonly [string, string, string] {
  const bad = rows.find(({ status }) => status !== 'done');
  if (bad !== undefined)
    throw new ConfigurationError(
      `point ${JSON.stringify(bad.axes)} of ${study.name}`,
      bad.status,
      `done (${bad.error})`,
    );
  return study.answer(new StudyFigures(rows));
}

function pageOf(head: PageHead, study: Study, results: Results): string {
  const pages = study.plots.map((plot) => plotPage(plotOf(results, { ...plot, where: plot.where ?? [] })));
  return chartPage(head, {
    charts: pages.flatMap(({ charts }) => charts),
    heatMaps: pages.flatMap(({ heatMaps }) => heatMaps),
    tables: pages.flatMap(({ tables }) => tables),
    sections: [
      foldedSection('The sweep, as hca sweep reads it', JSON.stringify(results.header.spec, undefined, 1)),
    ],
    reports: pointReports(results),
  });
}

const jsonOf = (
  { name, question }: Study,
  { header, rows }: Results,
  answer: readonly string[],
): JsonOutput => {
  const { schema: _, ...facts } = header;
  return { schema: 'hca-ask/1', name, question, answer, ...facts, rows };
};

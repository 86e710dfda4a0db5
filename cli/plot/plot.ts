/** `hca plot`: draws results of a sweep as one self-contained page with lines, heat maps or a Pareto front. */
import { basename, extname } from 'node:path';
import type { Command } from 'commander';
import { isSqlite, type Results, readResults, readSqlite } from '../../experiments/sweep/index.ts';
import { checkWritable, writeFileAtomically } from '../../runtime/output-files.ts';
import { type Chart, chartPage, terminalChart } from '../chart/index.ts';
import { headOf, htmlFile } from '../html-output.ts';
import { checkApart, Screen, writeJson } from '../output.ts';
import { roundTripText } from '../sweep/sweep-summary.ts';
import { type PlotOptions, plotOf } from './plot-choice.ts';
import { leftOutText, plotPage } from './plot-page.ts';
import { pointReports } from './point-reports.ts';

interface PlotChoice extends PlotOptions {
  readonly html?: string;
  readonly json?: string;
}

const terminalSize = { width: 64, height: 16 };
/** Characters for the lines of a text plot. */
const terminalLinesMax = 6;

const collected = (text: string, before: readonly string[]): string[] => [...before, text];

export function addPlotCommand(program: Command): void {
  program
    .command('plot')
    .description(
      'draw results of a sweep: lines with knees, a heat map over two axes, the Pareto front of two figures',
    )
    .argument('<file>', 'results: JSON lines, or an SQLite database')
    .requiredOption('--x <name>', 'x axis: an axis, or for a Pareto front a figure')
    .option('--y <name>', 'y axis: a figure (may be repeated), or for a heat map an axis', collected, [])
    .option('--z <figure>', 'figure of a heat map’s colours')
    .option('--by <axis>', 'axis that orders lines and colours clouds of points')
    .option('--where <axis=value>', 'only points that have this value; may be repeated', collected, [])
    .option('--html <file>', 'file of the page (default: the name of the results, with .html)', htmlFile)
    .option('--json <file>', 'write the drawn data as JSON; - is standard output')
    .action(plot);
}

function plot(file: string, choice: PlotChoice, command: Command): void {
  // A repeatable option has an empty list as its default, which page and JSON need to record each occurrence; so it
  // cannot be a required option.
  if (choice.y.length === 0) command.error("error: required option '--y <name>' not specified");
  const html = choice.html ?? `${basename(file, extname(file))}.html`;
  checkApart([file], [html, ...(choice.json === undefined ? [] : [choice.json])]);
  checkWritable(html);
  checkWritable(choice.json);
  const results: Results = isSqlite(file) ? readSqlite(file) : readResults(file);
  const chosen = plotOf(results, choice);
  const drawn = plotPage(chosen);
  const page = {
    ...drawn,
    text: [...drawn.text, ...roundTripText(results.rows), ...leftOutText(results)],
  };
  const { version, sweep, pointCount } = results.header;
  const source = `Sweep ${sweep.slice(0, 12)} of ${pointCount} points, hca-emulator ${version}, ${basename(file)}.`;
  const head = headOf(command, { title: page.title, words: [file], sentences: [...page.text, source] });
  writeFileAtomically(html, chartPage(head, { ...page, reports: pointReports(results, chosen.rows) }));
  if (choice.json !== undefined) writeJson(choice.json, { schema: 'hca-plot/1', sweep, version, ...page });
  const screen = new Screen(choice.json);
  for (const chart of page.charts) if (isForTerminal(chart)) screen.print(terminalChart(chart, terminalSize));
  for (const text of page.text) screen.print(text);
  screen.print(`Wrote ${html}.`);
}

/** Text plots have logarithmic axes, lines, and few distinct characters. */
const isForTerminal = ({ lines, xWords, isScattered }: Chart): boolean =>
  xWords === undefined &&
  isScattered !== true &&
  lines.length <= terminalLinesMax &&
  lines.every(({ points }) => points.length > 1 && points.every(([x, y]) => x > 0 && y > 0));

/**
 * `hca diff A B`: the changes from one output to another, by cause, largest first. Exit code 0 if all values are equal
 * within the tolerance, 1 if not, 2 for files that cannot be compared.
 */
import { basename } from 'node:path';
import type { Command } from 'commander';
import { visible } from '../../base/index.ts';
import { parsedTolerance, reportDiff, type Tolerance } from '../../explain/diff/index.ts';
import { pageOf, textSection } from '../../explain/page/index.ts';
import { atAnyWidth } from '../../explain/text/table.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import { exitFailed, Screen, writeJson } from '../output.ts';
import { diffText } from './diff-text.ts';
import { readOutput } from './output-file.ts';

interface DiffOptions extends HtmlChoice {
  readonly tolerance: readonly Tolerance[];
  readonly figures?: true;
  readonly all?: true;
  readonly json?: string;
}

export const collectedTolerance = (text: string, before: readonly Tolerance[]): Tolerance[] => [
  ...before,
  parsedTolerance(text),
];

export function addDiffCommand(program: Command): void {
  program
    .command('diff')
    .description('list the changes from one report or JSON output to another, largest first')
    .argument('<before>', 'file that a command wrote with --json or --report')
    .argument('<after>', 'file of the same kind')
    .option(
      '--tolerance <share>',
      'how much figures may change: 1%, or pcie.*=5% for some; may be repeated',
      collectedTolerance,
      [],
    )
    .option('--figures', 'compare the figures only, not the requests')
    .option('--all', 'show every figure that differs, not only the largest')
    .option('--json <file>', 'write the differences as JSON; - is standard output')
    .option(...htmlOption)
    .action(diff);
}

function diff(before: string, after: string, options: DiffOptions, command: Command): void {
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const found = reportDiff(readOutput(before), readOutput(after), options.tolerance);
  if (options.json !== undefined) writeJson(options.json, found);
  const made = (): string => diffText(found, columnNames(before, after), options.all === true);
  screen.print(made());
  const head = headOf(command, { title: 'What changed', words: [before, after] });
  writePage(options, () => pageOf(head, [textSection('Differences', atAnyWidth(made))]), screen);
  const isEqual = options.figures === true ? found.beyond === 0 : found.isEqual;
  if (!isEqual) process.exitCode = exitFailed;
}

/** Names that distinguish the files and leave room for figures. */
function columnNames(before: string, after: string): [string, string] {
  const [one, other] = [basename(before), basename(after)];
  const isClear = one !== other && Math.max(one.length, other.length) <= 16;
  return isClear ? [visible(one), visible(other)] : ['before', 'after'];
}

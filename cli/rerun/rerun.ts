/**
 * `hca rerun OUTPUT`: repeats the run that an output describes, and reports whether the result is the same. Exit code 0
 * if it is, 1 if not, 2 for a file that lacks information or whose input is missing.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { type Output, reportDiff, type Tolerance } from '../../explain/diff/index.ts';
import { pageOf, textSection } from '../../explain/page/index.ts';
import { atAnyWidth } from '../../explain/text/table.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { packageNameAndVersion } from '../../runtime/package-folder.ts';
import { collectedTolerance } from '../diff/diff.ts';
import { diffText } from '../diff/diff-text.ts';
import { readOutput } from '../diff/output-file.ts';
import { type HtmlChoice, headOf, htmlOption, shellWord, writePage } from '../html-output.ts';
import { checkedInvocation, commandLineOf, type InvocationInput } from '../invocation.ts';
import { defaultFile } from '../move/move.ts';
import { exitBadInput, exitFailed, Screen, withoutScreen, writeJson } from '../output.ts';

interface RerunOptions extends HtmlChoice {
  readonly file?: string;
  readonly tolerance: readonly Tolerance[];
  readonly all?: true;
  readonly json?: string;
}

/** Runs the command line with these arguments. */
type Run = (words: readonly string[]) => Promise<void>;

export function addRerunCommand(program: Command, run: Run): void {
  program
    .command('rerun')
    .description('repeat the run of a report or JSON output, and report whether the result is the same')
    .argument('<output>', 'file that a command wrote with --json or --report')
    .option('--file <file>', 'present path of the input file')
    .option(
      '--tolerance <share>',
      'how much figures may change: 1%, or pcie.*=5% for some; may be repeated',
      collectedTolerance,
      [],
    )
    .option('--all', 'show every figure that differs, not only the largest')
    .option('--json <file>', 'write the differences as JSON; - is standard output')
    .option(...htmlOption)
    .action((file: string, options: RerunOptions, command: Command) => rerun(file, options, command, run));
}

async function rerun(file: string, options: RerunOptions, command: Command, run: Run): Promise<void> {
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const before = readOutput(file);
  const invocation = checkedInvocation(file, before, command.parent!.commands);
  const input = await inputOf(invocation.input, options.file, file);
  const words = commandLineOf(invocation, input);
  screen.print(`Again: hca ${words.map(shellWord).join(' ')}`);
  const after = await outputOf(words, before.schema, run);
  if (after === undefined) return;
  const found = reportDiff(before, after, options.tolerance);
  const { version } = packageNameAndVersion();
  const versions = { before: invocation.version, after: version };
  if (options.json !== undefined)
    writeJson(options.json, {
      schema: 'hca-rerun/1',
      command: words,
      versions,
      isEqual: found.isEqual,
      differences: found,
    });
  const made = (): string => diffText(found, ['before', 'again'], options.all === true);
  screen.print(made());
  const head = headOf(command, { title: 'The same again?', words: [file] });
  writePage(options, () => pageOf(head, [textSection('Differences', atAnyWidth(made))]), screen);
  if (found.isEqual)
    screen.print(`The same came of it${version === invocation.version ? '' : ` with version ${version}`}.`);
  else process.exitCode = exitFailed;
}

/**
 * Finds the input file of the command: under its name, next to the output, or the README of this package.
 * @throws ConfigurationError if it is missing or has other bytes
 */
async function inputOf(
  input: InvocationInput | undefined,
  named: string | undefined,
  output: string,
): Promise<string | undefined> {
  if (input === undefined) {
    if (named === undefined) return undefined;
    throw new ConfigurationError('--file', named, 'left out: the command read no file');
  }
  const { file, bytes, sha256 } = input;
  const places = file === undefined ? [defaultFile()] : [file, join(dirname(output), file)];
  const found = named ?? places.find((place) => existsSync(place));
  if (found === undefined)
    throw new ConfigurationError('file that was read', file, 'there still: say where it is with --file');
  const stat = statSync(found, { throwIfNoEntry: false });
  const isSame = stat?.isFile() === true && stat.size === bytes && (await sha256Of(found)) === sha256;
  if (isSame) return found;
  throw new ConfigurationError('--file', found, `the file that was read: ${bytes} bytes, SHA-256 ${sha256}`);
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/** Output of the repeated command; undefined if it wrote nothing. */
async function outputOf(words: readonly string[], schema: string, run: Run): Promise<Output | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'hca-rerun-'));
  const { exitCode } = process;
  try {
    const file = join(folder, 'again.json');
    const how = schema.startsWith('hca-report/') ? '--report' : '--json';
    // First, because after -- only files are allowed.
    const [command, ...rest] = words;
    await withoutScreen(() => run([command!, `${how}=${file}`, ...rest]));
    if (!existsSync(file)) {
      // The command has printed the reason.
      if (process.exitCode !== exitBadInput) process.exitCode = exitFailed;
      return undefined;
    }
    // The figures include whether the repeated run failed.
    process.exitCode = exitCode;
    return readOutput(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Output of commands: JSON to a file or to standard output, one clear line for bad input. `runtime/output-files.ts`
 * writes files.
 */
import { ConfigurationError, codeOf, visible } from '../base/index.ts';
import { terminalColumns } from '../explain/text/table.ts';
import { isWrittenInPlace, statOf, targetOf } from '../runtime/files.ts';
import { promisedFileCount, writeFileAtomically } from '../runtime/output-files.ts';
import type { JsonOutput } from './json-outputs.ts';

export { codeOf } from '../base/index.ts';

/** Exit codes: bad input; a run that failed or has wrong results; a reader that closed its pipe (128 + SIGPIPE). */
export const exitBadInput = 2;
export const exitFailed = 1;
const exitReaderGone = 141;

/**
 * Checks that no output file is also read or written twice. Devices may be: they store nothing.
 * @throws ConfigurationError naming the file
 */
export function checkApart(inputs: readonly string[], outputs: readonly string[]): void {
  const taken = new Map<string, string>();
  const note = (file: string, what: string): void => {
    const found = statOf(file);
    if (found !== undefined && isWrittenInPlace(found)) return;
    const key = found === undefined ? targetOf(file) : `${found.dev}:${found.ino}`;
    const other = taken.get(key);
    if (other !== undefined && (what === 'written' || other === 'written'))
      throw new ConfigurationError('output file', file, `a file that is not ${other} as well`);
    taken.set(key, what);
  };
  for (const file of inputs) note(file, 'read');
  for (const file of outputs) if (file !== '-') note(file, 'written');
}

/** JSON for files: indented, one final newline. */
export const jsonText = (value: unknown): string => `${JSON.stringify(value, exactDigits, 2)}\n`;

/** Converts values that no JSON number represents exactly (times past 2^53 ps) into decimal strings. */
const exactDigits = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

/** Writes JSON to a file, or to standard output for `-`. */
export function writeJson(target: string, value: JsonOutput): void {
  writeOutput(target, jsonText(value));
}

/** Writes to a file, or to standard output for `-`. */
export function writeOutput(target: string, text: string): void {
  if (target === '-') process.stdout.write(text);
  else writeFileAtomically(target, text);
}

/** Prints an error as one line on standard error. */
export function fail(message: string, exitCode: number): void {
  process.stderr.write(`hca: ${visible(message.replace(/^error: /, '').split('\n')[0]!)}\n`);
  process.exitCode = exitCode;
}

/**
 * Handles failing standard output. A reader may have seen enough, like head: then promised files are still written;
 * without any, the run ends as by SIGPIPE. A full disk is reported, and the exit code is that of a failure.
 */
export function watchStandardOutput(): void {
  let isReported = false;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') {
      if (promisedFileCount() === 0) process.exit(exitReaderGone);
      return;
    }
    if (!isReported) fail(`standard output cannot be written (${codeOf(error)})`, exitFailed);
    isReported = true;
    if (promisedFileCount() === 0) process.exit(exitFailed);
  });
  process.on('exit', (code) => {
    if (isReported && code === 0) process.exitCode = exitFailed;
  });
  process.stderr.on('error', () => {
    // No place is left to report the error.
  });
}

/** Rows of tables and plots contain box characters (U+2500 to U+257F) and keep their width. */
const frame = /[\u2500-\u257f]/;

/**
 * Wraps text for a terminal of this many columns: a longer sentence continues on the next line after two spaces, broken
 * at a space and not within a word.
 */
export function wrapped(text: string, columns: number): string {
  if (!Number.isFinite(columns)) return text;
  return text
    .split('\n')
    .map((line) => (line.length <= columns || frame.test(line) ? line : wrappedLine(line, columns)))
    .join('\n');
}

function wrappedLine(line: string, columns: number): string {
  const indent = /^ */.exec(line)![0].length + 2;
  const lines: string[] = [];
  let rest = line;
  while (rest.length > columns) {
    const at = rest.lastIndexOf(' ', columns);
    if (at <= indent) break;
    lines.push(rest.slice(0, at).trimEnd());
    rest = ' '.repeat(indent) + rest.slice(at).trimStart();
  }
  return [...lines, rest].join('\n');
}

let isScreenOff = false;

/** Runs a function with standard output suppressed; files, standard error and exit code are unaffected. */
export async function withoutScreen(run: () => Promise<void>): Promise<void> {
  const before = isScreenOff;
  isScreenOff = true;
  try {
    await run();
  } finally {
    isScreenOff = before;
  }
}

/** Prints unless standard output is reserved for JSON. */
export class Screen {
  readonly #isQuiet: boolean;

  constructor(jsonTarget: string | undefined) {
    this.#isQuiet = jsonTarget === '-';
  }

  /** Writes text unchanged. */
  write(text: string): void {
    if (!this.#isQuiet && !isScreenOff) process.stdout.write(text);
  }

  /** Writes sentences and tables for the width of the terminal. */
  print(text = ''): void {
    this.write(`${wrapped(text, terminalColumns())}\n`);
  }
}

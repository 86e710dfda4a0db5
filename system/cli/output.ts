/** How commands write: files atomically, JSON to a file or to standard output, one clear line for bad input. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { ConfigurationError } from '../../base/assert.ts';

/** Exit codes: bad input; and a run that failed or whose results are wrong. */
export const exitBadInput = 2;
export const exitFailed = 1;

/**
 * Writes a file whole or not at all: into a temporary file beside it, which then takes its name.
 * @throws ConfigurationError when it cannot be written
 */
export function writeFileAtomically(file: string, content: string): void {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    const handle = openSync(temporary, 'wx');
    try {
      writeSync(handle, content);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw new ConfigurationError('output file', file, `a file that can be written (${codeOf(error)})`);
  }
}

/**
 * Checks before a long run that a file can be written afterwards; leaves nothing behind.
 * @throws ConfigurationError when it cannot
 */
export function checkWritable(file: string | undefined): void {
  if (file === undefined || file === '-') return;
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    throw new ConfigurationError('output file', file, 'a file that can be written (EISDIR)');
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    closeSync(openSync(temporary, 'wx'));
  } catch (error) {
    throw new ConfigurationError('output file', file, `a file that can be written (${codeOf(error)})`);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** JSON as files hold it: indented, one final newline. */
export const jsonText = (value: unknown): string => `${JSON.stringify(value, exactDigits, 2)}\n`;

/** What no number of JSON holds exactly (instants past 2^53 ps) becomes a string of decimal digits. */
const exactDigits = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

/** Writes JSON to a file, or to standard output for `-`. */
export function writeJson(target: string, value: unknown): void {
  if (target === '-') process.stdout.write(jsonText(value));
  else writeFileAtomically(target, jsonText(value));
}

/** The error code of the operating system, like ENOENT. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** Prints unless standard output belongs to JSON. */
export class Screen {
  readonly #isQuiet: boolean;

  constructor(jsonTarget: string | undefined) {
    this.#isQuiet = jsonTarget === '-';
  }

  /** Writes as it is. */
  write(text: string): void {
    if (!this.#isQuiet) process.stdout.write(text);
  }

  print(text = ''): void {
    if (!this.#isQuiet) process.stdout.write(`${text}\n`);
  }
}

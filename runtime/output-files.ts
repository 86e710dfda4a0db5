/**
 * Files that a command writes: atomically, and promised before the run that produces them.
 *
 *     a file            into a temporary one next to it, which is renamed when every byte is on the disk
 *     a symbolic link   the same for its target; the link stays
 *     device, pipe      written to, as a shell's > would
 */
import { accessSync, closeSync, constants, openSync, rmSync } from 'node:fs';
import { ConfigurationError, codeOf } from '../base/index.ts';
import { isWrittenInPlace, replaceFile, statOf, targetOf } from './files.ts';

/** Files that were promised before a run and are not written yet. */
const pending = new Set<string>();

const unwritable = (file: string, error: unknown): ConfigurationError =>
  new ConfigurationError('output file', file, `a file that can be written (${codeOf(error)})`);

/**
 * Writes a file whole or not at all. Writes in place if the target is not a regular file and cannot be replaced.
 * @throws ConfigurationError if it cannot be written; an existing file is unchanged
 */
export function writeFileAtomically(file: string, content: string | Uint8Array): void {
  pending.delete(file);
  try {
    replaceFile(file, content);
  } catch (error) {
    throw unwritable(file, error);
  }
}

/**
 * Checks before a long run that a file can be written afterwards; leaves no file.
 * @throws ConfigurationError if it cannot
 */
export function checkWritable(file: string | undefined): void {
  if (file === undefined || file === '-') return;
  let temporary: string | undefined;
  try {
    if (file === '') throw new Error('it has no name');
    const found = statOf(file);
    if (found?.isDirectory()) throw new Error('EISDIR');
    if (isWrittenInPlace(found)) {
      accessSync(file, constants.W_OK);
    } else {
      temporary = `${targetOf(file)}.${process.pid}.tmp`;
      closeSync(openSync(temporary, 'wx'));
    }
  } catch (error) {
    throw unwritable(file, error);
  } finally {
    if (temporary !== undefined) rmSync(temporary, { force: true });
  }
  pending.add(file);
}

/** Number of files that were promised and are not written yet. */
export const promisedFileCount = (): number => pending.size;

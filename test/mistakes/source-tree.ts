/** A copy of the repository's source in a temporary folder, in which one file at a time can be other than it is. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Mistake } from './mistake.ts';

export const repositoryRoot: string = fileURLToPath(new URL('../..', import.meta.url));

/** What stands beside the sources. */
const notSource: ReadonlySet<string> = new Set(['.git', 'node_modules', 'dist']);

/**
 * The source with a mistake in it.
 * @throws Error when the text to find does not occur exactly once
 */
export function withMistake(source: string, { name, file, find, replace }: Mistake): string {
  const parts = source.split(find);
  if (parts.length !== 2)
    throw new Error(`mistake ${name}: its text occurs ${parts.length - 1} times in ${file}, expected 1`);
  return parts.join(replace);
}

export class SourceTree implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'hca-mistakes-'));

  constructor() {
    // Without git: a clone's files may have come without its history.
    const isSource = (path: string): boolean => !notSource.has(relative(repositoryRoot, path));
    cpSync(repositoryRoot, this.folder, { recursive: true, filter: isSource });
    symlinkSync(join(repositoryRoot, 'node_modules'), join(this.folder, 'node_modules'));
  }

  /** Puts the mistake in; the returned object takes it out again. */
  make(mistake: Mistake): Disposable {
    const path = join(this.folder, mistake.file);
    const source = readFileSync(path, 'utf8');
    writeFileSync(path, withMistake(source, mistake));
    return { [Symbol.dispose]: () => writeFileSync(path, source) };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

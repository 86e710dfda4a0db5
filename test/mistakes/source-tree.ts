/** A copy of the repository's source in a temporary folder, in which one file at a time can be changed. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Mistake } from './mistake.ts';

export const repositoryRoot: string = fileURLToPath(new URL('../..', import.meta.url));

/** Files next to the sources. */
const notSource: ReadonlySet<string> = new Set(['.git', 'node_modules', 'dist']);

/**
 * The source with a mistake in it.
 * @throws Error if the text to find does not occur exactly once
 */
export function withMistake(source: string, { name, file, find, replace }: Mistake): string {
  const parts = source.split(find);
  if (parts.length !== 2)
    throw new Error(`mistake ${name}: its text occurs ${parts.length - 1} times in ${file}, expected 1`);
  return parts.join(replace);
}

export class SourceTree implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'hca-mistakes-'));

  /** @param root of the repository to copy */
  constructor(root: string = repositoryRoot) {
    // Works without git: a clone may lack the history.
    const isSource = (path: string): boolean => !notSource.has(relative(root, path));
    cpSync(root, this.folder, { recursive: true, filter: isSource });
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'));
  }

  /** Puts the mistake in; disposing the returned object removes it. */
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

/** A copy of the repository's source in a temporary folder, in which one file at a time can be other than it is. */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Mistake } from './mistake.ts';

export const repositoryRoot: string = fileURLToPath(new URL('../..', import.meta.url));

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
    const listing = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: repositoryRoot,
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    });
    for (const file of listing.split('\0').filter((name) => name !== '' && name !== 'node_modules')) {
      const target = join(this.folder, file);
      mkdirSync(dirname(target), { recursive: true });
      copyFileSync(join(repositoryRoot, file), target);
    }
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

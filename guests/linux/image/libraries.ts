/** Finds the shared libraries that programs need, and those that the libraries need, in an unpacked tree of packages. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError } from '../../../base/index.ts';
import { type Architecture, libraryFoldersOf } from '../packages/architecture.ts';
import { elfNeeds } from './elf.ts';

/**
 * Every library of that architecture that `files` (paths within `root`) need, and the libraries `alsoNeeded` names, as name and path within the
 * root, each once.
 * @throws ConfigurationError if one is not in the tree
 */
export function libraryClosure(
  root: string,
  architecture: Architecture,
  files: readonly string[],
  alsoNeeded: readonly string[] = [],
): Map<string, string> {
  const found = new Map<string, string>();
  const pending = [...files];
  const add = (name: string, neededBy: string): void => {
    if (found.has(name)) return;
    const path = libraryPath(root, architecture, name);
    if (path === undefined)
      throw new ConfigurationError(`library that ${neededBy} needs`, name, `one in ${root}`);
    found.set(name, path);
    pending.push(path);
  };
  for (const name of alsoNeeded) add(name, 'the image');
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    for (const name of elfNeeds(readFileSync(join(root, file)))?.libraries ?? []) add(name, file);
  }
  return found;
}

/** Path of a library within the tree; of its target if the name is a symbolic link. */
function libraryPath(root: string, architecture: Architecture, name: string): string | undefined {
  const folder = libraryFoldersOf(architecture).find((candidate) => existsSync(join(root, candidate, name)));
  if (folder === undefined) return undefined;
  return realpathSync(join(root, folder, name)).slice(realpathSync(root).length + 1);
}

/**
 * Runs a program out of an unpacked tree of packages, without root and without installing it: by the tree's own
 * dynamic loader, with the tree's own libraries, so that neither has to fit the machine's.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError } from '../../base/index.ts';
import { libraryFolders } from './image/libraries.ts';

/** The dynamic loader of amd64, in one of the folders of libraries. (The link in /lib64 is absolute: of no use here.) */
const loaderName = 'ld-linux-x86-64.so.2';

export interface CommandLine {
  readonly file: string;
  readonly arguments: readonly string[];
}

/**
 * The command line that runs `program` (a path within `root`), under the name `calledAs` where that matters.
 * @throws ConfigurationError when the tree has no loader
 */
export function treeProgram(root: string, program: string, calledAs?: string): CommandLine {
  const folders = libraryFolders.map((folder) => join(root, folder));
  const loader = folders.map((folder) => join(folder, loaderName)).find((path) => existsSync(path));
  if (loader === undefined)
    throw new ConfigurationError('unpacked packages', root, `a tree with ${loaderName}`);
  const name = calledAs === undefined ? [] : ['--argv0', calledAs];
  return {
    file: loader,
    arguments: ['--library-path', folders.join(':'), ...name, join(root, program)],
  };
}

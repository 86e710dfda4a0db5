/**
 * Runs a program from an unpacked tree of packages, without root and without installing it: with the tree's own dynamic loader
 * and libraries, so that neither must match the machine's.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError } from '../../base/index.ts';
import { layoutOf, libraryFoldersOf } from './packages/architecture.ts';

/** The architecture of this machine. */
const architecture = 'amd64';
/** In one of the folders of libraries. (The link in /lib64 is absolute, and so unusable here.) */
const { loaderName } = layoutOf[architecture];

export interface CommandLine {
  readonly file: string;
  readonly arguments: readonly string[];
}

/**
 * The command line that runs `program` (a path within `root`), under the name `calledAs` if that matters.
 * @throws ConfigurationError if the tree has no loader
 */
export function treeProgram(root: string, program: string, calledAs?: string): CommandLine {
  const folders = libraryFoldersOf(architecture).map((folder) => join(root, folder));
  const loader = folders.map((folder) => join(folder, loaderName)).find((path) => existsSync(path));
  if (loader === undefined)
    throw new ConfigurationError('unpacked packages', root, `a tree with ${loaderName}`);
  const name = calledAs === undefined ? [] : ['--argv0', calledAs];
  return {
    file: loader,
    arguments: ['--library-path', folders.join(':'), ...name, join(root, program)],
  };
}

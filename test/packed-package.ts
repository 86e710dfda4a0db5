/**
 * The package as `npm pack` makes it, installed in a folder without a registry: its dependencies are those of the repository.
 * It is packed once for the present files, by the first spec that needs it:
 *
 *     dist/packed/9b1e…/hca-emulator-0.1.0.tgz      the folder's name: path, size and time of change of every file
 */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('..', import.meta.url));
const packages = join(repository, 'dist', 'packed');
/** Files without influence on the package: generated ones, and dependencies given by the lock file. */
const skipped = new Set(['node_modules', 'dist', '.git']);

export interface PackedPackage {
  /** Folder of the installation. */
  readonly installed: string;
  /** Paths of the files in it. */
  readonly files: readonly string[];
}

const run = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** A name for the repository's present files. */
function keyOfFiles(): string {
  const lines = readdirSync(repository)
    .filter((name) => !skipped.has(name))
    .flatMap((name) => linesOf(name));
  return hash('sha1', lines.join('\n')).slice(0, 16);
}

function linesOf(path: string): string[] {
  const stat = statSync(join(repository, path), { throwIfNoEntry: false });
  if (stat === undefined) return [];
  if (!stat.isDirectory()) return [`${path} ${stat.mtimeMs} ${stat.size}`];
  return readdirSync(join(repository, path)).flatMap((name) => linesOf(join(path, name)));
}

/** The folder with the packed file, which is packed if it is missing. */
function packedFolder(): string {
  const folder = join(packages, keyOfFiles());
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  run('npm', ['pack', '--pack-destination', unfinished], repository);
  // Folders of older files; another process may be about to finish its own.
  for (const name of readdirSync(packages))
    if (!name.includes('.')) rmSync(join(packages, name), { recursive: true, force: true });
  renameSync(unfinished, folder);
  return folder;
}

/** Installs the packed repository in `folder`, together with those packages of the repository. */
export function installPacked(folder: string, others: readonly string[] = []): PackedPackage {
  const packed = packedFolder();
  run('tar', ['xzf', join(packed, readdirSync(packed)[0]!)], folder);
  const installed = join(folder, 'node_modules', 'hca-emulator');
  cpSync(join(folder, 'package'), installed, { recursive: true });
  const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), '@types/node', ...others]) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(repository, 'node_modules', name), link);
  }
  const entries = readdirSync(installed, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(installed.length + 1));
  return { installed, files };
}

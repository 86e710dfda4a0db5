/**
 * Selects the kernel modules that a guest needs from an unpacked kernel package, with their dependencies, and creates
 * modprobe's tables for these modules only.
 *
 * A package brings modules (plain or compressed by xz) but not their tables: installation would run depmod. Here depmod runs
 * twice: once per kernel over all modules, to find their dependencies; and over the few selected ones.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ConfigurationError } from '../../../base/index.ts';
import { treeProgram } from '../tree-program.ts';
import type { ImageContents } from './contents.ts';

/** Limit of decompressed modules; execFileSync requires one. */
const moduleBytesMax = 64 * 1024 * 1024;

type ModuleNames = Pick<ImageContents, 'modules' | 'optionalModules'>;

/** The version of the only kernel in an unpacked package, as printed by uname -r. @throws ConfigurationError without one */
export function kernelVersionIn(kernelRoot: string): string {
  const folder = join(kernelRoot, 'lib/modules');
  const versions = existsSync(folder) ? readdirSync(folder) : [];
  const [version] = versions;
  if (version === undefined || versions.length > 1) {
    throw new ConfigurationError('kernel', kernelRoot, 'a tree with lib/modules/VERSION, one version');
  }
  return version;
}

/** Creates the tables of all modules under `root`; `toolsRoot` has kmod. */
export function runDepmod(toolsRoot: string, root: string, version: string): void {
  const { file, arguments: parameters } = treeProgram(toolsRoot, kmodPath(toolsRoot), 'depmod');
  execFileSync(file, [...parameters, '-b', root, version], { stdio: ['ignore', 'ignore', 'pipe'] });
}

const kmodPath = (toolsRoot: string): string =>
  existsSync(join(toolsRoot, 'usr/bin/kmod')) ? 'usr/bin/kmod' : 'bin/kmod';

/**
 * Paths (within lib/modules/VERSION) of the modules named and of all they depend on. Names that are built into the kernel need
 * no module and are skipped.
 * @throws ConfigurationError for a module that the kernel lacks, unless it is optional
 */
export function moduleClosure(moduleFolder: string, { modules, optionalModules }: ModuleNames): string[] {
  const table = new Map<string, { path: string; needs: string[] }>();
  for (const line of readFileSync(join(moduleFolder, 'modules.dep'), 'utf8').split('\n')) {
    const [path, needs] = line.split(':');
    if (path && needs !== undefined)
      table.set(moduleName(path), { path, needs: needs.split(' ').filter(Boolean) });
  }
  const builtIn = new Set(
    readFileSync(join(moduleFolder, 'modules.builtin'), 'utf8').split('\n').map(moduleName),
  );
  const paths = new Set<string>();
  for (const name of [...modules, ...optionalModules]) {
    const entry = table.get(name);
    if (entry !== undefined) for (const path of [entry.path, ...entry.needs]) paths.add(path);
    else if (modules.includes(name) && !builtIn.has(name))
      throw new ConfigurationError('kernel module', name, `one in ${moduleFolder}`);
  }
  return [...paths].sort();
}

const moduleName = (path: string): string =>
  basename(path)
    .replace(/\.ko(\.\w+)?$/, '')
    .replaceAll('-', '_');

/**
 * Copies the selected modules, decompressed, to `stagingRoot` and creates their tables there; the resulting files are under
 * stagingRoot/lib/modules/VERSION.
 */
export function stageModules(
  toolsRoot: string,
  kernelRoot: string,
  stagingRoot: string,
  names: ModuleNames,
): void {
  const version = kernelVersionIn(kernelRoot);
  const from = join(kernelRoot, 'lib/modules', version);
  const to = join(stagingRoot, 'lib/modules', version);
  for (const path of moduleClosure(from, names)) {
    const target = join(to, path.replace(/\.xz$/, ''));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, moduleContent(toolsRoot, join(from, path)));
  }
  for (const table of ['modules.order', 'modules.builtin', 'modules.builtin.modinfo']) {
    writeFileSync(join(to, table), readFileSync(join(from, table)));
  }
  runDepmod(toolsRoot, stagingRoot, version);
}

function moduleContent(toolsRoot: string, path: string): Uint8Array {
  if (!path.endsWith('.xz')) return readFileSync(path);
  const { file, arguments: parameters } = treeProgram(toolsRoot, 'usr/bin/xz');
  return execFileSync(file, [...parameters, '-dc', path], { maxBuffer: moduleBytesMax });
}

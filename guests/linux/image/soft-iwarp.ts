/**
 * Linux's Soft-iWARP (siw), which Debian leaves out of its kernels: built from Debian's own sources of the kernel, against its headers, and
 * kept in the cache by the kernel's version. Nothing is installed and nothing outside of the cache and a temporary folder is written.
 *
 *     module-source kit: linux-source-6.1.tar.xz ─► siw/*.c ─► constants become parameters ─► make M=… ─► CACHE/modules/…/siw.ko
 *
 * Its settings of MPA are module parameters here, so that one module runs with and without CRCs and with both revisions: Linux has had no such
 * parameter since siw was accepted (6.1, drivers/infiniband/sw/siw/siw_main.c).
 */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { ConfigurationError } from '../../../base/index.ts';
import { isWhole, writeDigested } from '../digested-file.ts';
import { libraryFoldersOf } from '../packages/architecture.ts';
import { type CacheOptions, checkTools, ensureKits, identityOfKit } from '../packages/cache.ts';
import { type KernelName, moduleSourceKit } from '../packages/kits.ts';
import { makeTemporaryFolder } from '../temporary-folder.ts';
import { treeProgram } from '../tree-program.ts';

/** Constants of siw that become parameters of the same name, as /sys/module/siw/parameters has them. */
const softIwarpConstants = ['mpa_crc_required', 'mpa_crc_strict', 'peer_to_peer'] as const;
/** All of its parameters, by their types: the revision of MPA is a variable of siw already. */
const softIwarpParameters = [
  ...softIwarpConstants.map((name) => [name, 'bool'] as const),
  ['mpa_version', 'byte'],
] as const;

/** Folder of the driver within the sources, and the number of folders above its files. */
const driverFolder = 'drivers/infiniband/sw/siw';
const foldersAbove = 1 + driverFolder.split('/').length;

/** Raised when the module is built otherwise from the same sources. */
const formatVersion = 1;
/** Limit of make's output. */
const outputBytesMax = 2 ** 24;

const run = promisify(execFile);

/**
 * The module of a named kernel; builds it when it is not there whole.
 * @param toolsRoot the tools' tree, which has xz
 * @returns its file, named siw.ko
 * @throws ConfigurationError without a compiler, for what apt or make complains of, and for sources that have no such constants
 */
export async function ensureSoftIwarp(
  kernel: KernelName,
  kernelVersion: string,
  toolsRoot: string,
  cache: CacheOptions,
): Promise<string> {
  const kit = moduleSourceKit(kernel, kernelVersion);
  const inputs = [formatVersion, identityOfKit(kit), softIwarpParameters];
  const digest = createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 8);
  const folder = join(cache.folder, 'modules', `${kernelVersion}-${digest}`);
  const module = join(folder, 'siw.ko');
  if (isWhole(module)) return module;
  checkTools({ gcc: 'gcc', make: 'make', tar: 'tar' });
  const [sources] = await ensureKits([kit], cache);
  cache.progress.step(`building Soft-iWARP for Linux ${kernelVersion}`);
  mkdirSync(folder, { recursive: true });
  writeDigested(module, await build(sources!, kernelVersion, toolsRoot));
  cache.progress.done();
  return module;
}

/** Bytes of the built module. */
async function build(sources: string, kernelVersion: string, toolsRoot: string): Promise<Uint8Array> {
  const { path: folder, remove } = makeTemporaryFolder('hca-siw-');
  try {
    await unpackDriver(sources, toolsRoot, folder);
    for (const [file, change] of [
      ['siw.h', withoutConst],
      ['siw_main.c', (text: string) => `${withoutConst(text)}${parameterLines}`],
    ] as const) {
      const path = join(folder, file);
      writeFileSync(path, change(readFileSync(path, 'utf8')));
    }
    await make(sources, kernelVersion, folder);
    return readFileSync(join(folder, 'siw.ko'));
  } finally {
    remove();
  }
}

/** Unpacks the driver's files alone out of the kernel's sources. @throws ConfigurationError if the archive does not have them */
async function unpackDriver(sources: string, toolsRoot: string, folder: string): Promise<void> {
  const archive = sourceNamed(sources, '.tar.xz');
  const xz = treeProgram(toolsRoot, 'usr/bin/xz');
  const unpacker = spawn(xz.file, [...xz.arguments, '-dc', archive], { stdio: ['ignore', 'pipe', 'ignore'] });
  const within = `${basename(archive, '.tar.xz')}/${driverFolder}`;
  const tar = spawn('tar', ['-x', '-C', folder, `--strip-components=${foldersAbove}`, within], {
    stdio: [unpacker.stdout, 'ignore', 'ignore'],
  });
  const [status] = (await once(tar, 'close')) as [number | null];
  if (status !== 0) throw new ConfigurationError('kernel sources', archive, `an archive with ${within}`);
}

/** The entry of a kit's usr/src whose name ends so. @throws ConfigurationError without one */
function sourceNamed(sources: string, ending: string): string {
  const folder = join(sources, 'usr/src');
  const name = readdirSync(folder).find((one) => one.endsWith(ending));
  if (name === undefined) throw new ConfigurationError('kernel sources', folder, `a folder with *${ending}`);
  return join(folder, name);
}

/**
 * Builds with the headers' makefile by its own path: the one beside the configuration includes it by the path of an installed package.
 * objtool finds its libraries in the kit. @throws ConfigurationError with make's last line
 */
async function make(sources: string, kernelVersion: string, folder: string): Promise<void> {
  const makefile = join(sourceNamed(sources, '-common'), 'Makefile');
  const configured = join(sources, 'usr/src', `linux-headers-${kernelVersion}`);
  const libraries = libraryFoldersOf('amd64')
    .map((one) => join(sources, one))
    .join(':');
  // Without debugging information the module is a tenth as long.
  const variables = [`M=${folder}`, 'CC=gcc', 'CONFIG_RDMA_SIW=m', 'CONFIG_DEBUG_INFO='];
  try {
    await run('make', ['-C', configured, '-f', makefile, ...variables, 'modules'], {
      env: { ...process.env, LC_ALL: 'C', LD_LIBRARY_PATH: libraries },
      maxBuffer: outputBytesMax,
    });
  } catch (error) {
    const complaint =
      error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error);
    throw new ConfigurationError('make', complaint.split('\n').at(-1), `to build siw for ${kernelVersion}`);
  }
}

/** Makes the constants variables. @throws ConfigurationError for sources without one of them */
export function withoutConst(text: string): string {
  return softIwarpConstants.reduce((before, name) => {
    const after = before.replace(`const bool ${name};`, `bool ${name};`);
    if (after === before) throw new ConfigurationError('sources of siw', name, 'a constant of that name');
    return after;
  }, text);
}

const parameterLines = softIwarpParameters
  .map(([name, type]) => `module_param(${name}, ${type}, 0644);\n`)
  .join('');

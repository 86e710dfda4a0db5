/**
 * The cache that holds unpacked kits. A kit is complete exactly if its folder exists: it is assembled in a temporary folder
 * that gets the kit's name at the end. So an interruption leaves nothing half-done, and the next attempt continues with the
 * packages already fetched. An existing kit needs no network and no apt.
 *
 *     CACHE/apt/…                      apt's lists and fetched packages, until they are unpacked; checked before that
 *     CACHE/apt-i386/…                 the same for another architecture than amd64
 *     CACHE/kits/qemu-1f2e3d4c/        name and a digest of the request; packages.json names the versions
 *     CACHE/images/…                   initial file systems (../image/image-cache.ts)
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { ConfigurationError } from '../../../base/index.ts';
import { kernelVersionIn, runDepmod } from '../image/modules.ts';
import { Apt, type AptPackage } from './apt.ts';
import { debianArchive } from './apt-sources.ts';
import type { Architecture } from './architecture.ts';
import { type Kit, toolsKit } from './kits.ts';
import { takeLock } from './lock.ts';

/** Reports progress, one step at a time. `percent` is 0 to 100 of the step. */
export interface FetchProgress {
  step(title: string): void;
  update(percent: number): void;
  done(): void;
}

export interface CacheOptions {
  /** Folder of the cache; `defaultCacheFolder()` unless given. */
  readonly folder: string;
  /** Address of a Debian archive, instead of the one in apt's configuration. */
  readonly mirror: string | undefined;
  readonly progress: FetchProgress;
}

/** Raised when unpacking changes, so that kits unpacked differently are not used. */
const formatVersion = 1;

/** Programs of the machine needed for fetching, and their packages. */
const neededTools = {
  'apt-get': 'apt',
  'apt-cache': 'apt',
  'apt-config': 'apt',
  'dpkg-deb': 'dpkg',
  flock: 'util-linux',
} as const;

const run = promisify(execFile);

/** `$XDG_CACHE_HOME/hca-emulator`, else `~/.cache/hca-emulator`. */
export function defaultCacheFolder(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'hca-emulator');
}

/** The unpacked tree of each kit, in order; fetches missing ones. @throws ConfigurationError */
export async function ensureKits(kits: readonly Kit[], options: CacheOptions): Promise<string[]> {
  const missing = (): Kit[] => kits.filter((kit) => !existsSync(kitFolder(options.folder, kit)));
  if (missing().length > 0) {
    checkTools(neededTools);
    makeFolder(join(options.folder, 'kits'));
    await using _lock = await takeLock(join(options.folder, 'lock'), () =>
      options.progress.step('waiting for another process to fill the cache'),
    );
    // Another process may have fetched them meanwhile.
    await fetchKits(missing(), options);
  }
  return kits.map((kit) => kitFolder(options.folder, kit));
}

/** Names and versions of the packages in a kit's tree. */
export function packagesOfKit(folder: string): readonly AptPackage[] {
  return JSON.parse(readFileSync(join(folder, 'packages.json'), 'utf8')) as AptPackage[];
}

/** Present or future path of a kit. */
export function kitFolder(cacheFolder: string, kit: Kit): string {
  const inputs = { formatVersion, kit: identityOfKit(kit) };
  const digest = createHash('sha256').update(JSON.stringify(inputs)).digest('hex');
  return join(cacheFolder, 'kits', `${kit.name}-${digest.slice(0, 8)}`);
}

/** The parts of a kit that name its folder. Kits of amd64 existed before other architectures, and keep their names. */
export function identityOfKit(kit: Kit): Kit | Omit<Kit, 'architecture'> {
  const { architecture, ...others } = kit;
  return architecture === 'amd64' ? others : kit;
}

async function fetchKits(kits: readonly Kit[], options: CacheOptions): Promise<void> {
  if (kits.length === 0) return;
  try {
    // amd64 first: creating the tables of any kernel's modules needs a program of its tools.
    for (const architecture of ['amd64', 'i386'] as const) {
      await fetchKitsOf(
        architecture,
        kits.filter((kit) => kit.architecture === architecture),
        options,
      );
    }
  } finally {
    options.progress.done();
  }
}

/** Fetches kits that are all of one architecture. */
async function fetchKitsOf(
  architecture: Architecture,
  kits: readonly Kit[],
  { folder, mirror, progress }: CacheOptions,
): Promise<void> {
  if (kits.length === 0) return;
  const state = architecture === 'amd64' ? 'apt' : `apt-${architecture}`;
  const apt = new Apt(join(folder, state), debianArchive(undefined, mirror), architecture);
  progress.step("Debian's lists of packages");
  const suites = [...new Set(kits.flatMap((kit) => kit.suites))];
  await apt.update(suites, (percent) => progress.update(percent));
  // Tools first, for the same reason.
  for (const kit of kits.toSorted((a, b) => Number(a.isKernel) - Number(b.isKernel))) {
    await fetchKit(apt, kit, folder, progress);
  }
}

async function fetchKit(apt: Apt, kit: Kit, cacheFolder: string, progress: FetchProgress): Promise<void> {
  progress.step(`fetching ${kit.title}`);
  const packages = apt.resolve(kit);
  if (apt.removeDamaged(packages).length > 0)
    progress.step(`fetching ${kit.title}, of which a part was damaged`);
  await apt.download(kit, (percent) => progress.update(percent));
  const [damaged] = apt.removeDamaged(packages);
  if (damaged !== undefined)
    throw new ConfigurationError(
      'package',
      damaged.name,
      'what the lists of the archive say (SHA-256 differs)',
    );
  progress.step(`unpacking ${kit.title}`);
  const folder = kitFolder(cacheFolder, kit);
  const temporary = `${folder}.unpacking`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary);
  for (const [index, one] of packages.entries()) {
    await unpack(apt.fileOf(one), temporary);
    progress.update((100 * (index + 1)) / packages.length);
  }
  if (kit.isKernel) runDepmod(kitFolder(cacheFolder, toolsKit), temporary, kernelVersionIn(temporary));
  writeFileSync(join(temporary, 'packages.json'), JSON.stringify(packages, null, 1));
  renameSync(temporary, folder);
  for (const one of packages) rmSync(apt.fileOf(one), { force: true });
}

/** @throws ConfigurationError with dpkg-deb's complaint: a full disk, a damaged archive */
async function unpack(archive: string, folder: string): Promise<void> {
  try {
    await run('dpkg-deb', ['-x', archive, folder]);
  } catch (error) {
    const complaint =
      error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error);
    throw new ConfigurationError('dpkg-deb', complaint.split('\n')[0], `to unpack ${archive}`);
  }
}

/** @throws ConfigurationError if the cache cannot be created */
function makeFolder(folder: string): void {
  try {
    makeEach(resolve(folder));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new ConfigurationError('cache', folder, `a folder that can be made (${code})`);
  }
}

/** One after another: for a whole path, Node tries indefinitely if it cannot be created, as below /proc. */
function makeEach(folder: string): void {
  if (existsSync(folder)) return;
  makeEach(dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!existsSync(folder)) throw error;
  }
}

/**
 * @param tools programs of the machine, and the package that has each
 * @throws ConfigurationError naming the first tool that is missing and what to install
 */
export function checkTools(tools: Readonly<Record<string, string>>): void {
  for (const [tool, debianPackage] of Object.entries(tools)) {
    if (!isInPath(tool)) {
      throw new ConfigurationError('tool', tool, `it to be installed (Debian package ${debianPackage})`);
    }
  }
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new ConfigurationError('machine', `${process.platform} ${process.arch}`, 'linux x64');
  }
}

function isInPath(tool: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, tool), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * The kernel that a guest boots, as a tree of files: a named one, or the user's own.
 *
 *     a name                     packages of Debian, fetched into the cache
 *     a folder                   with boot/vmlinuz-VERSION and lib/modules/VERSION, as `make install` and
 *                                `make modules_install` or an unpacked package leave it, its tables made by depmod
 *     a file *.deb               a kernel package, unpacked into the cache
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { ConfigurationError } from '../../base/index.ts';
import { kernelVersionIn, runDepmod } from './image/modules.ts';
import { type CacheOptions, ensureKits } from './packages/cache.ts';
import { type Kit, toolsKit } from './packages/kits.ts';

export interface KernelTree {
  readonly root: string;
  /** As `uname -r` prints it. */
  readonly version: string;
  /** The file boot/vmlinuz-VERSION. */
  readonly image: string;
}

/**
 * The chosen kernel, this machine's tools, and the trees of `kits`; fetches missing parts.
 * @param named kernels by the names that `choice` may have
 * @throws ConfigurationError for a kernel that cannot be used, or with apt's complaint
 */
export async function kernelWithKits(
  choice: string,
  named: Readonly<Record<string, Kit>>,
  kits: readonly Kit[],
  cache: CacheOptions,
): Promise<{ readonly kernel: KernelTree; readonly toolsRoot: string; readonly roots: readonly string[] }> {
  const kernelKit = Object.hasOwn(named, choice) ? named[choice] : undefined;
  if (kernelKit === undefined) checkOwnKernel(choice, Object.keys(named));
  const all = [toolsKit, ...kits, ...(kernelKit === undefined ? [] : [kernelKit])];
  const [toolsRoot, ...roots] = await ensureKits(all, cache);
  const root =
    kernelKit === undefined ? ownKernelRoot(resolve(choice), toolsRoot!, cache.folder) : roots.pop()!;
  const version = kernelVersionIn(root);
  const image = join(root, 'boot', `vmlinuz-${version}`);
  if (!existsSync(image)) throw new ConfigurationError('kernel', root, `a tree with boot/${basename(image)}`);
  return { kernel: { root, version, image }, toolsRoot: toolsRoot!, roots };
}

function checkOwnKernel(path: string, names: readonly string[]): void {
  const isThere = existsSync(path);
  if (isThere && (statSync(path).isDirectory() || path.endsWith('.deb'))) return;
  throw new ConfigurationError(
    'kernel',
    path,
    `${names.join(', ')}, a folder of an installed kernel, or a .deb`,
  );
}

function ownKernelRoot(path: string, toolsRoot: string, cacheFolder: string): string {
  if (statSync(path).isDirectory()) return path;
  const digest = createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 12);
  const folder = join(cacheFolder, 'kits', `kernel-${digest}`);
  if (!existsSync(folder)) {
    const temporary = `${folder}.${process.pid}`;
    mkdirSync(temporary, { recursive: true });
    try {
      execFileSync('dpkg-deb', ['-x', path, temporary], { stdio: ['ignore', 'ignore', 'pipe'] });
    } catch {
      rmSync(temporary, { recursive: true });
      throw new ConfigurationError('kernel', path, 'a Debian package that dpkg-deb can unpack');
    }
    runDepmod(toolsRoot, temporary, kernelVersionIn(temporary));
    writeFileSync(
      join(temporary, 'packages.json'),
      JSON.stringify([{ name: basename(path), version: digest }]),
    );
    renameSync(temporary, folder);
  }
  return folder;
}

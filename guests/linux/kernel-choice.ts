/**
 * The kernel that a guest boots: a named one, or the user's own.
 *
 *     debian, backports          packages of Debian, fetched into the cache
 *     a folder                   with boot/vmlinuz-VERSION and lib/modules/VERSION, as `make install` and
 *                                `make modules_install` or an unpacked package leave it, its tables made by depmod
 *     a file *.deb               a kernel package, unpacked into the cache
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { ConfigurationError } from '../../base/index.ts';
import { ensureImage } from './image/image-cache.ts';
import { ensureKernelImage } from './image/kernel-image.ts';
import { kernelVersionIn, runDepmod } from './image/modules.ts';
import { ensureSoftIwarp } from './image/soft-iwarp.ts';
import { type CacheOptions, ensureKits } from './packages/cache.ts';
import { type KernelName, type Kit, kernelKits, kernelNames, qemuKit, toolsKit } from './packages/kits.ts';

/** Which kernel, and what is built for it. */
export interface KernelChoice {
  /** A name of `kernelNames`, a folder or a package. */
  readonly kernel: string;
  /** Whether guests have Linux's Soft-iWARP (siw), which loads with the drivers; left out: no. */
  readonly hasSoftIwarp?: boolean | undefined;
}

/** Everything needed to start a guest. */
export interface GuestFiles {
  readonly qemuRoot: string;
  readonly toolsRoot: string;
  readonly kernelRoot: string;
  /** The file that QEMU starts, and the kernel's version. */
  readonly kernel: string;
  readonly kernelVersion: string;
  /** The initial file system for that kernel. */
  readonly initramfs: string;
  /** Files of modules that Debian leaves out, which were built for that kernel. */
  readonly builtModules: readonly string[];
}

/** Fetches missing parts. @throws ConfigurationError for a kernel that cannot be used, or with apt's complaint */
export async function guestFiles(
  { kernel: choice, hasSoftIwarp = false }: KernelChoice,
  cache: CacheOptions,
): Promise<GuestFiles> {
  const named = kernelNames.find((name) => name === choice);
  if (named === undefined) checkOwnKernel(choice);
  if (named === undefined && hasSoftIwarp)
    throw new ConfigurationError('kernel', choice, `${kernelNames.join(', ')} with Soft-iWARP`);
  const kits: Kit[] = [
    qemuKit,
    toolsKit,
    ...(named === undefined ? [] : [kernelKits[named satisfies KernelName]]),
  ];
  const [qemuRoot, toolsRoot, kitRoot] = await ensureKits(kits, cache);
  const kernelRoot = kitRoot ?? ownKernelRoot(resolve(choice), toolsRoot!, cache.folder);
  const kernelVersion = kernelVersionIn(kernelRoot);
  const packaged = join(kernelRoot, 'boot', `vmlinuz-${kernelVersion}`);
  if (!existsSync(packaged))
    throw new ConfigurationError('kernel', kernelRoot, `a tree with boot/${basename(packaged)}`);
  const kernel = ensureKernelImage(cache.folder, toolsRoot!, packaged);
  const initramfs = ensureImage(cache.folder, toolsRoot!, kernelRoot);
  const builtModules =
    named !== undefined && hasSoftIwarp
      ? [await ensureSoftIwarp(named, kernelVersion, toolsRoot!, cache)]
      : [];
  return {
    ...{ qemuRoot: qemuRoot!, toolsRoot: toolsRoot!, kernelRoot, kernel, kernelVersion, initramfs },
    builtModules,
  };
}

function checkOwnKernel(path: string): void {
  const isThere = existsSync(path);
  if (isThere && (statSync(path).isDirectory() || path.endsWith('.deb'))) return;
  throw new ConfigurationError(
    'kernel',
    path,
    `${kernelNames.join(', ')}, a folder of an installed kernel, or a .deb`,
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

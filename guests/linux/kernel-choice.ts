/** The files of a guest on QEMU: QEMU, the kernel of the user's choice (see kernel-tree.ts), and an initial file system for it. */
import { ConfigurationError } from '../../base/index.ts';
import { contentsOf } from './image/contents.ts';
import { ensureImage } from './image/image-cache.ts';
import { ensureKernelImage } from './image/kernel-image.ts';
import { ensureSoftIwarp } from './image/soft-iwarp.ts';
import { kernelWithKits } from './kernel-tree.ts';
import type { CacheOptions } from './packages/cache.ts';
import { kernelKits, kernelNames, qemuKit } from './packages/kits.ts';

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
  if (named === undefined && hasSoftIwarp)
    throw new ConfigurationError('kernel', choice, `${kernelNames.join(', ')} with Soft-iWARP`);
  const { kernel, toolsRoot, roots } = await kernelWithKits(choice, kernelKits, [qemuKit], cache);
  const imageRoots = { toolsRoot, machineToolsRoot: toolsRoot, kernelRoot: kernel.root };
  return {
    qemuRoot: roots[0]!,
    toolsRoot,
    kernelRoot: kernel.root,
    kernel: ensureKernelImage(cache.folder, toolsRoot, kernel.image),
    kernelVersion: kernel.version,
    initramfs: ensureImage(cache.folder, imageRoots, contentsOf('amd64', 'all')),
    builtModules:
      named !== undefined && hasSoftIwarp
        ? [await ensureSoftIwarp(named, kernel.version, toolsRoot, cache)]
        : [],
  };
}

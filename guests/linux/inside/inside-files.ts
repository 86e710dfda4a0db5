/**
 * The files of a guest that runs in this process on a PC of 32 bits: a kernel of the user's choice (see kernel-tree.ts), and an
 * initial file system for it. The software is Debian's for i386; only its packing uses programs of this machine.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError } from '../../../base/index.ts';
import { contentsOf, type ImageExtent } from '../image/contents.ts';
import { elfBits } from '../image/elf.ts';
import { ensureImage } from '../image/image-cache.ts';
import { ensureKernelElf } from '../image/kernel-image.ts';
import { kernelWithKits } from '../kernel-tree.ts';
import { type CacheOptions, kitFolder } from '../packages/cache.ts';
import { insideKernelKits, insideToolsKit, toolsKit } from '../packages/kits.ts';

/** Which kernel, and how much its initial file system holds. */
export interface InsideChoice {
  /** A name of `insideKernelNames`, a folder or a package. */
  readonly kernel: string;
  /** Left out: 'adapter'. */
  readonly extent?: ImageExtent | undefined;
}

/** Everything needed to start a guest in this process. */
export interface InsideFiles {
  readonly toolsRoot: string;
  readonly kernelRoot: string;
  readonly kernelVersion: string;
  /** The compressed kernel as packaged. */
  readonly bzImage: string;
  /**
   * The kernel that it contains: an ELF file of 32 bits, whose segments are loaded at their physical addresses and whose entry
   * point takes the boot parameters in ESI. Undefined if it cannot be decompressed here.
   */
  readonly vmlinux: string | undefined;
  /** The initial file system for that kernel, not compressed. */
  readonly initramfs: string;
  /** Addresses of the kernel's symbols; undefined without one, as in Debian's packages. */
  readonly systemMap: string | undefined;
  /** Modules built for this kernel: none so far. */
  readonly builtModules: readonly string[];
}

/** Whether {@link insideFiles} would fetch nothing. */
export const areInsideKitsThere = ({ kernel }: InsideChoice, { folder }: CacheOptions): boolean => {
  const kernelKit = Object.hasOwn(insideKernelKits, kernel)
    ? insideKernelKits[kernel as keyof typeof insideKernelKits]
    : undefined;
  const kits = [toolsKit, insideToolsKit, ...(kernelKit === undefined ? [] : [kernelKit])];
  return kits.every((kit) => existsSync(kitFolder(folder, kit)));
};

/** Debian's packages have a file of one line, which refers to another package. */
const systemMapBytesMin = 1024;

/** Fetches missing parts. @throws ConfigurationError for a kernel that cannot be used, or with apt's complaint */
export async function insideFiles(
  { kernel: choice, extent = 'adapter' }: InsideChoice,
  cache: CacheOptions,
): Promise<InsideFiles> {
  const { kernel, toolsRoot, roots } = await kernelWithKits(
    choice,
    insideKernelKits,
    [insideToolsKit],
    cache,
  );
  const vmlinux = ensureKernelElf(cache.folder, toolsRoot, kernel.image);
  if (vmlinux !== undefined && elfBits(readFileSync(vmlinux)) !== 32)
    throw new ConfigurationError('kernel', kernel.image, 'one of 32 bits (x86)');
  const systemMap = join(kernel.root, 'boot', `System.map-${kernel.version}`);
  const hasSystemMap = existsSync(systemMap) && statSync(systemMap).size >= systemMapBytesMin;
  const imageRoots = { toolsRoot: roots[0]!, machineToolsRoot: toolsRoot, kernelRoot: kernel.root };
  return {
    toolsRoot: roots[0]!,
    kernelRoot: kernel.root,
    kernelVersion: kernel.version,
    bzImage: kernel.image,
    vmlinux,
    initramfs: ensureImage(cache.folder, imageRoots, contentsOf('i386', extent)),
    systemMap: hasSystemMap ? systemMap : undefined,
    builtModules: [],
  };
}

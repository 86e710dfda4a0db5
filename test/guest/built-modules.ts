/**
 * Kernel modules of 32 bits, built from the C files beside this one for the kernel of a guest in this process. The compiler, its tools and
 * the kernel's headers come from Debian's packages, so that a machine needs nothing but a shell.
 *
 *     headers (i386) ─┐
 *                     ├─► folder of links ─► make M=… ARCH=i386 ─► CACHE/modules/KERNEL-DIGEST/NAME.ko
 *     gcc, make, kbuild (amd64; its modpost knows 32 bits) ─┘
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isWhole, writeDigested } from '../../guests/linux/digested-file.ts';
import { insideFiles, makeTemporaryFolder } from '../../guests/linux/index.ts';
import { libraryFoldersOf } from '../../guests/linux/packages/architecture.ts';
import { ensureKits, identityOfKit } from '../../guests/linux/packages/cache.ts';
import type { Kit } from '../../guests/linux/packages/kits.ts';
import { cache } from './inside-suite.ts';

const run = promisify(execFile);
const outputBytesMax = 2 ** 24;

/** Packages that are not fetched: those that only an installation needs, and the C library, of which this machine has one. */
const standIns = [
  ...['adduser', 'debconf', 'dpkg', 'perl', 'perl-base', 'tar', 'pahole', 'libc6', 'libc-bin', 'libc6-dev'],
  ...['libgcc-s1', 'libstdc++6', 'zlib1g', 'libcrypt1', 'install-info'],
];

const compilerKit: Kit = {
  name: 'module-compiler',
  title: 'gcc, make and kbuild',
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: ['gcc-12', 'make', 'linux-kbuild-6.1'],
  standIns,
  isKernel: false,
};

const headersKit = (version: string): Kit => ({
  name: `module-headers-${version}`,
  title: `headers of Linux ${version}`,
  architecture: 'i386',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: [`linux-headers-${version}`],
  standIns: [...standIns, 'linux-compiler-gcc-12-x86', 'linux-kbuild-6.1', 'gcc-12'],
  isKernel: false,
});

/**
 * Builds a module of one C file for Debian's kernel of 32 bits, once for its contents.
 * @param defines macros of the preprocessor, which choose between variants of the file
 * @returns path of the module
 */
export async function builtModule(
  sourceFile: string,
  name: string,
  defines: readonly string[] = [],
): Promise<string> {
  const { kernelVersion } = await insideFiles({ kernel: 'debian' }, cache);
  const kits = [compilerKit, headersKit(kernelVersion)];
  const source = readFileSync(sourceFile);
  const digest = createHash('sha256')
    .update(JSON.stringify([kits.map(identityOfKit), source.toString(), name, defines]))
    .digest('hex');
  const folder = join(cache.folder, 'modules', `${kernelVersion}-${digest.slice(0, 8)}`);
  const module = join(folder, `${name}.ko`);
  if (isWhole(module)) return module;
  const [compiler, headers] = await ensureKits(kits, cache);
  const { path: temporary, remove } = makeTemporaryFolder('hca-module-');
  try {
    const usrSrc = join(headers!, 'usr/src');
    const common = join(usrSrc, readdirSync(usrSrc).find((each) => each.endsWith('-common'))!);
    const configured = join(usrSrc, `linux-headers-${kernelVersion}`);
    const folders = {
      configured: linkedHeaders(join(temporary, 'configured'), configured, compiler!),
      common: linkedHeaders(join(temporary, 'common'), common, compiler!),
    };
    const sources = join(temporary, name);
    mkdirSync(sources);
    copyFileSync(sourceFile, join(sources, `${name}.c`));
    writeFileSync(
      join(sources, 'Makefile'),
      `obj-m := ${name}.o\nccflags-y := ${defines.map((each) => `-D${each}`).join(' ')}\n`,
    );
    await make(compiler!, folders, sources);
    mkdirSync(folder, { recursive: true });
    writeDigested(module, readFileSync(join(sources, `${name}.ko`)));
  } finally {
    remove();
  }
  return module;
}

/** A folder of headers of 32 bits with scripts that run here. @returns its path */
function linkedHeaders(folder: string, headers: string, compiler: string): string {
  mkdirSync(folder);
  for (const entry of readdirSync(headers))
    if (entry !== 'scripts' && entry !== 'tools') symlinkSync(join(headers, entry), join(folder, entry));
  for (const part of ['scripts', 'tools'])
    symlinkSync(join(compiler, 'usr/lib/linux-kbuild-6.1', part), join(folder, part));
  return folder;
}

async function make(
  compiler: string,
  { configured, common }: { readonly configured: string; readonly common: string },
  sources: string,
): Promise<void> {
  const programs = join(compiler, 'usr/bin');
  const libraries = libraryFoldersOf('amd64')
    .map((each) => join(compiler, each))
    .join(':');
  const prefix = join(programs, 'x86_64-linux-gnu-');
  const variables = [
    ...[`M=${sources}`, 'ARCH=i386', `CROSS_COMPILE=${prefix}`, `CC=${prefix}gcc-12`],
    ...['CONFIG_DEBUG_INFO=', 'CONFIG_DEBUG_INFO_BTF_MODULES='],
  ];
  const arguments_ = ['-C', configured, '-f', join(common, 'Makefile'), ...variables, 'modules'];
  await run(join(programs, 'make'), arguments_, {
    env: { PATH: `${programs}:${process.env['PATH']}`, LC_ALL: 'C', LD_LIBRARY_PATH: libraries },
    maxBuffer: outputBytesMax,
  });
}

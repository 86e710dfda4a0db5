/** A small C compiler and the headers of libibverbs in a guest, from a separate kit: programs are built where they run. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureKits } from '../../guests/linux/packages/cache.ts';
import type { Kit } from '../../guests/linux/packages/kits.ts';
import { cache } from './suite.ts';

const compilerKit: Kit = {
  name: 'c-compiler',
  title: 'tcc and the headers of libibverbs',
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: ['tcc', 'libc6-dev', 'libibverbs-dev'],
  standIns: [
    ...[
      'adduser',
      'base-passwd',
      'debconf',
      'dpkg',
      'init-system-helpers',
      'login.defs',
      'lsb-base',
      'passwd',
    ],
    ...['perl', 'perl-base', 'sysvinit-utils', 'tar', 'udev', 'usrmerge', 'libcap2-bin'],
  ],
  isKernel: false,
};

const libraries = 'usr/lib/x86_64-linux-gnu';
/** Files of libc6-dev and libibverbs-dev needed by a dynamically linked program. */
const linked = ['crt1.o', 'crti.o', 'crtn.o', 'libc.so', 'libc_nonshared.a', 'libibverbs.so', 'tcc'];

/** Libraries of the compiler that nothing else in the guest needs. */
const loaded = ['libpthread.so.0', 'libdl.so.2', 'libm.so.6'];

/** @returns the files to copy into a guest so that `tcc -libverbs` builds `name` of examples/c there, at /root */
export async function compilerWith(name: string): Promise<readonly string[]> {
  const [tree] = await ensureKits([compilerKit], cache);
  const place = (path: string): string => `${join(tree!, path)}:/${path}`;
  const source = fileURLToPath(new URL(`../../examples/c/${name}`, import.meta.url));
  return [
    source,
    place('usr/bin/tcc'),
    ...loaded.map((file) => `${join(tree!, 'lib/x86_64-linux-gnu', file)}:/${libraries}/${file}`),
    place('usr/include'),
    ...linked.map((file) => place(`${libraries}/${file}`)),
  ];
}

/** Debian's Python with pyverbs in a guest, from a separate kit. */
import { join } from 'node:path';
import { ensureKits } from '../../guests/linux/packages/cache.ts';
import type { Kit } from '../../guests/linux/packages/kits.ts';
import { cache } from './suite.ts';

const pyverbsKit: Kit = {
  name: 'pyverbs',
  title: 'Python and pyverbs',
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: ['python3-minimal', 'python3-pyverbs'],
  standIns: [
    ...[
      'debconf',
      'dpkg',
      'ucf',
      'adduser',
      'passwd',
      'base-passwd',
      'login.defs',
      'perl',
      'perl-base',
      'tar',
    ],
    ...['init-system-helpers', 'lsb-base', 'sysvinit-utils', 'sensible-utils', 'systemd', 'udev', 'usrmerge'],
    ...['media-types', 'libpam-modules', 'libpam0g'],
  ],
  isKernel: false,
};

const libraries = 'lib/x86_64-linux-gnu';

/** @returns the folder of the kit, and the files to copy into a guest so that `python3` runs there */
export async function pythonTree(): Promise<{ readonly tree: string; readonly copies: readonly string[] }> {
  const [tree] = await ensureKits([pyverbsKit], cache);
  const place = (path: string, to = `/${path}`): string => `${join(tree!, path)}:${to}`;
  return {
    tree: tree!,
    copies: [
      place('usr/bin/python3.11', '/usr/bin/python3'),
      place('usr/lib/python3.11'),
      place('usr/lib/python3/dist-packages'),
      place(libraries, `/usr/${libraries}`),
      place(`usr/${libraries}`),
    ],
  };
}

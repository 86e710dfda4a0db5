/** tshark from Debian's packages, unpacked into the cache of guests/linux and not installed. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheFolder, ensureKits } from '../../guests/linux/packages/cache.ts';
import type { Kit } from '../../guests/linux/packages/kits.ts';
import { silentProgress } from '../../guests/linux/progress.ts';
import { treeProgram } from '../../guests/linux/tree-program.ts';

const tsharkKit: Kit = {
  name: 'tshark',
  title: 'tshark',
  architecture: 'amd64',
  suites: ['bookworm'],
  preferredSuite: undefined,
  packages: ['tshark'],
  standIns: [
    ...['debconf', 'dpkg', 'ucf', 'adduser', 'perl', 'perl-base', 'init-system-helpers', 'lsb-base'],
    ...['sysvinit-utils', 'sensible-utils', 'systemd', 'udev'],
  ],
  isKernel: false,
};

/** Folder of the unpacked tshark; fetches missing parts. @throws ConfigurationError if it is unavailable */
export async function tsharkTree(): Promise<string> {
  const cache = { folder: defaultCacheFolder(), mirror: undefined, progress: silentProgress };
  const [folder] = await ensureKits([tsharkKit], cache);
  return folder!;
}

const run = promisify(execFile);

/** Protocols that tshark guesses in any payload; ours is random. */
const guesses = ['rpcordma', 'smb_direct', 'iser', 'nvme-rdma', 'infiniband_sdp', 'lnet', 'rds'];

/**
 * tshark's output for a capture: for each frame the values of these fields, with commas between several occurrences; with
 * preferences in the form of its option -o.
 * @throws Error with tshark's complaint
 */
export async function fieldsOf(
  tree: string,
  file: string,
  fields: readonly string[],
  preferences: readonly string[] = [],
): Promise<string[][]> {
  const asked = fields.flatMap((field) => ['-e', field]);
  const preferred = preferences.flatMap((preference) => ['-o', preference]);
  const output = await outputOf(tree, file, [
    ...preferred,
    ...['-T', 'fields', '-E', 'separator=/t'],
    ...asked,
  ]);
  return output
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\t'));
}

/**
 * tshark's decode of one protocol in a capture, as text. @throws Error with tshark's error message
 */
export const wordsOf = (tree: string, file: string, protocol: string): Promise<string> =>
  outputOf(tree, file, ['-O', protocol, '-Y', protocol]);

async function outputOf(tree: string, file: string, options: readonly string[]): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'hca-tshark-'));
  const { file: loader, arguments: before } = treeProgram(tree, 'usr/bin/tshark');
  const disabled = guesses.flatMap((name) => ['--disable-protocol', name]);
  try {
    const { stdout } = await run(loader, [...before, '-n', '-r', file, ...disabled, ...options], {
      env: {
        HOME: home,
        WIRESHARK_DATA_DIR: join(tree, 'usr/share/wireshark'),
        WIRESHARK_PLUGIN_DIR: home,
        WIRESHARK_EXTCAP_DIR: home,
      },
      maxBuffer: 2 ** 28,
    });
    return stdout;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

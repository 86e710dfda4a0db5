/**
 * Command lines by which a user runs guests without `hca guest`: QEMU from the cache, with all options that it passes to QEMU,
 * at permanent sockets. Each console is the terminal in which its line is entered, with a root shell.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type GuestChoice, guestOptionsOf } from './guest-options.ts';
import { shellParameter } from './image/init-scripts.ts';
import { guestFiles } from './kernel-choice.ts';
import { withOwnFiles } from './own-image.ts';
import type { CacheOptions } from './packages/cache.ts';
import { qemuCommandLine } from './qemu.ts';

export interface ByHand {
  /** Socket for `hca serve --socket`. */
  readonly socket: string;
  /** QEMU command lines for a shell, one for each guest. */
  readonly qemu: readonly string[];
}

/** Fetches missing parts. @throws ConfigurationError for a kernel or files that are unavailable */
export async function guestsByHand(choice: GuestChoice, cache: CacheOptions): Promise<ByHand> {
  const folder = join(cache.folder, 'by-hand');
  mkdirSync(folder, { recursive: true });
  const stockFiles = await guestFiles(choice, cache);
  const files = withOwnFiles(stockFiles, choice.ownFiles, choice.memoryMib, folder);
  const socket = join(folder, 'hca');
  const sockets = choice.hcas === 1 ? [socket] : [`${socket}.0`, `${socket}.1`];
  const each = guestOptionsOf(choice, files, sockets, folder, [shellParameter]);
  return {
    socket,
    qemu: each.map((options) => {
      const { file, arguments: words } = qemuCommandLine(options);
      return [file, ...words].map(quoted).join(' ');
    }),
  };
}

/** A word quoted for a POSIX shell. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

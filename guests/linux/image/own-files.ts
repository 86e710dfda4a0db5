/**
 * A user's own files in a guest: an archive that follows the kept image, which is unchanged.
 *
 *     SOURCE          a file or a folder with all its contents, at /root/NAME
 *     SOURCE:PLACE    at that absolute path
 *     FILE.ko         as a module: in the kernel's `updates`, where modprobe prefers it to a stock one of the same name
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { ConfigurationError } from '../../../base/index.ts';
import { cpioArchive, type TreeEntry } from './cpio.ts';

export interface OwnFiles {
  /** Each `SOURCE` or `SOURCE:PLACE`. */
  readonly copies: readonly string[];
  /** Files of kernel modules. */
  readonly modules: readonly string[];
}

export const noOwnFiles: OwnFiles = { copies: [], modules: [] };

/** Folders that are links in the image: files added below them belong below /usr. */
const mergedFolders: ReadonlySet<string> = new Set(['bin', 'sbin', 'lib', 'lib64']);
/** Share of memory available for the in-memory tree; the rest is for programs. */
const memoryShare = 0.5;

/**
 * The archive, empty without such files.
 * @param kernelVersion as `uname -r` has it
 * @param memoryMib of the guest, which keeps its files in memory
 * @throws ConfigurationError for a source that is not there or is no file, folder or link, a place that is no absolute path, a
 *   module without `.ko`, and more than half of the guest's memory
 */
export function ownFilesArchive(
  { copies, modules }: OwnFiles,
  kernelVersion: string,
  memoryMib: number,
): Uint8Array {
  const tree = new Map<string, TreeEntry>();
  for (const copy of copies) {
    const { source, place } = splitCopy(copy);
    addTree(tree, '--copy', source, place);
  }
  for (const module of modules) {
    if (!module.endsWith('.ko')) throw new ConfigurationError('--module', module, 'a file NAME.ko');
    addTree(tree, '--module', module, `usr/lib/modules/${kernelVersion}/updates/${basename(module)}`);
  }
  if (tree.size === 0) return new Uint8Array(0);
  const bytes = [...tree.values()].reduce(
    (sum, one) => sum + (one.kind === 'file' ? one.content.length : 0),
    0,
  );
  const bytesMax = memoryMib * 2 ** 20 * memoryShare;
  if (bytes > bytesMax)
    throw new ConfigurationError('--copy', `${bytes} bytes`, `at most ${bytesMax}, half of --memory`);
  // A parent folder of an entry gets the usual mode.
  if ([...tree.keys()].some((path) => path.startsWith('tmp/')))
    tree.set('tmp', { kind: 'directory', mode: 0o1777 });
  return cpioArchive(tree);
}

/** The name by which modprobe finds a module. */
export const moduleNameOf = (file: string): string => basename(file, '.ko').replaceAll('-', '_');

function splitCopy(copy: string): { source: string; place: string } {
  const at = statsOf(copy) === undefined ? copy.lastIndexOf(':') : -1;
  const source = at === -1 ? copy : copy.slice(0, at);
  const place = at === -1 ? `/root/${basename(resolve(source))}` : copy.slice(at + 1);
  if (!place.startsWith('/') || place.endsWith('/'))
    throw new ConfigurationError('--copy', copy, 'SOURCE or SOURCE:PLACE, the place an absolute path');
  const [first, ...rest] = place.slice(1).split('/');
  return { source, place: [...(mergedFolders.has(first!) ? ['usr'] : []), first!, ...rest].join('/') };
}

function statsOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** A link named directly is followed; those within a folder remain links. */
function addTree(tree: Map<string, TreeEntry>, option: string, source: string, place: string): void {
  const found = statSync(source, { throwIfNoEntry: false });
  if (found === undefined) throw new ConfigurationError(option, source, 'a file or folder that is there');
  const mode = found.mode & 0o7777;
  if (found.isFile()) {
    tree.set(place, { kind: 'file', mode, content: readFileSync(source) });
    return;
  }
  if (!found.isDirectory()) throw new ConfigurationError(option, source, 'a file or a folder');
  tree.set(place, { kind: 'directory', mode });
  for (const { name } of readdirSync(source, { withFileTypes: true }).sort(byName)) {
    const path = join(source, name);
    if (statsOf(path)?.isSymbolicLink())
      tree.set(`${place}/${name}`, { kind: 'link', target: readlinkSync(path) });
    else addTree(tree, option, path, `${place}/${name}`);
  }
}

const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name < b.name ? -1 : 1;

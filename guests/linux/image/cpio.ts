/**
 * Writes the archive Linux unpacks as its initial file system: cpio in the "newc" format.
 *
 * Every entry is a header of 110 ASCII characters, its name with a final NUL, and its content; header plus name and content are
 * each padded to four bytes, and an entry named TRAILER!!! ends the archive. The kernel accepts several consecutive archives,
 * and later entries win, so files of one run can follow a kept image.
 *
 * Everything belongs to root and carries no time, so the same tree gives the same bytes.
 * Source: Linux Documentation/driver-api/early-userspace/buffer-format.rst; cpio(5).
 */
import { ConfigurationError } from '../../../base/index.ts';

/** Contents of one path of the tree. Modes contain permission bits only. */
export type TreeEntry =
  | { readonly kind: 'directory'; readonly mode: number }
  | { readonly kind: 'file'; readonly mode: number; readonly content: Uint8Array }
  | { readonly kind: 'link'; readonly target: string }
  | {
      readonly kind: 'character-device';
      readonly mode: number;
      readonly major: number;
      readonly minor: number;
    };

const magic = '070701';
const headerBytes = 110;
const trailerName = 'TRAILER!!!';
const alignmentBytes = 4;

/** File types of stat(2), which newc keeps in the mode's upper bits. */
const typeBits = {
  directory: 0o040000,
  file: 0o100000,
  link: 0o120000,
  'character-device': 0o020000,
} as const;

/** The longest name the kernel's unpacker accepts with its NUL (PATH_MAX). */
const nameBytesMax = 4096;

/**
 * The archive holding `tree`, whose keys are paths without a leading slash. Parent directories that are not in the tree are
 * added (mode 755), each before its contents.
 * @throws ConfigurationError for a path that is absolute, empty, too long or leads upwards
 */
export function cpioArchive(tree: ReadonlyMap<string, TreeEntry>): Uint8Array {
  const parts: Uint8Array[] = [];
  const entries = [...withDirectories(tree)].sort(([a], [b]) => (a < b ? -1 : 1));
  let inode = 1;
  for (const [path, entry] of entries) appendEntry(parts, path, entry, inode++);
  appendTrailer(parts);
  return Buffer.concat(parts);
}

function withDirectories(tree: ReadonlyMap<string, TreeEntry>): Map<string, TreeEntry> {
  const complete = new Map<string, TreeEntry>();
  for (const [path, entry] of tree) {
    const steps = path.split('/');
    if (steps.some((step) => step === '' || step === '.' || step === '..') || path.length >= nameBytesMax) {
      throw new ConfigurationError('path in the archive', path, 'a plain relative path');
    }
    for (let depth = 1; depth < steps.length; depth++) {
      const above = steps.slice(0, depth).join('/');
      if (!tree.has(above)) complete.set(above, { kind: 'directory', mode: 0o755 });
    }
    complete.set(path, entry);
  }
  return complete;
}

function appendEntry(parts: Uint8Array[], path: string, entry: TreeEntry, inode: number): void {
  const content = contentOf(entry);
  const permissions = entry.kind === 'link' ? 0o777 : entry.mode;
  const device = entry.kind === 'character-device' ? entry : { major: 0, minor: 0 };
  appendRecord(parts, path, {
    inode,
    mode: typeBits[entry.kind] | permissions,
    links: entry.kind === 'directory' ? 2 : 1,
    sizeBytes: content.length,
    major: device.major,
    minor: device.minor,
  });
  parts.push(content, padding(content.length));
}

function contentOf(entry: TreeEntry): Uint8Array {
  if (entry.kind === 'file') return entry.content;
  return entry.kind === 'link' ? Buffer.from(entry.target) : new Uint8Array(0);
}

function appendTrailer(parts: Uint8Array[]): void {
  appendRecord(parts, trailerName, { inode: 0, mode: 0, links: 1, sizeBytes: 0, major: 0, minor: 0 });
}

interface RecordFields {
  readonly inode: number;
  readonly mode: number;
  readonly links: number;
  readonly sizeBytes: number;
  /** Number of the device that a device node represents. */
  readonly major: number;
  readonly minor: number;
}

/** The fields in the format's order: inode, mode, uid, gid, links, time, size, device (2), node's device (2), name, check. */
function appendRecord(parts: Uint8Array[], name: string, fields: RecordFields): void {
  const nameBytes = Buffer.from(`${name}\0`);
  const { inode, mode, links, sizeBytes, major, minor } = fields;
  const numbers = [inode, mode, 0, 0, links, 0, sizeBytes, 0, 0, major, minor, nameBytes.length, 0];
  const header = magic + numbers.map((value) => value.toString(16).padStart(8, '0')).join('');
  parts.push(Buffer.from(header, 'ascii'), nameBytes, padding(headerBytes + nameBytes.length));
}

const padding = (bytes: number): Uint8Array => new Uint8Array(-bytes & (alignmentBytes - 1));

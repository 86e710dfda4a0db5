/** Files as the project reads and writes them: completely or with an error, never partially. */
import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Writes all bytes: a full disk first accepts a part, and refuses the next. @throws the operating system's error */
export function writeAll(handle: number, content: string | Uint8Array): number {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  for (let done = 0; done < bytes.length; ) done += writeSync(handle, bytes, done);
  return bytes.length;
}

/**
 * Appends to a file completely or not at all: otherwise later text could follow a torn piece.
 * @throws the operating system's error
 */
export function appendWhole(handle: number, content: string): void {
  const { size } = fstatSync(handle);
  try {
    writeAll(handle, content);
  } catch (error) {
    ftruncateSync(handle, size);
    throw error;
  }
}

/** Limit of bytes in a file that a person writes: profiles and fault plans. */
const smallFileBytesMax = 16 * 2 ** 20;

/**
 * The text of a file that a person has written, without the byte order mark that some editors begin it with. Rejects devices and pipes, which may never end, before it opens them.
 * @throws Error in words, or the operating system's
 */
export function readSmallFile(path: string): string {
  if (!statSync(path).isFile()) throw new Error('not a regular file');
  const handle = openSync(path, 'r');
  try {
    const { size } = fstatSync(handle);
    if (size > smallFileBytesMax) throw new Error(`${size} bytes, more than ${smallFileBytesMax}`);
    const bytes = Buffer.alloc(size);
    let length = 0;
    for (let count = -1; count !== 0 && length < size; length += count)
      count = readSync(handle, bytes, length, size - length, null);
    return bytes.toString('utf8', 0, length).replace(/^\uFEFF/, '');
  } finally {
    closeSync(handle);
  }
}

/** The bytes of a file of any size. Rejects devices and pipes, like {@link readSmallFile}. */
export function readRegularFile(path: string): Buffer<ArrayBuffer> {
  if (!statSync(path).isFile()) throw new Error('not a regular file');
  return readFileSync(path);
}

export const statOf = (file: string): Stats | undefined => statSync(file, { throwIfNoEntry: false });

const isSame = (a: Stats | undefined, b: Stats | undefined): boolean =>
  a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;

/** Standard output as a file, which may have other names: /dev/stdout. */
function standardOutput(): Stats | undefined {
  try {
    return fstatSync(1);
  } catch {
    return undefined;
  }
}

/** Whether a file is written in place because it cannot be replaced: a device, a pipe, or the target of standard output. */
export const isWrittenInPlace = (found: Stats | undefined): boolean =>
  found !== undefined && (!found.isFile() || isSame(found, standardOutput()));

/** The target of a path through symbolic links, whether it exists or not. */
export function targetOf(file: string): string {
  let path = resolve(file);
  for (let links = 0; links < 40; links++) {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path;
    path = resolve(realpathSync(dirname(path)), readlinkSync(path));
  }
  throw new Error('ELOOP');
}

/**
 * Writes a file completely or not at all: into a temporary file next to it, which takes its name when every byte is on the
 * disk. A symbolic link stays, and its target is replaced; a device or a pipe is written in place.
 * @throws the operating system's error: an existing file is unchanged
 */
export function replaceFile(file: string, content: string | Uint8Array): void {
  const found = statOf(file);
  if (isWrittenInPlace(found)) {
    writeInPlace(file, found, content);
    return;
  }
  replaceBy(file, (temporary) => {
    const handle = openSync(temporary, 'wx');
    try {
      if (found !== undefined) fchmodSync(handle, found.mode & 0o7777);
      writeAll(handle, content);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  });
}

/** Lets `write` produce a file under a temporary name, and moves it to the target of `file`. @throws errors of `write`, or of the operating system */
export function replaceBy(file: string, write: (temporary: string) => void): void {
  const target = targetOf(file);
  const temporary = `${target}.${process.pid}.tmp`;
  try {
    write(temporary);
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function writeInPlace(file: string, found: Stats | undefined, content: string | Uint8Array): void {
  if (isSame(found, standardOutput())) {
    process.stdout.write(content);
    return;
  }
  const handle = openSync(file, 'w');
  try {
    writeAll(handle, content);
  } finally {
    closeSync(handle);
  }
}

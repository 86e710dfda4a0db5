/** Files as the project reads and writes them: whole or with an error, never a part that passes for all of it. */
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

/** Writes all bytes: a disk that fills up takes a part first, and refuses the next. @throws the operating system's error */
export function writeAll(handle: number, content: string | Uint8Array): number {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  for (let done = 0; done < bytes.length; ) done += writeSync(handle, bytes, done);
  return bytes.length;
}

/**
 * Appends to a file whole or not at all: what comes later and finds room would stand behind a torn piece.
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

/** Most bytes of a file that a person writes: profiles and fault plans. */
const smallFileBytesMax = 16 * 2 ** 20;

/**
 * The text of a file that a person has written. Devices and pipes, which may never end, are refused before they are opened.
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
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}

/** The bytes of a file of any size. Devices and pipes are refused, as {@link readSmallFile} does. */
export function readRegularFile(path: string): Buffer<ArrayBuffer> {
  if (!statSync(path).isFile()) throw new Error('not a regular file');
  return readFileSync(path);
}

export const statOf = (file: string): Stats | undefined => statSync(file, { throwIfNoEntry: false });

const isSame = (a: Stats | undefined, b: Stats | undefined): boolean =>
  a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;

/** Standard output as a file, which other names may lead to: /dev/stdout. */
function standardOutput(): Stats | undefined {
  try {
    return fstatSync(1);
  } catch {
    return undefined;
  }
}

/** Whether a file is written where it is, since it cannot be replaced: a device, a pipe, or what standard output goes to. */
export const isWrittenInPlace = (found: Stats | undefined): boolean =>
  found !== undefined && (!found.isFile() || isSame(found, standardOutput()));

/** What a path leads to through symbolic links, whether that exists or not. */
export function targetOf(file: string): string {
  let path = resolve(file);
  for (let links = 0; links < 40; links++) {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path;
    path = resolve(realpathSync(dirname(path)), readlinkSync(path));
  }
  throw new Error('ELOOP');
}

/**
 * Writes a file whole or not at all: into a temporary one beside it, which takes its name when every byte is on the disk. A symbolic
 * link stays, and what it points to is replaced; a device or a pipe is written to.
 * @throws the operating system's error: a file that was there is as it was
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

/** Puts what `write` makes of a name of its own where `file` leads to. @throws what `write` throws, or the operating system */
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

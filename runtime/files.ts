/** Files as the project reads and writes them: whole or with an error, never a part that passes for all of it. */
import { closeSync, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs';

/** Writes all bytes: a disk that fills up takes a part first, and refuses the next. @throws the operating system's error */
export function writeAll(handle: number, content: string | Uint8Array): number {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  for (let done = 0; done < bytes.length; ) done += writeSync(handle, bytes, done);
  return bytes.length;
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

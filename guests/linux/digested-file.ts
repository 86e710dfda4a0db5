/**
 * Files of the cache that are used only if intact: next to each is its SHA-256.
 *
 * A partial guest file system also boots, and then fails in ways that name no cause.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs';

const pieceBytes = 1 << 20;
const digestEnding = '.sha256';

/** Writes the file and its digest; an interruption leaves the old file, or an incomplete one. */
export function writeDigested(path: string, content: Uint8Array): void {
  replaceFile(`${path}${digestEnding}`, createHash('sha256').update(content).digest('hex'));
  replaceFile(path, content);
}

/** Whether the file exists as {@link writeDigested} wrote it. */
export function isWhole(path: string): boolean {
  if (!existsSync(path) || !existsSync(`${path}${digestEnding}`)) return false;
  return readFileSync(`${path}${digestEnding}`, 'utf8') === digestOfFile(path);
}

function replaceFile(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, content);
  renameSync(temporary, path);
}

/** SHA-256 in hexadecimal digits, read piece by piece: packages of kernels are long. */
export function digestOfFile(path: string): string {
  const hash = createHash('sha256');
  const piece = new Uint8Array(pieceBytes);
  const descriptor = openSync(path, 'r');
  try {
    for (let count = -1; count !== 0; ) {
      count = readSync(descriptor, piece);
      hash.update(piece.subarray(0, count));
    }
  } finally {
    closeSync(descriptor);
  }
  return hash.digest('hex');
}

/** Reads a file of any size, or standard input, piece by piece, and decompresses gzip on the way: in bounded memory. */
import { createReadStream, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { codeOf } from '../base/index.ts';

const PIECE_BYTES = 2 ** 20;
const GZIP_MAGIC = [0x1f, 0x8b] as const;

/**
 * Passes all pieces to `take`, until it returns false.
 * @param path of a regular file, or - for standard input
 * @returns the error of the file's compressed form, after everything readable was read
 * @throws Error in words, or the operating system's
 */
export async function readPieces(
  path: string,
  take: (piece: Uint8Array) => boolean,
): Promise<string | undefined> {
  if (path !== '-' && !statSync(path).isFile()) throw new Error('not a regular file');
  const source: Readable =
    path === '-' ? process.stdin : createReadStream(path, { highWaterMark: PIECE_BYTES });
  const pieces = source[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  let start: Uint8Array = new Uint8Array(0);
  for (let isMore = true; isMore && start.length < GZIP_MAGIC.length; ) {
    const { done, value } = await pieces.next();
    isMore = done !== true;
    if (isMore) start = Buffer.concat([start, value]);
  }
  const isGzip = GZIP_MAGIC.every((byte, index) => start[index] === byte);
  if (isGzip) return decompress(pieces, start, take);
  for (let piece: Uint8Array | undefined = start; piece !== undefined && take(piece); )
    piece = await nextOf(pieces);
  await pieces.return?.();
  return undefined;
}

async function nextOf(pieces: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
  const { done, value } = await pieces.next();
  return done === true ? undefined : value;
}

/** Decompresses by events: everything decompressed before an error was delivered when the error arrives. */
async function decompress(
  pieces: AsyncIterator<Uint8Array>,
  start: Uint8Array,
  take: (piece: Uint8Array) => boolean,
): Promise<string | undefined> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  let isOver = false;
  const ended = new Promise<string | undefined>((resolve) => {
    const end = (damage?: string): void => {
      isOver = true;
      resolve(damage);
    };
    gunzip.on('data', (piece: Uint8Array) => {
      if (!isOver && !take(piece)) end();
    });
    gunzip.on('error', (error) => {
      const isCut = codeOf(error) === 'Z_BUF_ERROR';
      end(isCut ? 'the compressed file is cut' : `the compressed file is damaged (${codeOf(error)})`);
    });
    gunzip.on('end', () => end());
  });
  // After an error no callback of a write is called.
  const write = (piece: Uint8Array): Promise<unknown> =>
    Promise.race([ended, new Promise<void>((resolve) => gunzip.write(piece, () => resolve()))]);
  for (let piece: Uint8Array | undefined = start; piece !== undefined && !isOver; ) {
    await write(piece);
    if (!isOver) piece = await nextOf(pieces);
  }
  if (!isOver) gunzip.end();
  const damage = await ended;
  gunzip.destroy();
  await pieces.return?.();
  return damage;
}

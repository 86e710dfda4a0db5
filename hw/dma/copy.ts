/**
 * Copies bytes between two memories without making a view: a TLP's by words (see base/copy-words.ts), a whole packet's
 * by the engine's own move.
 *
 * The word arrays lie over the same memory as the byte arrays, from the same byte on.
 */
import { copyWords } from '../../base/copy-words.ts';

/** From this size on the engine's move is cheaper: where words can be used, and where bytes must. */
const LONG_BYTES = 192;
const LONG_UNALIGNED_BYTES = 32;
const moveBytes = Buffer.prototype.copy;

export function copyBytes(
  to: Uint8Array,
  toWords: Int32Array,
  toOffset: number,
  from: Uint8Array,
  fromWords: Int32Array,
  fromOffset: number,
  lengthBytes: number,
): void {
  const isAligned = ((toOffset ^ fromOffset) & 3) === 0;
  if (lengthBytes >= (isAligned ? LONG_BYTES : LONG_UNALIGNED_BYTES)) {
    moveBytes.call(from, to, toOffset, fromOffset, fromOffset + lengthBytes);
    return;
  }
  let at = 0;
  if (isAligned) {
    const head = -toOffset & 3;
    while (at < head && at < lengthBytes) {
      to[toOffset + at] = from[fromOffset + at]!;
      at++;
    }
    const words = (lengthBytes - at) >> 2;
    copyWords(toWords, (toOffset + at) >> 2, fromWords, (fromOffset + at) >> 2, words);
    at += words << 2;
  }
  for (; at < lengthBytes; at++) to[toOffset + at] = from[fromOffset + at]!;
}

/** Words over the whole words of a byte array that begins on a word boundary. */
export function wordsOver(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

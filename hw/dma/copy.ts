/**
 * Copies bytes between two memories without making a view. Short copies (a TLP is at most a few hundred bytes) are
 * faster as a loop over words than as a call; long ones that cannot go by words use the engine's own move.
 *
 * The word arrays lie over the same memory as the byte arrays, from the same byte on.
 */
const LONG_BYTES = 128;

export function copyBytes(
  to: Uint8Array,
  toWords: Int32Array,
  toOffset: number,
  from: Uint8Array,
  fromWords: Int32Array,
  fromOffset: number,
  lengthBytes: number,
): void {
  let at = 0;
  if (((toOffset ^ fromOffset) & 3) === 0) {
    const head = -toOffset & 3;
    while (at < head && at < lengthBytes) {
      to[toOffset + at] = from[fromOffset + at]!;
      at++;
    }
    let toWord = (toOffset + at) >> 2;
    let fromWord = (fromOffset + at) >> 2;
    for (; at + 4 <= lengthBytes; at += 4) toWords[toWord++] = fromWords[fromWord++]!;
  } else if (lengthBytes >= LONG_BYTES) {
    to.set(from.subarray(fromOffset, fromOffset + lengthBytes), toOffset);
    return;
  }
  for (; at < lengthBytes; at++) to[toOffset + at] = from[fromOffset + at]!;
}

/** Words over the whole words of a byte array that begins on a word boundary. */
export function wordsOver(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

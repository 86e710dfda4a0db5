/**
 * The 64-byte rule of inline data: the data of one inline segment must not cross a 64-byte boundary of the WQE, so long data
 * are cut, and each following header begins exactly at the boundary. Source: interface sheet 6.3.
 *
 *   WRITE of 200 bytes, segments from 0x20:
 *     0x20 header, 28 bytes | 0x40 header, 60 | 0x80 header, 60 | 0xc0 header, 52 |
 */

/** A piece of inline data: its header's offset in the WQE, and the data after it. */
export interface InlinePiece {
  readonly headerOffset: number;
  readonly byteCount: number;
}

const headerBytes = 4;
const boundaryBytes = 64;

/**
 * Returns the pieces into which `byteCount` bytes of inline data are cut when the first header lies at `startOffset`, a
 * multiple of 4.
 */
export function inlinePieces(startOffset: number, byteCount: number): InlinePiece[] {
  const pieces: InlinePiece[] = [];
  let headerOffset = startOffset;
  let rest = byteCount;
  while (rest > 0) {
    const room = boundaryBytes - (headerOffset % boundaryBytes) - headerBytes;
    const count = Math.min(rest, room);
    pieces.push({ headerOffset, byteCount: count });
    headerOffset += headerBytes + count;
    rest -= count;
  }
  return pieces;
}

/** Bytes the inline segments occupy, headers and the padding to 16 included. */
export function inlineBytes(startOffset: number, byteCount: number): number {
  const last = inlinePieces(startOffset, byteCount).at(-1);
  if (last === undefined) return 0;
  const end = last.headerOffset + headerBytes + last.byteCount;
  return Math.ceil(end / 16) * 16 - startOffset;
}

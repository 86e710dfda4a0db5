/** Data of a send WQE as inline segments. Source: interface sheet 6.3. */
import { dataPointer, inlineHeader } from '../abi/index.ts';

/** No inline segment crosses a multiple of this. */
const inlineBoundaryBytes = 64;
const wqeUnit = dataPointer.sizeBytes;

/** Writes data as inline segments, none of which crosses a boundary. @returns the index of the unit after the last one written */
export function writeInline(wqe: Uint8Array, from: number, data: Uint8Array): number {
  let at = from;
  let rest = data;
  while (rest.length > 0) {
    const room = inlineBoundaryBytes - ((at + inlineHeader.sizeBytes) % inlineBoundaryBytes);
    const piece = rest.subarray(0, room);
    inlineHeader.encodeInto({ isInline: 1, byteCount: piece.length }, wqe, at);
    wqe.set(piece, at + inlineHeader.sizeBytes);
    at += inlineHeader.sizeBytes + piece.length;
    rest = rest.subarray(piece.length);
  }
  return Math.ceil(at / wqeUnit) * wqeUnit;
}

/**
 * Bytes in memory: views, byte order, hexadecimal. Byte order is never the machine's: every function names it.
 */
import { FieldValueError } from './assert.ts';

/** A DataView over exactly the bytes of `bytes` (shared memory included). */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A 32-bit value with its bytes in opposite order: the number that a little-endian bus delivers for a big-endian dword. */
export function swap32(value: number): number {
  return ((value << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24)) >>> 0;
}

/** Lower-case hexadecimal of bytes in memory order, no separators. */
export function toHex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

/** The bytes that a hexadecimal string spells; the optional length pads with zeros at the end. */
export function fromHex(text: string, lengthBytes = text.length / 2): Uint8Array<ArrayBuffer> {
  if (!/^(?:[0-9a-fA-F]{2})*$/.test(text)) {
    throw new FieldValueError('hex', text, 'an even number of hexadecimal digits');
  }
  if (text.length / 2 > lengthBytes) {
    throw new FieldValueError('hex', text, `at most ${lengthBytes} bytes`);
  }
  const bytes = new Uint8Array(lengthBytes);
  for (let at = 0; at < text.length / 2; at++)
    bytes[at] = Number.parseInt(text.slice(at * 2, at * 2 + 2), 16);
  return bytes;
}

/** The high 32 bits of a non-negative number below 2^53 (or of a full 64-bit bigint). */
export function highWordOf(value: number | bigint): number {
  return typeof value === 'bigint' ? Number(value >> 32n) : Math.floor(value / 0x1_0000_0000);
}

/** The low 32 bits of a non-negative number below 2^53 (or of a bigint). */
export function lowWordOf(value: number | bigint): number {
  return typeof value === 'bigint' ? Number(value & 0xffff_ffffn) : value >>> 0;
}

/** `high` × 2^32 + `low` as a number: exact while the result is below 2^53. */
export const joinWords = (high: number, low: number): number => (high >>> 0) * 0x1_0000_0000 + (low >>> 0);

/** Whether two byte strings are equal. */
export function bytesEqual(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  for (let at = 0; at < left.length; at++) if (left[at] !== right[at]) return false;
  return true;
}

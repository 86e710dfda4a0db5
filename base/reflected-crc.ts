/**
 * A CRC whose bytes enter low bit first, eight bytes a step: the CRC-32 of Ethernet, the CRC-16 of InfiniBand and the CRC32c of MPA differ in
 * the polynomial only. All start from ones, and are sent complemented, the byte with the low bits first.
 */

const BITS_PER_BYTE = 8;
const BYTE_VALUES = 256;
const STEP_BYTES = 8;

/** A CRC of at most 32 bits whose bytes enter low bit first. */
export class ReflectedCrc {
  /** The register before the first byte. */
  readonly initial: number;
  /** Table k holds what a byte becomes when k more bytes have followed it; one after the other. */
  readonly #tables: Int32Array;

  /** @param polynomial without its highest bit, its lowest bit the constant, as the standards print it */
  constructor(polynomial: number, bits: 16 | 32) {
    this.initial = bits === 32 ? -1 : 0xffff;
    this.#tables = tablesOf(reflect(polynomial, bits));
  }

  /** The register after the bytes from `from` up to `to`. */
  update(register: number, bytes: Uint8Array, from: number, to: number): number {
    const tables = this.#tables;
    let crc = register;
    let at = from;
    for (const last = to - STEP_BYTES; at <= last; at += STEP_BYTES) {
      const low =
        crc ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
      crc =
        tables[0x700 | (low & 0xff)]! ^
        tables[0x600 | ((low >>> 8) & 0xff)]! ^
        tables[0x500 | ((low >>> 16) & 0xff)]! ^
        tables[0x400 | (low >>> 24)]! ^
        tables[0x300 | bytes[at + 4]!]! ^
        tables[0x200 | bytes[at + 5]!]! ^
        tables[0x100 | bytes[at + 6]!]! ^
        tables[bytes[at + 7]!]!;
    }
    for (; at < to; at++) crc = (crc >>> BITS_PER_BYTE) ^ tables[(crc ^ bytes[at]!) & 0xff]!;
    return crc;
  }

  /** The CRC of these bytes, as an unsigned number whose low byte is sent first. */
  of(bytes: Uint8Array, from: number, to: number): number {
    return this.finish(this.update(this.initial, bytes, from, to));
  }

  /** Returns the CRC of a register. */
  finish(register: number): number {
    return (register ^ this.initial) >>> 0;
  }
}

function reflect(value: number, bits: number): number {
  let reflected = 0;
  for (let bit = 0; bit < bits; bit++) if (((value >>> bit) & 1) !== 0) reflected |= 1 << (bits - 1 - bit);
  return reflected >>> 0;
}

function tablesOf(polynomial: number): Int32Array {
  const tables = new Int32Array(STEP_BYTES * BYTE_VALUES);
  for (let byte = 0; byte < BYTE_VALUES; byte++) {
    let crc = byte;
    for (let bit = 0; bit < BITS_PER_BYTE; bit++)
      crc = (crc & 1) !== 0 ? (crc >>> 1) ^ polynomial : crc >>> 1;
    tables[byte] = crc;
  }
  for (let at = BYTE_VALUES; at < tables.length; at++) {
    const crc = tables[at - BYTE_VALUES]!;
    tables[at] = (crc >>> BITS_PER_BYTE) ^ tables[crc & 0xff]!;
  }
  return tables;
}

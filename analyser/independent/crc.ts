/**
 * The packet CRCs as the standard's figures draw them: a shift register that processes one bit per step.
 *
 *     bit of the packet ──▶(+)──▶ register, leftmost bit first ──▶ complement ──▶ leftmost bit sent first
 *
 * All registers begin with ones. The low bit of each byte enters first, and the leftmost bit of the result is sent
 * first, as the low bit of a byte. Sources: IBTA vol 1, 7.8.1 (ICRC) and 7.8.2 (VCRC); IEEE 802.3, 3.2.9 (the same
 * polynomial as the ICRC).
 */

const WORD_BITS = 32;

/** x^32 + x^26 + x^23 + x^22 + x^16 + x^12 + x^11 + x^10 + x^8 + x^7 + x^5 + x^4 + x^2 + x + 1. */
const ICRC_EXPONENTS = [26, 23, 22, 16, 12, 11, 10, 8, 7, 5, 4, 2, 1, 0];
/** x^16 + x^12 + x^3 + x + 1. */
const VCRC_EXPONENTS = [12, 3, 1, 0];

/** @param width bits of the register */
function crcOf(bytes: Uint8Array, exponents: readonly number[], width: number): number {
  // The register fills the upper bits of a word, so that its leftmost bit is the word's sign.
  let polynomial = 0;
  for (const exponent of exponents) polynomial |= 1 << (exponent + WORD_BITS - width);
  let register = -1 << (WORD_BITS - width);
  for (const byte of bytes)
    for (let bit = 0; bit < 8; bit++) {
      const isSet = register >>> 31 !== ((byte >>> bit) & 1);
      register <<= 1;
      if (isSet) register ^= polynomial;
    }
  let sent = 0;
  for (let bit = 0; bit < width; bit++) if (((register << bit) & 0x8000_0000) === 0) sent += 2 ** bit;
  return sent;
}

/** Returns the 32-bit CRC; its lowest byte is sent first. */
export const crc32Of = (bytes: Uint8Array): number => crcOf(bytes, ICRC_EXPONENTS, 32);
/** Returns the 16-bit CRC; its lowest byte is sent first. */
export const crc16Of = (bytes: Uint8Array): number => crcOf(bytes, VCRC_EXPONENTS, 16);

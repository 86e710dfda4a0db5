/**
 * CRC32c of iWARP frames: polynomial 0x1edc6f41, initial value and final XOR all ones, lowest bit first. Source: RFC
 * 5044, 4.4 and RFC 3385.
 */

const REFLECTED_POLYNOMIAL = 0x82f6_3b78;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++)
    value = (value & 1) === 0 ? value >>> 1 : (value >>> 1) ^ REFLECTED_POLYNOMIAL;
  return value;
});

export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ table[(crc ^ byte) & 0xff]!;
  return (crc ^ 0xffff_ffff) >>> 0;
}

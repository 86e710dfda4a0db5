/** The Internet checksum: one's complement sum of big-endian 16-bit words. Source: RFC 1071. */

/** Adds `lengthBytes` at `bytes[offset]` to a sum; an odd last byte is the high half of a word. The sum is not folded. */
export function sumOf(bytes: Uint8Array, offset: number, lengthBytes: number, sum = 0): number {
  const end = offset + lengthBytes;
  let total = sum;
  let at = offset;
  for (; at + 1 < end; at += 2) total += (bytes[at]! << 8) | bytes[at + 1]!;
  if (at < end) total += bytes[at]! << 8;
  return total;
}

/**
 * Removes the end of a sum that covers too much.
 * @param sum over everything from `lengthBytes` before `bytes[end]` to `bytes[sumEnd]`
 */
export function sumWithout(
  bytes: Uint8Array,
  end: number,
  sumEnd: number,
  lengthBytes: number,
  sum: number,
): number {
  const tail = folded(sumOf(bytes, end, sumEnd - end));
  // After an odd number of bytes, the first one is the low half of a word.
  const inPlace = lengthBytes % 2 === 0 ? tail : ((tail & 0xff) << 8) | (tail >>> 8);
  return tail === 0 ? sum : sum + 0xffff - inPlace;
}

/**
 * Removes the beginning of a sum that covers too much: an even number of bytes.
 * @param sum from `bytes[start]` on
 */
export function sumFrom(bytes: Uint8Array, start: number, at: number, sum: number): number {
  return sum + 0xffff - folded(sumOf(bytes, start, at - start));
}

/** Folds a sum to 16 bits by adding the carries. */
export function folded(sum: number): number {
  let value = sum;
  while (value > 0xffff) value = (value & 0xffff) + Math.floor(value / 0x1_0000);
  return value;
}

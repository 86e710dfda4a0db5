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
 * A sum that goes on beyond what is summed, without what it has too much.
 * @param sum over everything from `lengthBytes` in front of `bytes[end]` to `bytes[sumEnd]`
 */
export function sumWithout(
  bytes: Uint8Array,
  end: number,
  sumEnd: number,
  lengthBytes: number,
  sum: number,
): number {
  const tail = folded(sumOf(bytes, end, sumEnd - end));
  // Behind an odd number of bytes, its first one is the low half of a word.
  const inPlace = lengthBytes % 2 === 0 ? tail : ((tail & 0xff) << 8) | (tail >>> 8);
  return tail === 0 ? sum : sum + 0xffff - inPlace;
}

/**
 * A sum that begins in front of what is summed, without what it has too much: an even number of bytes.
 * @param sum from `bytes[start]` on
 */
export function sumFrom(bytes: Uint8Array, start: number, at: number, sum: number): number {
  return sum + 0xffff - folded(sumOf(bytes, start, at - start));
}

/** A sum in 16 bits, carries added in. */
export function folded(sum: number): number {
  let value = sum;
  while (value > 0xffff) value = (value & 0xffff) + Math.floor(value / 0x1_0000);
  return value;
}

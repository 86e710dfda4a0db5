/** The Internet checksum: the complement of the one's complement sum of 16-bit words, an odd last byte being a high half. Source: RFC 1071. */

/** Adds the words to another sum, without folding. */
export function internetSum(bytes: Uint8Array, sum = 0): number {
  let total = sum;
  for (let at = 0; at < bytes.length; at += 2) total += (bytes[at]! << 8) | (bytes[at + 1] ?? 0);
  return total;
}

/** The checksum of a sum: 0 for data that includes its correct checksum. */
export function internetChecksumOf(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x1_0000);
  return ~folded & 0xffff;
}

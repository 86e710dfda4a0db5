/** The Internet checksum over a part of a frame, as the 8254x inserts it and reports it. Source: RFC 1071. */

/** One's complement sum of big-endian 16-bit words; an odd last byte is a word's high byte. Not inverted. */
export function onesComplementSum(bytes: Uint8Array, start: number, end: number): number {
  let sum = 0;
  for (let at = start; at < end; at += 2) {
    sum += (bytes[at]! << 8) | (at + 1 < end ? bytes[at + 1]! : 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x1_0000);
  return sum;
}

/**
 * Stores the inverted sum over [start, end of the frame) at `place` of the frame at `frameAt`; software has stored the sum of
 * the pseudo header there. Returns false, and does nothing, if either is outside the frame.
 */
export function insertChecksum(
  bytes: Uint8Array,
  frameAt: number,
  frameBytes: number,
  start: number,
  place: number,
): boolean {
  if (start >= frameBytes || place + 2 > frameBytes) return false;
  const checksum = ~onesComplementSum(bytes, frameAt + start, frameAt + frameBytes) & 0xffff;
  bytes[frameAt + place] = checksum >> 8;
  bytes[frameAt + place + 1] = checksum & 0xff;
  return true;
}

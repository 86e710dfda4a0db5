/**
 * The invariant CRC that a frame of RoCE must end with, computed from the bytes alone: CRC-32 over 64 bits of ones in place of a local
 * route, and over all from the network header on, with ones in place of what may change on the way. Source: IBTA vol 1, 7.8.1; annexes
 * A16.5.3 and A17.3.4.
 */

/** Of CRC-32 with its polynomial reversed, as bits leave: the lowest of a byte first. */
const polynomial = 0xedb8_8320;
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let word = byte;
  for (let bit = 0; bit < 8; bit++) word = (word & 1) === 1 ? (word >>> 1) ^ polynomial : word >>> 1;
  return word;
});

const ones = 0xffff_ffff;
const localRouteBytes = 8;

/** Places that may change on the way, from the network header on: of a GRH and IPv6, and of IPv4 with the checksum of UDP behind it. */
const variantPlaces = {
  grh: [1, 2, 3, 7],
  ipv6: [1, 2, 3, 7, 46, 47],
  ipv4: [1, 8, 10, 11, 26, 27],
} as const;
export type NetworkHeader = keyof typeof variantPlaces;

/**
 * @param network place of the network header; @param base of the BTH; @param end of what the ICRC covers, which it follows
 * @returns as a number of four bytes, the lowest first
 */
export function icrcOf(
  bytes: Uint8Array,
  kind: NetworkHeader,
  network: number,
  base: number,
  end: number,
): number {
  const masked = bytes.slice(network, end);
  for (const place of variantPlaces[kind]) masked[place] = 0xff;
  // The traffic class begins in the lower half of the first byte.
  if (kind !== 'ipv4') masked[0]! |= 0x0f;
  // What is reserved in the BTH, with its marks of congestion.
  masked[base - network + 4] = 0xff;
  let crc = ones;
  for (let at = 0; at < localRouteBytes; at++) crc = table[(crc ^ 0xff) & 0xff]! ^ (crc >>> 8);
  for (const byte of masked) crc = table[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return (crc ^ ones) >>> 0;
}

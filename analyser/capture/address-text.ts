/** Addresses as people write them. */

export const ipv4Text = (address: number): string =>
  [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');

/** Groups of four digits; the longest run of zeros is left out (RFC 5952). */
export function ipv6Text(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bytes[2 * index]! << 8) | bytes[2 * index + 1]!).toString(16),
  );
  const text = groups.join(':');
  const runs = [...text.matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)].map(([run]) => run);
  const longest = runs.toSorted((left, right) => right.length - left.length)[0];
  return longest === undefined
    ? text
    : text
        .replace(longest, ':')
        .replace(/^:(?!:)/, '::')
        .replace(/([^:]):$/, '$1::')
        .replace(/([^:]):(?=:)/, '$1:');
}

export const hex = (value: number | bigint): string => `0x${value.toString(16)}`;

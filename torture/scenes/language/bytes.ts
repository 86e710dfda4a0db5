/** Bytes that identify their message, and comparisons. */

/** Bytes of a message by its number, different for each message of a scene; no byte is 0. */
export function patternOf(number: number, lengthBytes: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(lengthBytes);
  let word = Math.imul(number + 1, 0x9e37_79b1) | 1;
  for (let at = 0; at < lengthBytes; at++) {
    word = (Math.imul(word, 1_664_525) + 1_013_904_223) | 0;
    bytes[at] = 1 + ((word >>> 16) % 255);
  }
  return bytes;
}

/** Returns words for the first byte that differs; empty if none does. */
export function differencesOf(what: string, seen: Uint8Array, expected: Uint8Array): string[] {
  if (seen.length !== expected.length) return [`${what}: ${seen.length} bytes instead of ${expected.length}`];
  if (isSame(seen, expected)) return [];
  const at = seen.findIndex((byte, index) => byte !== expected[index]);
  return [`${what}: byte ${at} of ${seen.length} is ${seen[at]} instead of ${expected[at]}`];
}

export const isSame = (left: Uint8Array, right: Uint8Array): boolean => Buffer.compare(left, right) === 0;

/** Equal bytes. */
export const filled = (lengthBytes: number, value: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(lengthBytes).fill(value);

/** Bytes that identify their message: by a number, so that no two of a scene are alike. */

/** So many bytes, none of them 0; other numbers give others. */
export function patternOf(number: number, lengthBytes: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(lengthBytes);
  let word = Math.imul(number + 1, 0x9e37_79b1) | 1;
  for (let at = 0; at < lengthBytes; at++) {
    word = (Math.imul(word, 1_664_525) + 1_013_904_223) | 0;
    bytes[at] = 1 + ((word >>> 16) % 255);
  }
  return bytes;
}

/** @returns words for the first byte that is not as expected; empty when all are */
export function differencesOf(what: string, seen: Uint8Array, expected: Uint8Array): string[] {
  if (seen.length !== expected.length) return [`${what}: ${seen.length} bytes instead of ${expected.length}`];
  if (isEqual(seen, expected)) return [];
  const at = seen.findIndex((byte, index) => byte !== expected[index]);
  return [`${what}: byte ${at} of ${seen.length} is ${seen[at]} instead of ${expected[at]}`];
}

const isEqual = (left: Uint8Array, right: Uint8Array): boolean => Buffer.compare(left, right) === 0;

/** Result of a program that checks what it sees. */
export interface Wrong {
  readonly wrong: readonly string[];
}

/** What the programs themselves found wrong. */
export const wrongOf = (results: readonly unknown[]): string[] =>
  results.flatMap((result, program) =>
    (result as Wrong).wrong.slice(0, 5).map((what) => `program ${program}: ${what}`),
  );

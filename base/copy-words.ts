/**
 * Copies words between two arrays of words: faster than a call into the engine while they are few, since a native
 * copy of a few hundred bytes spends its time on finding out what it was given. Measured on Node 24, ns a copy of
 * 64 / 256 / 4096 bytes, warm: one word at a time 16 / 76 / 1280, eight at a time 15 / 38 / 470, Buffer's copy
 * 56 / 56 / 120, `set(subarray)` 40 / 47 / 290.
 */
const STEP = 8;

export function copyWords(
  to: Int32Array,
  toWord: number,
  from: Int32Array,
  fromWord: number,
  count: number,
): void {
  // A caller's quotient of an address may come as a double: then every index would be computed as one.
  let target = toWord | 0;
  let source = fromWord | 0;
  const end = source + count;
  for (const last = end - STEP; source <= last; source += STEP, target += STEP) {
    to[target] = from[source]!;
    to[target + 1] = from[source + 1]!;
    to[target + 2] = from[source + 2]!;
    to[target + 3] = from[source + 3]!;
    to[target + 4] = from[source + 4]!;
    to[target + 5] = from[source + 5]!;
    to[target + 6] = from[source + 6]!;
    to[target + 7] = from[source + 7]!;
  }
  for (; source < end; source++, target++) to[target] = from[source]!;
}

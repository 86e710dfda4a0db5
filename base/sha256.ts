/**
 * SHA-256 of a text: the name of a configuration, the same in every runtime. It is synchronous, unlike the promise of the web
 * platform's hash. It is meant for the kilobytes of a configuration, not for bulk data.
 *
 * Source: FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.2.1, 5.3.3 and 6.2.2.
 */

/** Section 4.2.2: one for each round. */
const roundConstants = Int32Array.from(
  (
    '428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5 ' +
    'd807aa98 12835b01 243185be 550c7dc3 72be5d74 80deb1fe 9bdc06a7 c19bf174 ' +
    'e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da ' +
    '983e5152 a831c66d b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967 ' +
    '27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e 92722c85 ' +
    'a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070 ' +
    '19a4c116 1e376c08 2748774c 34b0bcb5 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3 ' +
    '748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2'
  ).split(' '),
  (word) => Number.parseInt(word, 16),
);
/** Section 5.3.3. */
const initialHash = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];
const blockBytes = 64;
const lengthBytes = 8;

/** SHA-256 of the text's UTF-8, in hexadecimal. */
export function sha256Hex(text: string): string {
  const message = padded(new TextEncoder().encode(text));
  const hash = Int32Array.from(initialHash);
  const schedule = new Int32Array(roundConstants.length);
  for (let at = 0; at < message.byteLength; at += blockBytes) {
    for (let word = 0; word < 16; word++) schedule[word] = message.getInt32(at + 4 * word);
    expand(schedule);
    compress(hash, schedule);
  }
  return Array.from(hash, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
}

/** Section 5.1.1: a bit 1, zeros, and the length in bits fill the last block. */
function padded(bytes: Uint8Array): DataView {
  const blocks = Math.ceil((bytes.length + 1 + lengthBytes) / blockBytes);
  const all = new Uint8Array(blocks * blockBytes);
  all.set(bytes);
  all[bytes.length] = 0x80;
  const view = new DataView(all.buffer);
  view.setBigUint64(all.length - lengthBytes, BigInt(bytes.length) * 8n);
  return view;
}

const rotated = (word: number, count: number): number => (word >>> count) | (word << (32 - count));

/** Section 6.2.2, step 1: words 16 to 63 of the message schedule. */
function expand(schedule: Int32Array): void {
  for (let at = 16; at < schedule.length; at++) {
    const [near, far] = [schedule[at - 15]!, schedule[at - 2]!];
    const sigma0 = rotated(near, 7) ^ rotated(near, 18) ^ (near >>> 3);
    const sigma1 = rotated(far, 17) ^ rotated(far, 19) ^ (far >>> 10);
    schedule[at] = sigma1 + schedule[at - 7]! + sigma0 + schedule[at - 16]!;
  }
}

/** Section 6.2.2, steps 2 to 4. */
function compress(hash: Int32Array, schedule: Int32Array): void {
  let a = hash[0]!;
  let b = hash[1]!;
  let c = hash[2]!;
  let d = hash[3]!;
  let e = hash[4]!;
  let f = hash[5]!;
  let g = hash[6]!;
  let h = hash[7]!;
  for (let round = 0; round < schedule.length; round++) {
    const sum1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const choice = (e & f) ^ (~e & g);
    const t1 = (h + sum1 + choice + roundConstants[round]! + schedule[round]!) | 0;
    const sum0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + sum0 + majority) | 0;
  }
  for (const [at, word] of [a, b, c, d, e, f, g, h].entries()) hash[at] = hash[at]! + word;
}

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { copyWords } from './copy-words.ts';

test('copies just the words asked for, whatever their number and place', () => {
  fc.assert(
    fc.property(fc.nat(40), fc.nat(40), fc.nat(60), (fromWord, toWord, count) => {
      const from = Int32Array.from({ length: 128 }, (_, index) => -1 - index);
      const to = new Int32Array(128).fill(7);
      const wanted = Int32Array.from(to);
      wanted.set(from.subarray(fromWord, fromWord + count), toWord);
      copyWords(to, toWord, from, fromWord, count);
      expect(to).toEqual(wanted);
    }),
    { seed: 1 },
  );
});

import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { quoted } from './by-hand.ts';

it('a quoted word is one word to a shell, for any contents', () => {
  const word = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((text) => !text.includes('\0'));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 60 }), (words) => {
      const script = `printf '%s\\0' ${words.map(quoted).join(' ')}`;
      expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toBe(`${words.join('\0')}\0`);
    }),
    { numRuns: 20 },
  );
});

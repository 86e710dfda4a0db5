import { expect, it } from 'vitest';
import { seedMax, seedRange } from './seed-range.ts';

it('a seed of new stories can be repeated: the command’s, and those of the clock until 2050', () => {
  const [ofCommand, ofClock] = [2 ** 40, 16 * Date.UTC(2050)];
  for (const seed of [ofCommand, ofClock]) {
    expect(seed).toBeLessThan(seedMax);
    expect(seedRange(`${seed}..${seed}`)).toEqual({ first: seed, last: seed });
  }
  expect(() => seedRange(`0..${seedMax + 1}`)).toThrow(/from 0 to/);
});

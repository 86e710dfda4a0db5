import { expect, it } from 'vitest';
import { seedMax, seedRange } from './seed-range.ts';

it('a seed that fresh stories begin from can be played again: those of the command, and those of the clock until 2050', () => {
  const [ofCommand, ofClock] = [2 ** 40, 16 * Date.UTC(2050)];
  for (const seed of [ofCommand, ofClock]) {
    expect(seed).toBeLessThan(seedMax);
    expect(seedRange(`${seed}..${seed}`)).toEqual({ first: seed, last: seed });
  }
  expect(() => seedRange(`0..${seedMax + 1}`)).toThrow(/from 0 to/);
});

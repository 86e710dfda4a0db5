import { describe, expect, it } from 'vitest';
import { chanceOf, noChance } from './jitter.ts';

const draws = (seed: number): number[] => {
  const chance = chanceOf(seed);
  return Array.from({ length: 300 }, () => [
    chance.interruptDelayPs(),
    chance.quantum(500),
    chance.extraPs(200_000),
    chance.storeDelayPs(),
    chance.stallPs(),
  ]).flat();
};

describe('the chance of a PC', () => {
  it('is the same for the same seed, and another for another', () => {
    expect(draws(7)).toEqual(draws(7));
    expect(draws(8)).not.toEqual(draws(7));
  });

  it('stays within its bounds', () => {
    const chance = chanceOf(1);
    for (let draw = 0; draw < 2000; draw++) {
      expect(chance.interruptDelayPs()).toBeLessThan(5_000_000);
      expect(chance.quantum(500)).toBeGreaterThanOrEqual(50);
      expect(chance.quantum(500)).toBeLessThanOrEqual(500);
      expect(chance.quantum(20)).toBe(20);
      expect(chance.extraPs(1000)).toBeLessThan(50_000);
      expect(chance.storeDelayPs()).toBeLessThan(5_000_000);
      expect(chance.stallPs()).toBeLessThan(5_000_000);
    }
  });

  it('changes nothing without a seed', () => {
    expect([noChance.interruptDelayPs(), noChance.quantum(123), noChance.extraPs(456)]).toEqual([0, 123, 0]);
    expect([noChance.storeDelayPs(), noChance.stallPs()]).toEqual([0, 0]);
  });
});

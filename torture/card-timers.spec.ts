/** Time-outs and RNR delays of other cards, in stories of players: the judges count in the story's units. */
import { describe, expect, it } from 'vitest';
import { configurationOf } from '../machine/profile/index.ts';
import { ackTimeoutPs, patienceOf } from './patience.ts';
import { runStory } from './run-story.ts';
import { playersOfSeed } from './story-of-seed.ts';
import { rnrDelayPs } from './verbs-model.ts';

const paths = ['hca.ackTimeoutUnitNs', 'hca.ackTimeoutCodeMin', 'hca.rnrTimerUnitNs'] as const;
const drawn = Array.from({ length: 300 }, (_, seed) => playersOfSeed(seed));

describe('timers of other cards', () => {
  it('are those of some stories, each in a legal configuration', () => {
    for (const path of paths) {
      const having = drawn.filter(({ set }) => path in set);
      expect(having.length, path).toBeGreaterThan(15);
      for (const { set } of having.slice(0, 20)) expect(() => configurationOf({ set })).not.toThrow();
    }
  });

  it('are no shorter than the standard’s where nothing is lost, so that none runs out by itself', () => {
    for (const { climate, set } of drawn)
      if (climate === 'calm' || climate === 'flawed')
        expect(Number(set['hca.ackTimeoutUnitNs'] ?? 4096)).toBeGreaterThanOrEqual(4096);
  });

  it('are what the judges count in', () => {
    // ConnectX-3 Pro measured: 8.192 µs times two to the code, and none shorter than code 16 (H-219).
    const set = { 'hca.ackTimeoutUnitNs': 8192, 'hca.ackTimeoutCodeMin': 16, 'hca.rnrTimerUnitNs': 32_687 };
    expect(ackTimeoutPs(14, set)).toBe(8_192_000 * 2 ** 16);
    expect(ackTimeoutPs(18, set)).toBe(8_192_000 * 2 ** 18);
    expect(ackTimeoutPs(0, set)).toBe(0);
    expect(ackTimeoutPs(31, { 'hca.ackTimeoutUnitNs': 100_000 })).toBe(4_096_000 * 2 ** 31);
    // Code 12 is 0.64 ms, 64 units of the standard's hundredth of a millisecond.
    expect(rnrDelayPs(12, set)).toBe(64 * 32_687_000);
    const story = drawn.find(
      ({ set: own, programs }) =>
        Number(own['hca.rnrTimerUnitNs'] ?? 0) > 100_000 &&
        programs.some(({ qps }) => qps.some(({ transport }) => transport === 'RC')),
    )!;
    expect(patienceOf(story)).toBeGreaterThan(patienceOf({ ...story, set: {} }));
  });

  it.each(drawn.flatMap(({ seed, set }) => (paths[0] in set && paths[2] in set ? [seed] : [])).slice(0, 3))(
    'story %i is played without a finding',
    { timeout: 300_000 },
    async (seed) => {
      const { findings } = await runStory({ ...playersOfSeed(seed), again: undefined });
      expect(findings).toEqual([]);
    },
  );
});

/** Stories in which a judge or a player was once wrong: see docs/torture.md. Those of one kind stand beside the specs of that kind. */
import { describe, expect, it } from 'vitest';
import { runStory } from './run-story.ts';
import { storyOfSeed } from './story-of-seed.ts';

describe('stories that were found wrong', () => {
  it.each([
    ['a copy of a datagram takes a receive that a connection shares', 200_013_837_338_335],
    ['an access that is refused when it is repeated is answered for its own PSN', 300_604_215_576_135],
    ['the answer of a repeated READ goes on when that of another has broken it off', 300_604_215_575_788],
    ['seven attempts of ten microseconds each last longer than nine delays', 200_013_837_337_808],
  ])('are played without a finding: %s', { timeout: 120_000 }, async (_what, seed) => {
    expect((await runStory(storyOfSeed(seed))).findings).toEqual([]);
  });
});

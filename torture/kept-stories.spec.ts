/** Stories in which the model, a judge or a player was once wrong; their names tell the defect. */
import { describe, expect, it } from 'vitest';
import { runStory } from './run-story.ts';
import { keptNames, keptStory } from './testing/kept-story.ts';

describe('stories that were found wrong', () => {
  it.each(keptNames())('are played without a finding: %s', { timeout: 120_000 }, async (name) => {
    expect((await runStory(keptStory(name))).findings).toEqual([]);
  });
});

/** Stories in which the model, a judge or a player was once wrong; their names tell the defect. */
import { describe, expect, it } from 'vitest';
import { rowsOf } from '../test/extent.ts';
import { runStory } from './run-story.ts';
import { keptNames, keptStory } from './testing/kept-story.ts';

/** These take seconds each: only a run of everything plays them. */
const longNames = new Set([
  'frames-dropped-by-both-ports',
  'once-wrong-5000716',
  'once-wrong-970006606',
  'own-packet-while-the-port-is-not-active',
  'reads-given-up',
  'repeated-read-resumes-after-another',
  'scene-connections-1800000167',
]);
const isLong = (name: string): boolean => longNames.has(name);
const names = keptNames();
const played = rowsOf(
  names.filter((name) => !isLong(name)),
  names.filter(isLong),
);

describe('stories that were found wrong', () => {
  it.each(played)('are played without a finding: %s', { timeout: 120_000 }, async (name) => {
    expect((await runStory(keptStory(name))).findings).toEqual([]);
  });
});

/**
 * Contexts of the requester: few lines of its own, and few or many reads under way, in some stories. Added to a finished story
 * from random numbers of its own.
 */
import type { Random } from '../sim/index.ts';
import type { Story } from './story.ts';

const share = 0.1;
const entriesMax = 8;
const fetchesMax = 20;

/** @returns the story, in some cases with a requester that has a part of the QPC cache for itself, or few reads of contexts */
export function withSendContexts(random: Random, story: Story): Story {
  if (!random.chance(share)) return story;
  const entries = random.below(entriesMax);
  const set = {
    ...(entries === 0 ? {} : { 'hca.sendContextEntries': entries }),
    'hca.contextFetchesInFlight': 1 + random.below(fetchesMax),
  };
  return { ...story, set: { ...story.set, ...set } };
}

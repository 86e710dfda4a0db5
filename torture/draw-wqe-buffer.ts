/** A requester that holds few lines of a WQE at once, in some stories. Added to a finished story from random numbers of its own. */
import type { Random } from '../sim/index.ts';
import type { Story } from './story.ts';

const share = 0.1;
const linesMax = 6;
const lineCyclesMax = 12;

/** @returns the story, in some cases with a requester into which long WQEs do not pass at once, and lines that take their time */
export function withWqeBuffer(random: Random, story: Story): Story {
  if (!random.chance(share)) return story;
  const set = {
    'hca.wqeBufferLines': 1 + random.below(linesMax),
    'hca.wqeLineCycles': 1 + random.below(lineCyclesMax),
  };
  return { ...story, set: { ...story.set, ...set } };
}

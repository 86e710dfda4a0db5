/** A receive datapath that takes headers ahead of the payload, in some stories of players. Added to a finished story from random numbers of its own. */
import type { Random } from '../sim/index.ts';
import type { Story } from './story.ts';

const share = 0.05;
const headCyclesMax = 64;

/** @returns the story, in some cases with headers that take their time */
export function withReceivePath(random: Random, story: Story): Story {
  if (!random.chance(share)) return story;
  const set = { 'hca.receiveHeadCycles': 1 + random.below(headCyclesMax) };
  return { ...story, set: { ...story.set, ...set } };
}

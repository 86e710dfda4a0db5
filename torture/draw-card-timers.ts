/**
 * Time-outs and RNR delays of other cards: in other units than the standard's, and with a least time-out code (ConnectX-3's are
 * rows H-195 to H-225 of reference/measurements.csv). The judges count in the story's units. Added to a finished story from random
 * numbers of its own.
 */
import type { Random } from '../sim/index.ts';
import type { Story } from './story.ts';

const share = 0.2;

/** @returns the story, in some cases with other timers */
export function withCardTimers(random: Random, story: Story): Story {
  if (!random.chance(share)) return story;
  const isLossy = story.climate === 'lossy' || story.climate === 'broken';
  const set: Record<string, number> = {};
  // Shorter ones than the standard's run out by themselves on slow hardware: only where that is no contradiction.
  if (random.chance(0.6)) set['hca.ackTimeoutUnitNs'] = logUniform(random, isLossy ? 100 : 4096, 100_000);
  if (random.chance(0.6)) set['hca.ackTimeoutCodeMin'] = 1 + random.below(random.chance(0.8) ? 16 : 31);
  if (random.chance(0.6)) set['hca.rnrTimerUnitNs'] = logUniform(random, 1000, 1_000_000);
  return { ...story, set: { ...story.set, ...set } };
}

const logUniform = (random: Random, min: number, max: number): number =>
  Math.round(min * (max / min) ** random.unit());

/** One story in a worker: an order by seed or in full, and its outcome as plain data. */
import '../runtime/node.ts';
import { type Coverage, coverageOf, noCoverage } from './coverage.ts';
import { fabricStoryOf } from './fabric/draw-fabric.ts';
import { playFabricStory } from './fabric/play-fabric.ts';
import type { Finding } from './finding.ts';
import { runStory } from './run-story.ts';
import type { Climate } from './story.ts';
import { plain, storyOfSeed } from './story-of-seed.ts';

export interface StoryOrder {
  readonly seed: number;
  /** Name of the scene to play; omitted: the seed draws it. */
  readonly scene?: string;
  /** Seeds that this number divides have a story of a fabric (torture/fabric); left out: none has. */
  readonly fabricEvery?: number;
  /** Plays without shortcuts. */
  readonly isPlain?: true;
}

export interface StoryOutcome {
  readonly seed: number;
  readonly climate: Climate;
  readonly findings: readonly Finding[];
  readonly refused: string | undefined;
  readonly coverage: Coverage;
}

export default async function tellStory({
  seed,
  scene,
  fabricEvery,
  isPlain,
}: StoryOrder): Promise<StoryOutcome> {
  if (fabricEvery !== undefined && seed % fabricEvery === 0) return tellFabricStory(seed);
  const drawn = storyOfSeed(seed, scene);
  const story = isPlain === true ? plain(drawn) : drawn;
  const { findings, refused, played } = await runStory(story);
  const coverage = played === undefined ? noCoverage : coverageOf(played);
  return { seed, climate: story.climate, findings, refused, coverage };
}

async function tellFabricStory(seed: number): Promise<StoryOutcome> {
  const story = fabricStoryOf(seed);
  const { findings, refused, ends } = await playFabricStory(story);
  const climate = story.faults.length > 0 ? 'broken' : 'calm';
  const faults: Record<string, number> = {};
  for (const fault of story.faults) {
    const [[kind, effect]] = Object.entries(fault) as [[string, string | number]];
    faults[`${kind} ${effect}`] = (faults[`${kind} ${effect}`] ?? 0) + 1;
  }
  return { seed, climate, findings, refused, coverage: { ...noCoverage, ends, faults } };
}

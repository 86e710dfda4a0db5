/**
 * The story that a seed draws: one of players, or a scene. A seed is the same story in one commit only: stories to keep are files (kept/).
 */
import { Random } from '../sim/index.ts';
import { acceptable, drawGroups, drawPool } from './drawing/draw-hardware.ts';
import { drawAgain, drawPlayers } from './drawing/draw-story.ts';
import { ethernetForScene } from './drawing/ethernet.ts';
import { type Facts, groups } from './drawing/knobs.ts';
import { Draws, type Scene, sceneOf, scenes } from './scenes/index.ts';
import type { Story } from './story.ts';

/** Scenes take a fifth of a second and stories of players two: both get about half of the time. */
const sceneShare = 0.8;
/** Share of the seeds that would draw a slow scene. */
const slowShare = 0.25;
/** Share of the scenes that are played a second time up to one of their instants. */
const stoppedShare = 0.1;

/**
 * The story that `hca torture --seed` plays.
 * @param scene name of a scene: that one, with the seed's numbers
 * @throws ConfigurationError for a name that no scene has
 */
export function storyOfSeed(seed: number, scene?: string): Story {
  if (scene !== undefined) return drawScene(seed, sceneOf({ name: scene }));
  const random = new Random(seed, 'scene');
  if (!random.chance(sceneShare)) return playersOfSeed(seed);
  const anyScene = (): Scene => scenes[random.below(scenes.length)]!;
  const drawn = anyScene();
  const isTaken = drawn.isSlow !== true || random.chance(slowShare);
  return drawScene(seed, isTaken ? drawn : anyScene());
}

/** The story of players that a seed draws. */
export const playersOfSeed = (seed: number): Story => {
  const random = new Random(seed, 'players');
  return { ...drawPlayers(random, seed), again: drawAgain(random, true) };
};

/** The same story without shortcuts: `hca torture --no-shortcuts`. */
export const plain = (story: Story): Story => ({ ...story, isPlain: true });

/** A story that plays a scene, with numbers and hardware of the seed. */
export function drawScene(seed: number, { name, draw, cable }: Scene): Story {
  const of = draw(new Draws(seed, `scene ${name}`));
  const { args, set = {}, faults = [], climate = 'calm', sleepsSeconds } = of;
  const random = new Random(seed, 'hardware of a scene');
  const facts: Facts = { climate, isOfPlayers: false, hasOnDemand: false, sleeps: false };
  const hardware = {
    'host.memory.sizeMib': 64,
    ...(of.hasDrawnHardware ? drawPool(random) : {}),
    ...drawGroups(random, groups, facts),
  };
  const ethernet = cable === undefined ? ethernetForScene(random, hardware, set, facts) : undefined;
  return {
    seed,
    climate,
    ...(random.chance(stoppedShare) ? { stopsAfter: random.unit() } : {}),
    set: ethernet ?? acceptable(hardware, set),
    faults,
    again: of.again ?? drawAgain(random, sleepsSeconds === undefined),
    programs: [],
    links: [],
    scene: { name, args, ...(sleepsSeconds === undefined ? {} : { sleepsSeconds }) },
  };
}

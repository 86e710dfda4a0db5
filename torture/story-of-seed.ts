/**
 * Which story a seed is: one of players, or a scene. A seed is the same story in one commit only: stories to keep are files (kept/).
 */
import { Random } from '../sim/index.ts';
import { withBadCable } from './draw-bad-cable.ts';
import { withCardTimers } from './draw-card-timers.ts';
import { ethernetForScene, withEthernet } from './draw-ethernet.ts';
import { acceptable, drawHardware } from './draw-hardware.ts';
import { withPacketRules } from './draw-packet-rules.ts';
import { withReceivePath } from './draw-receive-path.ts';
import { withSendContexts } from './draw-send-contexts.ts';
import { drawAgain, drawStory } from './draw-story.ts';
import { withWindows } from './draw-windows.ts';
import { withWqeBuffer } from './draw-wqe-buffer.ts';
import { withBearableRnr } from './patience.ts';
import { type Scene, sceneOf, scenes } from './scenes/index.ts';
import type { Again, Story } from './story.ts';

/** Scenes take a fifth of a second and stories of players two: both get about half of the time. */
const sceneShare = 0.8;

/** Of the seeds that would tell a slow scene. */
const slowShare = 0.25;

/**
 * The story that `hca torture --seed` plays.
 * @param scene name of a scene: that one, with the seed's numbers
 * @throws ConfigurationError for a name that no scene has
 */
export function storyOfSeed(seed: number, scene?: string): Story {
  if (scene !== undefined) return drawScene(seed, sceneOf({ name: scene }));
  const random = new Random(seed, 'scene');
  if (!random.chance(sceneShare)) return orLookedAtAgain(playersOfSeed(seed));
  const anyScene = (): Scene => scenes[random.below(scenes.length)]!;
  const drawn = anyScene();
  const isTaken = drawn.isSlow !== true || random.chance(slowShare);
  return orLookedAtAgain(drawScene(seed, isTaken ? drawn : anyScene()));
}

/** Draws a story of players with every part, each from a stream of its own. */
export function playersOfSeed(seed: number): Story {
  const of = (name: string): Random => new Random(seed, name);
  const withRules = withPacketRules(of('packet rules'), withWindows(of('windows'), drawStory(seed)));
  const received = withReceivePath(of('receiving'), withCardTimers(of('card timers'), withRules));
  const onCable = withEthernet(of('ethernet'), withBadCable(of('bad cable'), received));
  return withBearableRnr(withRequester(seed, onCable));
}

/** Some stories, of scenes too, have a requester with contexts and WQE lines of its own. */
const withRequester = (seed: number, story: Story): Story =>
  withWqeBuffer(new Random(seed, 'WQE buffer'), withSendContexts(new Random(seed, 'send contexts'), story));

/** Of the stories that are not played again otherwise. */
const plainShare = 0.15;

/** Of those that are not played again without shortcuts either. */
const observedShare = 0.1;

/** Some stories are played once more without shortcuts, or with every observer there is. */
function orLookedAtAgain(story: Story): Story {
  if (story.again !== undefined) return story;
  const once = { partition: 'single', shuffleSeed: undefined } as const;
  if (new Random(story.seed, 'shortcuts').chance(plainShare))
    return { ...story, again: { ...once, isPlain: true } };
  if (!new Random(story.seed, 'observers').chance(observedShare)) return story;
  return { ...story, again: { ...once, isObserved: true } };
}

/** The same story without shortcuts: `hca torture --no-shortcuts`. */
export const plain = (story: Story): Story => ({ ...story, isPlain: true });

/** A story that plays a scene, with numbers and hardware of the seed. */
export function drawScene(seed: number, { name, draw, cable }: Scene): Story {
  const random = new Random(seed, `scene ${name}`);
  const {
    args,
    set = {},
    hasDrawnHardware,
    faults = [],
    climate = 'calm',
    again,
    sleepsSeconds,
  } = draw(random);
  const isAgain = random.chance(0.15);
  const hardware = hasDrawnHardware
    ? drawHardware(new Random(seed, 'hardware'))
    : { 'host.memory.sizeMib': 64 };
  const stop = new Random(seed, 'stop');
  const ethernet =
    cable !== undefined ? undefined : ethernetForScene(new Random(seed, 'ethernet'), hardware, set);
  return withRequester(seed, {
    seed,
    climate,
    ...(stop.chance(stoppedShare) ? { stopsAfter: stop.unit() } : {}),
    set: ethernet ?? acceptable(hardware, set),
    faults,
    again: again ?? (isAgain ? drawAgainOf(random, sleepsSeconds) : unwatchedAt(random)),
    programs: [],
    links: [],
    scene: { name, args, ...(sleepsSeconds === undefined ? {} : { sleepsSeconds }) },
  });
}

/** Of the scenes that are played once more up to an instant of theirs. */
const stoppedShare = 0.1;

/** Of the scenes that are not played again otherwise. */
const unwatchedShare = 0.12;

/** Some scenes are played once more just so, without observers. */
const unwatchedAt = (random: Random): Again | undefined =>
  random.chance(unwatchedShare)
    ? { partition: 'single', shuffleSeed: undefined, isUnwatched: true }
    : undefined;

/** Who sleeps for minutes does not do so in epochs of microseconds. */
function drawAgainOf(random: Random, sleepsSeconds: number | undefined): Again {
  const { partition, shuffleSeed, epochPs } = drawAgain(random);
  return epochPs === undefined || sleepsSeconds !== undefined
    ? { partition, shuffleSeed }
    : { partition, shuffleSeed, epochPs };
}

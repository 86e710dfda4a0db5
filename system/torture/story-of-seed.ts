/** Which story a seed is: one of players, or a scene. */
import { Random } from '../../sim/index.ts';
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
  const told = scenesOfSeed(seed);
  const drawn = told[random.below(told.length)]!;
  const isTaken = drawn.isSlow !== true || random.chance(slowShare);
  return orLookedAtAgain(drawScene(seed, isTaken ? drawn : told[random.below(told.length)]!));
}

/** From here on stories of players have what came later; a seed below stays the story that commits and pages name. */
const firstNewerSeed = 1_700_000_000;
/** From here on they have card timers as well. */
const firstNewestSeed = 1_800_000_000;

function playersOfSeed(seed: number): Story {
  if (seed < firstNewerSeed) return drawStory(seed);
  if (seed < firstNewestSeed) return newerStory(seed);
  const story = newestStory(seed);
  if (seed < firstExtendedSeed) return story;
  const extended = withBadCable(new Random(seed, 'bad cable'), story);
  if (seed < firstEthernetSeed) return extended;
  const onEthernet = withEthernet(new Random(seed, 'ethernet'), extended);
  return requesterOfSeed(seed, onEthernet);
}

function requesterOfSeed(seed: number, story: Story): Story {
  if (seed < firstContextSeed) return story;
  const withContexts = withSendContexts(new Random(seed, 'send contexts'), story);
  return seed < firstBufferSeed ? withContexts : withWqeBuffer(new Random(seed, 'WQE buffer'), withContexts);
}

/** From here on stories of players may have a bad cable. */
const firstExtendedSeed = 1e12;
/** From here on stories may be of hosts on Ethernet. Above what earlier versions took fresh seeds from, of the clock, too. */
const firstEthernetSeed = 1e14;
/** From here on stories, of scenes too, may have a requester with contexts of its own. */
const firstContextSeed = 2e14;
/** From here on it may hold few lines of a WQE. */
const firstBufferSeed = 3e14;
/** Fresh seeds begin here, so that they are of all that there is. */
export const firstFreshSeed: number = firstBufferSeed;

const scenesOfSeed = (seed: number): readonly Scene[] =>
  scenes.filter(({ toldFrom = 0 }) => seed >= toldFrom);

/** A story of players with all that there is: time-outs and RNR delays of other cards, too. */
export const newestStory = (seed: number): Story =>
  withReceivePath(
    new Random(seed, 'receiving'),
    withCardTimers(
      new Random(seed, 'card timers'),
      withPacketRules(
        new Random(seed, 'packet rules'),
        withWindows(new Random(seed, 'windows'), drawStory(seed)),
        'sent',
      ),
    ),
  );

/** A story of players with what came later: windows, and faults by rule. Each from a stream of its own: the rest stays as it was. */
export const newerStory = (seed: number): Story =>
  withPacketRules(
    new Random(seed, 'packet rules'),
    withWindows(new Random(seed, 'windows'), drawStory(seed)),
  );

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
    seed < firstEthernetSeed || cable !== undefined
      ? undefined
      : ethernetForScene(new Random(seed, 'ethernet'), hardware, set);
  return requesterOfSeed(seed, {
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

/**
 * One story of a served device: a well-behaved guest, some rough ones, and a well-behaved one again, which must find the device
 * exactly as the first did. A seed is a story: the same one on any computer.
 *
 *     well-behaved ─► rough ─► rough ─► rough ─► well-behaved        one device, one server, one thread
 *
 * Watched all along: what the model throws, the guest's memory where it is not mapped or no longer, interrupts of guests
 * that have gone, descriptors and memory of this process, and how long a turn takes.
 */
import { readdirSync } from 'node:fs';
import { Random } from '../../../sim/index.ts';
import { configurationOf, type ParameterValues } from '../../profile/index.ts';
import { servedProfile } from '../../serve/index.ts';
import { GuestLife } from './guest-life.ts';
import { type Kind, type KindCounts, kinds, noCounts, RoughGuest } from './rough-guest.ts';
import { ServedDevice } from './served-device.ts';
import { WellBehavedGuest } from './well-behaved-guest.ts';

export interface ServedStoryOptions {
  /** A whole number from 0 to 2^53 - 1. */
  readonly seed: number;
  /** Rough guests: 3 when left out. */
  readonly lives?: number;
  /** Things that each of them does: 600 when left out. */
  readonly actions?: number;
  /** Kinds of things that are left out, whatever the seed says. */
  readonly without?: readonly Kind[];
  /** Does something to the device when it is built: for trying out whether a mistake of the model is found. */
  readonly sabotage?: (device: ServedDevice) => void;
}

/** What is wrong, by what was watched. */
export type ServedFindingKind =
  | 'thrown'
  | 'changed'
  | 'memory'
  | 'interrupt'
  | 'descriptors'
  | 'silence'
  | 'unanswered';

export interface ServedFinding {
  readonly kind: ServedFindingKind;
  readonly text: string;
  /** Rough guest that was there, or had been there last; from 0. */
  readonly life: number;
  /** What that guest did last. */
  readonly actions: readonly string[];
}

export interface ServedStory {
  readonly seed: number;
  readonly findings: readonly ServedFinding[];
  readonly counts: KindCounts;
  /** Longest time of this thread that a turn of the serving loop took. */
  readonly longestTurnMs: number;
}

const usualLives = 3;
const usualActions = 600;
/** A turn that takes longer is a silence that a guest notices. */
const silenceMs = 1000;
/** Differences of the last guest's text that are shown. */
const shownDifferences = 6;
const shownCharacters = 200;

/** Hardware to be rough with, beside what is served by default. */
const hardware: readonly ParameterValues[] = [
  {},
  {},
  { 'hca.mttCacheLines': 1, 'hca.mptCacheEntries': 2 },
  { 'dma.tagCount': 1 },
  { 'pcie.link.lanes': 1, 'pcie.link.generation': 1 },
  { 'hca.qpcCacheEntries': 2, 'hca.cqcCacheEntries': 2 },
];

export function playServedStory(options: ServedStoryOptions): ServedStory {
  const { seed, lives = usualLives, actions = usualActions } = options;
  const random = new Random(seed, 'served hardware');
  const set = hardware[random.below(hardware.length)]!;
  const findings: ServedFinding[] = [];
  const counts = noCounts();
  const descriptorsBefore = openDescriptors();
  let longestTurnMs = 0;
  {
    using device = new ServedDevice(configurationOf({ profile: servedProfile, set }));
    options.sabotage?.(device);
    const descriptorsServed = openDescriptors();
    const first = wellBehavedLife(device);
    let guest: RoughGuest | undefined;
    const find = (life: number, kind: ServedFindingKind, text: string): void => {
      findings.push({ kind, text, life, actions: [...(guest?.actions ?? [])] });
    };
    for (let life = 0; life < lives && findings.length === 0; life++) {
      const own = new GuestLife(device);
      guest = new RoughGuest(own, new Random(seed, `served life ${life}`), options.without);
      const note = (kind: ServedFindingKind, text: string): void => find(life, kind, text);
      try {
        guest.live(actions);
        own.leave();
      } catch (error) {
        note('thrown', textOf(error));
        if (device.hasClient) own.leave();
      }
      own.raised();
      device.pass(50);
      for (const { access, message, causes } of device.emulation.defects)
        note('thrown', [`${access}: ${message}`, ...causes.map(({ stack }) => stack)].join('\n'));
      for (const damage of own.ram.damages()) note('memory', damage);
      if (own.raised().some((count) => count > 0))
        note('interrupt', 'a vector was raised after its guest had gone');
      own.close();
      for (const kind of kinds) counts[kind] += guest.counts[kind];
      if (openDescriptors() !== descriptorsServed)
        note('descriptors', `${openDescriptors()} are open, ${descriptorsServed} were before`);
      if (device.slot.access.givenUpLoadCount > 0)
        note('unanswered', `${device.slot.access.givenUpLoadCount} loads were given up`);
      longestTurnMs = Math.max(longestTurnMs, device.longestTurnMs);
      if (device.longestTurnMs > silenceMs)
        note('silence', `${device.longestTurnMs.toFixed(0)} ms in one turn`);
    }
    if (findings.length === 0) {
      const last = wellBehavedLife(device);
      for (const difference of differencesOf(first, last)) find(lives - 1, 'changed', difference);
    }
  }
  if (openDescriptors() !== descriptorsBefore)
    findings.push({
      kind: 'descriptors',
      text: 'the server left descriptors open',
      life: lives,
      actions: [],
    });
  return { seed, findings, counts, longestTurnMs };
}

/**
 * The shortest form of a story that still fails in one of the same ways: fewer guests, then fewer things, then fewer kinds.
 * @returns the options of it, and the story; undefined when this one does not fail
 */
export function shrinkServedStory(
  options: ServedStoryOptions,
): { readonly options: ServedStoryOptions; readonly story: ServedStory } | undefined {
  let best = { options, story: playServedStory(options) };
  const wanted = new Set(best.story.findings.map(({ kind }) => kind));
  if (wanted.size === 0) return undefined;
  const attempt = (changed: Partial<ServedStoryOptions>): boolean => {
    const tried = { ...best.options, ...changed };
    const story = playServedStory(tried);
    if (!story.findings.some(({ kind }) => wanted.has(kind))) return false;
    best = { options: tried, story };
    return true;
  };
  for (let lives = 1; lives < (options.lives ?? usualLives); lives++) if (attempt({ lives })) break;
  // What a guest does first does not depend on how much it does in all.
  let [enough, tooFew] = [options.actions ?? usualActions, -1];
  while (enough - tooFew > 1) {
    const middle = (enough + tooFew) >> 1;
    if (attempt({ actions: middle })) enough = middle;
    else tooFew = middle;
  }
  for (const kind of kinds) attempt({ without: [...(best.options.without ?? []), kind] });
  return best;
}

function wellBehavedLife(device: ServedDevice): readonly string[] {
  const life = new GuestLife(device);
  try {
    life.attach();
    const guest = new WellBehavedGuest(life);
    guest.run();
    return guest.conclude();
  } finally {
    life.leave();
    life.close();
  }
}

function differencesOf(first: readonly string[], last: readonly string[]): string[] {
  const short = (line = 'nothing'): string =>
    line.length <= shownCharacters ? line : `${line.slice(0, shownCharacters)}…`;
  return Array.from({ length: Math.max(first.length, last.length) }, (_, at) => at)
    .filter((at) => first[at] !== last[at])
    .slice(0, shownDifferences)
    .map((at) => {
      const [before = '', after = ''] = [first[at], last[at]];
      const same = [...before].findIndex((character, index) => character !== after[index]);
      const from = Math.max(0, same - 40);
      return `the last guest found, at character ${same}: ${short(after.slice(from))}; the first: ${short(before.slice(from))} (${before.slice(0, 40)})`;
    });
}

const textOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

/**
 * One story of a served device: a well-behaved guest, some rough ones, and a well-behaved one again, which must find the device
 * exactly as the first did. A seed is a story: the same one on any computer.
 *
 *     well-behaved ─► rough ─► rough ─► rough ─► well-behaved        one device, one server, one thread
 *
 * Watched all along: what the model throws, bytes that a well-behaved guest moves, the guest's memory where it is not mapped or no longer, completions that no program
 * asked for (bystander.ts), interrupts of guests that have gone, descriptors and memory of this process, and how long a turn
 * takes.
 */
import { readdirSync } from 'node:fs';
import { bytesPerMib } from '../../base/index.ts';
import { servedProfile } from '../../guests/serve/index.ts';
import { configurationOf, type ParameterValues } from '../../machine/profile/index.ts';
import { Random } from '../../sim/index.ts';
import { GuestLife } from './guest-life.ts';
import {
  addCoverage,
  type Kind,
  type KindCounts,
  kinds,
  noCounts,
  noRoughCoverage,
  type RoughCoverage,
} from './kinds.ts';
import { memoryInUseBytes } from './memory-in-use.ts';
import { RoughGuest } from './rough-guest.ts';
import { ServedDevice } from './served-device.ts';
import { WellBehavedGuest } from './well-behaved-guest.ts';

export interface ServedStoryOptions {
  /** A whole number from 0 to 2^53 - 1. */
  readonly seed: number;
  /** Rough guests: 3 when left out. */
  readonly lives?: number;
  /** Steps of each of them, some of several things: 5000 when left out. */
  readonly actions?: number;
  /** Kinds that are left out, whatever the seed draws. */
  readonly without?: readonly Kind[];
  /** Whether memory of this process is checked, which needs full garbage collections; default true. */
  readonly watchesMemory?: boolean;
  /** Does something to the device when it is built: for trying out whether a mistake of the model is found. */
  readonly sabotage?: (device: ServedDevice) => void;
}

/** Kinds of findings, by what was watched. */
export type ServedFindingKind =
  | 'thrown'
  | 'changed'
  | 'data'
  | 'memory'
  | 'completion'
  | 'interrupt'
  | 'descriptors'
  | 'heap'
  | 'silence'
  | 'unanswered';

interface ServedFinding {
  readonly kind: ServedFindingKind;
  readonly text: string;
  /** Number of the present or last rough guest, from 0. */
  readonly life: number;
  /** Last actions of that guest. */
  readonly actions: readonly string[];
}

export interface ServedStory {
  readonly seed: number;
  readonly findings: readonly ServedFinding[];
  readonly counts: KindCounts;
  readonly coverage: RoughCoverage;
  /** Memory that the process uses after the last life in addition to that after the first, after a collection; 0 when not watched. */
  readonly grownBytes: number;
  /** Longest time of this thread that a turn of the serving loop took. */
  readonly longestTurnMs: number;
}

const usualLives = 3;
const usualActions = 5000;
/** A turn that takes longer is a silence that a guest notices. */
const silenceMs = 1000;
/** The model makes room for objects as they are created and keeps it; beyond this, something is never given back. */
const grownBytesMax = 24 * bytesPerMib;
/** Differences of the last guest's text that are shown. */
const shownDifferences = 6;
const shownCharacters = 200;

/** Hardware for rough guests, in addition to the default. */
const hardware: readonly ParameterValues[] = [
  {},
  {},
  { 'hca.mttCacheLines': 1, 'hca.mptCacheEntries': 2 },
  { 'dma.tagCount': 1 },
  { 'pcie.link.lanes': 1, 'pcie.link.generation': 1 },
  { 'hca.qpcCacheEntries': 2, 'hca.cqcCacheEntries': 2 },
];

export function playServedStory(options: ServedStoryOptions): ServedStory {
  const random = new Random(options.seed, 'served hardware');
  const set = hardware[random.below(hardware.length)]!;
  const descriptorsBefore = openDescriptors();
  let story: StoryRun;
  {
    using device = new ServedDevice(configurationOf({ profile: servedProfile, set }));
    options.sabotage?.(device);
    story = new StoryRun(device, options);
    story.play();
  }
  if (openDescriptors() !== descriptorsBefore) story.find('descriptors', 'the server left descriptors open');
  const { findings, counts, coverage, grownBytes, longestTurnMs } = story;
  return { seed: options.seed, findings, counts, coverage, grownBytes, longestTurnMs };
}

class StoryRun {
  readonly findings: ServedFinding[] = [];
  readonly counts = noCounts();
  readonly coverage = noRoughCoverage();
  longestTurnMs = 0;
  grownBytes = 0;
  readonly #device: ServedDevice;
  readonly #options: ServedStoryOptions;
  readonly #descriptorsServed = openDescriptors();
  #life = 0;
  #guest: RoughGuest | undefined;

  constructor(device: ServedDevice, options: ServedStoryOptions) {
    this.#device = device;
    this.#options = options;
  }

  play(): void {
    const { lives = usualLives, watchesMemory = true } = this.#options;
    try {
      const first = this.#wellBehavedLife();
      const usedBytes = watchesMemory ? memoryInUseBytes() : 0;
      for (; this.#life < lives && this.findings.length === 0; this.#life++) this.#roughLife();
      if (this.findings.length > 0) return;
      const last = this.#wellBehavedLife();
      for (const difference of differencesOf(first, last)) this.find('changed', difference);
      this.grownBytes = watchesMemory ? memoryInUseBytes() - usedBytes : 0;
      if (this.grownBytes > grownBytesMax)
        this.find(
          'heap',
          `${(this.grownBytes / bytesPerMib).toFixed(0)} MiB more than after the first guest`,
        );
    } catch (error) {
      this.find('thrown', error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  }

  find(kind: ServedFindingKind, text: string): void {
    this.findings.push({ kind, text, life: this.#life, actions: [...(this.#guest?.actions ?? [])] });
  }

  #roughLife(): void {
    const { seed, actions = usualActions, without } = this.#options;
    const life = new GuestLife(this.#device);
    const random = (what: string): Random => new Random(seed, `served ${what} ${this.#life}`);
    const guest = new RoughGuest(life, random('life'), random('bystander'), without);
    this.#guest = guest;
    try {
      guest.live(actions);
      life.leave();
      life.raised();
      this.#device.pass(50);
      guest.bystander.judge();
      for (const unasked of guest.bystander.findings) this.find('completion', unasked);
      for (const damage of life.ram.damages()) this.find('memory', damage);
      if (life.raised().some((count) => count > 0))
        this.find('interrupt', 'a vector was raised after its guest had gone');
    } finally {
      for (const kind of kinds) this.counts[kind] += guest.counts[kind];
      addCoverage(this.coverage, guest.coverage);
      life.close();
    }
    this.#findInDevice();
  }

  #wellBehavedLife(): readonly string[] {
    const life = new GuestLife(this.#device);
    try {
      life.attach();
      const guest = new WellBehavedGuest(life);
      guest.run();
      guest.conclude();
      life.leave();
      for (const what of guest.wrong) this.find('data', what);
      return guest.lines;
    } finally {
      life.close();
      this.#findInDevice();
    }
  }

  /** Findings of the device and the server themselves. */
  #findInDevice(): void {
    const { emulation, slot, longestTurnMs } = this.#device;
    for (const { access, message, causes } of emulation.defects)
      this.find('thrown', [`${access}: ${message}`, ...causes.map(({ stack }) => stack)].join('\n'));
    const { abandonedLoadCount } = slot.access;
    if (abandonedLoadCount > 0) this.find('unanswered', `${abandonedLoadCount} loads were given up`);
    this.longestTurnMs = Math.max(this.longestTurnMs, longestTurnMs);
    if (longestTurnMs > silenceMs) this.find('silence', `${longestTurnMs.toFixed(0)} ms in one turn`);
    const open = openDescriptors();
    if (!this.#device.hasClient && open !== this.#descriptorsServed)
      this.find('descriptors', `${open} are open, ${this.#descriptorsServed} were before`);
  }
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
    const story = playServedStory({ ...tried, watchesMemory: wanted.has('heap') });
    if (!story.findings.some(({ kind }) => wanted.has(kind))) return false;
    best = { options: tried, story };
    return true;
  };
  for (let lives = 1; lives < (options.lives ?? usualLives); lives++) if (attempt({ lives })) break;
  // A guest's first actions do not depend on their number.
  let [enough, tooFew] = [options.actions ?? usualActions, -1];
  while (enough - tooFew > 1) {
    const middle = (enough + tooFew) >> 1;
    if (attempt({ actions: middle })) enough = middle;
    else tooFew = middle;
  }
  for (const kind of kinds) attempt({ without: [...(best.options.without ?? []), kind] });
  return best;
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

const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

/**
 * One mistake against the stories: `hca torture` runs in a tree with the mistake, until a story has a finding that the
 * unchanged source lacks for the same seed, or the time is up.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Mistake } from './mistake.ts';
import type { SourceTree } from './source-tree.ts';

export interface Trial {
  readonly mistake: Mistake;
  /** Undefined: missed. */
  readonly find: Find | undefined;
  /** Stories that were begun, in the order of their seeds, until it was found, or until the time was up … */
  readonly stories: number;
  /** … and their duration. */
  readonly seconds: number;
}

interface Find {
  /** The judge; `process` if the command itself crashed. */
  readonly by: string;
  readonly seed: number;
  /** The story that shows it, if known; undefined for stories of players. */
  readonly scene?: string | undefined;
  readonly what: string;
}

/** Stories that were not used while the judges were written; the same for every mistake. */
export const firstSeed = 2_000_000_000;
/** Limit of failures in one report of the command line; it is then restarted after them. */
const failuresMax = 25;
/** Limit of waiting for a story that runs when the time is up. */
const patienceMs = 330_000;

const findingPattern = /^seed (\d+)(?: \(\w+\))?: FOUND by ([^:]+): (.*)$/;

/** Whether a seed fails in the unchanged source; each is played once. */
export class UnchangedSource {
  readonly #tree: SourceTree;
  readonly #failures = new Map<number, Promise<boolean>>();

  constructor(tree: SourceTree) {
    this.#tree = tree;
  }

  fails(seed: number): Promise<boolean> {
    const known = this.#failures.get(seed) ?? this.#play(seed);
    this.#failures.set(seed, known);
    return known;
  }

  async #play(seed: number): Promise<boolean> {
    const child = torture(this.#tree, ['--seed', String(seed)]);
    child.stdout?.resume();
    await once(child, 'close');
    return child.exitCode !== 0;
  }
}

export async function tryMistake(
  mistake: Mistake,
  tree: SourceTree,
  unchanged: UnchangedSource,
  minutes: number,
  firstSeed: number,
): Promise<Trial> {
  using _change = tree.make(mistake);
  const beganMs = performance.now();
  const secondsNow = (): number => (performance.now() - beganMs) / 1000;
  let seed = firstSeed;
  for (;;) {
    const left = minutes - secondsNow() / 60;
    const stretch = left <= 0 ? undefined : await stretchOf(tree, unchanged, seed, left);
    if (stretch === undefined || stretch.next === undefined || stretch.find !== undefined) {
      const stories = (stretch?.find?.seed ?? stretch?.last ?? seed - 1) - firstSeed + 1;
      return { mistake, find: stretch?.find, stories, seconds: secondsNow() };
    }
    seed = stretch.next;
  }
}

interface Stretch {
  readonly find: Find | undefined;
  /** Last seed with a known result. */
  readonly last: number;
  /** Seed at which to continue; undefined if the time was up. */
  readonly next: number | undefined;
}

async function stretchOf(
  tree: SourceTree,
  unchanged: UnchangedSource,
  from: number,
  minutes: number,
): Promise<Stretch> {
  const seeds = `${from}..${from + 1_000_000}`;
  const child = torture(tree, ['--seeds', seeds, '--minutes', String(minutes), '--jobs', '1']);
  let complaint = '';
  child.stderr?.on('data', (text) => {
    complaint = `${complaint}${text}`.slice(-2000);
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), minutes * 60_000 + patienceMs);
  const closed = once(child, 'close');
  const failed = new Set<number>();
  let storyCount = 0;
  let last = from - 1;
  try {
    for await (const line of createInterface({ input: child.stdout! })) {
      const tally = /^(\d+) stories/.exec(line);
      if (tally !== null) storyCount = Number(tally[1]);
      const [, number, by, what] = findingPattern.exec(line) ?? [];
      if (number === undefined) continue;
      last = Number(number);
      if (failed.has(last)) continue;
      failed.add(last);
      if (!(await unchanged.fails(last)))
        return { find: { by: by!, seed: last, what: what! }, last, next: undefined };
      if (failed.size === failuresMax) return { find: undefined, last, next: last + 1 };
    }
    await closed;
    last = Math.max(last, from + storyCount - 1);
    const endedBadly = child.exitCode !== 0 && child.exitCode !== 1 && child.signalCode !== 'SIGKILL';
    const what =
      complaint
        .trim()
        .split('\n')
        .find((line) => /error/i.test(line)) ?? complaint.trim();
    return {
      find: endedBadly ? { by: 'process', seed: last + 1, what } : undefined,
      last,
      next: undefined,
    };
  } finally {
    clearTimeout(limit);
    child.kill('SIGKILL');
    await closed;
  }
}

function torture({ folder }: SourceTree, options: readonly string[]): ChildProcess {
  return spawn(process.execPath, [join(folder, 'cli/main.ts'), 'torture', ...options], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/**
 * The first stories of the search (trial.ts), in the order of what they cost: what one of them finds, a search in order finds
 * with it at the latest.
 */

import { type Story, sendsOf } from '../../system/torture/story.ts';
import { storyOfSeed } from '../../system/torture/story-of-seed.ts';
import type { Mistake } from './mistake.ts';
import type { SourceTree } from './source-tree.ts';
import { StoryPlayer } from './story-player.ts';
import { firstSeed, type Trial } from './trial.ts';

export class KnownStories {
  readonly #unchanged: SourceTree;
  /** By seed: estimates first, then what the stories have taken. */
  readonly #costs: Map<number, number>;
  readonly #fails = new Map<number, boolean>();

  /** @param text that a story must have in its JSON to be played: a parameter's path, a verb, a step */
  constructor(unchanged: SourceTree, count: number, text = '') {
    this.#unchanged = unchanged;
    const stories = Array.from({ length: count }, (_, index) => storyOfSeed(firstSeed + index));
    this.#costs = new Map(
      stories
        .filter((story) => JSON.stringify(story).includes(text))
        .map((story) => [story.seed, costOf(story)]),
    );
  }

  async tryMistake(mistake: Mistake, tree: SourceTree, minutes: number): Promise<Trial> {
    using _change = tree.make(mistake);
    const beganMs = performance.now();
    const seconds = (): number => (performance.now() - beganMs) / 1000;
    const order = [...this.#costs].toSorted(([, left], [, right]) => left - right).map(([seed]) => seed);
    let player = new StoryPlayer(tree);
    let stories = 0;
    try {
      for (const seed of order) {
        if (seconds() > minutes * 60) break;
        if (this.#fails.get(seed) === true) continue;
        stories++;
        const { findings, ms } = await player.play(seed);
        const [finding] = findings;
        if (finding === undefined) {
          this.#costs.set(seed, ms);
          continue;
        }
        if (await this.#failsUnchanged(seed)) {
          await player[Symbol.asyncDispose]();
          player = new StoryPlayer(tree);
          continue;
        }
        return {
          mistake,
          find: { by: finding.judge, seed, what: finding.what },
          stories,
          seconds: seconds(),
        };
      }
    } finally {
      await player[Symbol.asyncDispose]();
    }
    return { mistake, find: undefined, stories, seconds: seconds() };
  }

  async #failsUnchanged(seed: number): Promise<boolean> {
    const known = this.#fails.get(seed);
    if (known !== undefined) return known;
    await using player = new StoryPlayer(this.#unchanged);
    const { findings } = await player.play(seed);
    this.#fails.set(seed, findings.length > 0);
    return findings.length > 0;
  }
}

/** Scenes stay in the order of their seeds: each of them has its turn. */
const sceneMs = 250;

/** Milliseconds, roughly. */
function costOf(story: Story): number {
  if (story.scene !== undefined) return sceneMs;
  const sends = [...sendsOf(story)];
  const bytes = sends.reduce(
    (sum, { plan }) => sum + plan.sges.reduce((total, { length }) => total + length, 0),
    0,
  );
  const once = 300 * story.programs.length + 15 * sends.length + bytes / 500;
  return story.again === undefined ? once : 2 * once;
}

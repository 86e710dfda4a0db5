/**
 * The stories of a search in the order of their seeds (trial.ts), each played once in the unchanged source: its cost, and
 * whether it has a finding without any mistake. A mistake is then searched first in the stories that are likely to show it: a
 * search in order finds it at the latest with the same story.
 */
import { type Finding, storyOfSeed } from '../../torture/index.ts';
import type { Mistake } from './mistake.ts';
import type { SourceTree } from './source-tree.ts';
import { type StoryName, StoryPlayer } from './story-player.ts';
import type { Trial } from './trial.ts';

interface KnownStory {
  readonly seed: number;
  /** Name of the scene; undefined for a story of players. */
  readonly scene: string | undefined;
  /** Processor time. */
  readonly cpuMs: number;
  /** Time of this story and all before it. */
  readonly endMs: number;
  readonly findings: readonly Finding[];
}

export class KnownStories {
  readonly #stories: readonly KnownStory[];
  readonly #firstSeed: number;
  readonly #scenes: readonly string[];

  private constructor(stories: readonly KnownStory[], firstSeed: number, scenes: readonly string[]) {
    this.#stories = stories;
    this.#firstSeed = firstSeed;
    this.#scenes = scenes;
  }

  /** Plays as many stories as one processor plays in `minutes`. @param scenes to be played in turn; empty: as the seeds draw them */
  static async play(
    unchanged: SourceTree,
    {
      firstSeed,
      minutes,
      jobs,
      scenes = [],
    }: { firstSeed: number; minutes: number; jobs: number; scenes?: readonly string[] },
    tell: (minutes: number) => void,
  ): Promise<KnownStories> {
    const played = new Map<number, KnownStory>();
    let next = firstSeed;
    let totalMs = 0;
    const playOn = async (): Promise<void> => {
      await using player = new StoryPlayer(unchanged);
      while (totalMs < minutes * 60_000) {
        const seed = next++;
        const wanted = scenes[seed % scenes.length];
        const { findings, cpuMs } = await player.play(nameOf(seed, wanted));
        totalMs += cpuMs;
        const scene = wanted ?? storyOfSeed(seed).scene?.name;
        played.set(seed, { seed, scene, cpuMs, endMs: 0, findings });
        tell(totalMs / 60_000);
      }
    };
    await Promise.all(Array.from({ length: jobs }, playOn));
    let endMs = 0;
    const stories = [...played.values()]
      .toSorted((left, right) => left.seed - right.seed)
      .map((story) => {
        endMs += story.cpuMs;
        return { ...story, endMs };
      });
    return new KnownStories(stories, firstSeed, scenes);
  }

  get count(): number {
    return this.#stories.length;
  }

  /** Stories with findings in the unchanged source. */
  failing(): readonly { readonly seed: number; readonly findings: readonly Finding[] }[] {
    return this.#stories.filter(({ findings }) => findings.length > 0);
  }

  /** Searches for a mistake; the cost of a search in order is computed from that of the stories without the mistake. */
  async tryMistake(mistake: Mistake, tree: SourceTree): Promise<Trial> {
    using _change = tree.make(mistake);
    const stories = this.#stories;
    const likely = stories.filter(({ scene }) => scene === mistake.scene);
    const others = stories.filter(({ scene }) => scene !== mistake.scene);
    const order = [...likely, ...others.toSorted((left, right) => left.cpuMs - right.cpuMs)];
    await using player = new StoryPlayer(tree);
    for (const { seed, scene, endMs, findings } of order) {
      const [finding] =
        findings.length > 0
          ? []
          : (await player.play(nameOf(seed, this.#scenes[seed % this.#scenes.length]))).findings;
      if (finding === undefined) continue;
      const find = { by: finding.judge, seed, scene, what: finding.what };
      return { mistake, find, stories: seed - this.#firstSeed + 1, seconds: endMs / 1000 };
    }
    return { mistake, find: undefined, stories: stories.length, seconds: stories.at(-1)!.endMs / 1000 };
  }
}

const nameOf = (seed: number, scene: string | undefined): StoryName =>
  scene === undefined ? seed : `${scene} ${seed}`;

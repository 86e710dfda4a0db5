/**
 * The stories of a search in the order of their seeds (trial.ts), each played once in the unchanged source: what it costs, and
 * whether it has a finding without any mistake. A mistake is then looked for in those first that are likely to show it: what
 * one of them finds, a search in order finds with it at the latest.
 */
import { storyOfSeed } from '../../system/torture/story-of-seed.ts';
import type { Mistake } from './mistake.ts';
import type { SourceTree } from './source-tree.ts';
import { StoryPlayer } from './story-player.ts';
import { firstSeed, type Trial } from './trial.ts';

interface KnownStory {
  readonly seed: number;
  /** Of the scene; undefined of a story of players. */
  readonly scene: string | undefined;
  /** Of the processor. */
  readonly cpuMs: number;
  /** Of this and all before it. */
  readonly endMs: number;
  readonly hasFindings: boolean;
}

export class KnownStories {
  readonly #stories: readonly KnownStory[];

  private constructor(stories: readonly KnownStory[]) {
    this.#stories = stories;
  }

  /** Plays so many as one processor plays in `minutes`. */
  static async play(
    unchanged: SourceTree,
    minutes: number,
    jobs: number,
    tell: (minutes: number) => void,
  ): Promise<KnownStories> {
    const played = new Map<number, KnownStory>();
    let next = firstSeed;
    let totalMs = 0;
    const playOn = async (): Promise<void> => {
      await using player = new StoryPlayer(unchanged);
      while (totalMs < minutes * 60_000) {
        const seed = next++;
        const { findings, cpuMs } = await player.play(seed);
        totalMs += cpuMs;
        const scene = storyOfSeed(seed).scene?.name;
        played.set(seed, { seed, scene, cpuMs, endMs: 0, hasFindings: findings.length > 0 });
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
    return new KnownStories(stories);
  }

  /** Number of stories, and of those that have findings in the unchanged source. */
  counts(): { stories: number; withFindings: number } {
    const withFindings = this.#stories.filter(({ hasFindings }) => hasFindings).length;
    return { stories: this.#stories.length, withFindings };
  }

  /** Looks for a mistake; what a search in order costs is told by what the stories cost without the mistake. */
  async tryMistake(mistake: Mistake, tree: SourceTree): Promise<Trial> {
    using _change = tree.make(mistake);
    const stories = this.#stories;
    const likely = stories.filter(({ scene }) => scene === mistake.scene);
    const others = stories.filter(({ scene }) => scene !== mistake.scene);
    const order = [...likely, ...others.toSorted((left, right) => left.cpuMs - right.cpuMs)];
    await using player = new StoryPlayer(tree);
    for (const { seed, scene, endMs, hasFindings } of order) {
      const [finding] = hasFindings ? [] : (await player.play(seed)).findings;
      if (finding === undefined) continue;
      const find = { by: finding.judge, seed, scene, what: finding.what };
      return { mistake, find, stories: seed - firstSeed + 1, seconds: endMs / 1000 };
    }
    return { mistake, find: undefined, stories: stories.length, seconds: stories.at(-1)!.endMs / 1000 };
  }
}

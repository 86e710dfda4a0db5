/** One mistake against the stories of one kind, which have no findings without a mistake. */
import type { Mistake } from './mistake.ts';
import type { SourceTree } from './source-tree.ts';
import { StoryPlayer } from './story-player.ts';
import type { Trial } from './trial.ts';

/** Numbers of stories, from seed 1 on. */
const storiesMax = { served: 20, fabric: 150 } as const;

/** Searches for a mistake in short stories of a served device, or in stories of fabrics. */
export async function tryKind(
  mistake: Mistake,
  tree: SourceTree,
  kind: keyof typeof storiesMax,
): Promise<Trial> {
  using _change = tree.make(mistake);
  await using player = new StoryPlayer(tree);
  let seconds = 0;
  for (let seed = 1; seed <= storiesMax[kind]; seed++) {
    const { findings, cpuMs } = await player.play(`${kind} ${seed}`);
    seconds += cpuMs / 1000;
    const [finding] = findings;
    if (finding === undefined) continue;
    const find = { by: finding.judge, seed, scene: kind, what: finding.what };
    return { mistake, find, stories: seed, seconds };
  }
  return { mistake, find: undefined, stories: storiesMax[kind], seconds };
}

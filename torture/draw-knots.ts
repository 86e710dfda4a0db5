/**
 * Rare coincidences that have hidden defects: an answer that is lost while everything else goes well, and memory that is taken
 * away while slow hardware has work with it. Added to a finished story.
 */

import type { FaultEntry } from '../machine/faults/index.ts';
import type { ParameterValues } from '../machine/profile/index.ts';
import type { Random } from '../sim/index.ts';
import type { ProgramPlan, Step, Story } from './story.ts';

const slowHardware: readonly ParameterValues[] = [
  { 'dma.tagCount': 1 },
  { 'dma.tagCount': 2, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000 },
];

/** @returns the story, in some cases with such a knot in it */
export function withKnots(random: Random, story: Story): Story {
  if (story.climate === 'lossy' && random.chance(0.35)) return withLostAnswers(random, story);
  if (story.climate === 'flawed' && random.chance(0.35)) return withDeregistrations(random, story);
  return story;
}

function withSlowHardware(random: Random, { set }: Story): ParameterValues {
  const slow = slowHardware[random.below(slowHardware.length)]!;
  return random.chance(0.6) ? { ...slow, ...set } : set;
}

/** Only one side asks, so that the other sends nothing but answers: some of those are lost. */
function withLostAnswers(random: Random, story: Story): Story {
  const asking = random.below(2);
  const programs = story.programs.map((plan): ProgramPlan => {
    const steps = plan.steps.filter((step) => step.do !== 'post' || plan.node === asking);
    return { ...plan, steps };
  });
  const faults = Array.from(
    { length: 1 + random.below(3) },
    (): FaultEntry => ({ packet: 'corrupted', nth: 1 + random.below(12), node: 1 - asking }),
  );
  return { ...story, set: withSlowHardware(random, story), programs, faults };
}

/** Regions are deregistered right after what was posted from them. */
function withDeregistrations(random: Random, story: Story): Story {
  const chosen = random.below(story.programs.length);
  const programs = story.programs.map((plan, program): ProgramPlan => {
    const posts = plan.steps.flatMap(({ do: what }, index) => (what === 'post' ? [index] : []));
    if (program !== chosen || posts.length === 0) return plan;
    const at = posts[random.below(posts.length)]!;
    const area = random.below(3);
    const gone: Step[] = [
      ...(random.chance(0.5) ? [{ do: 'sleep', ns: random.below(6000) } as const] : []),
      { do: 'deregister', area, isRenewed: random.chance(0.5) },
    ];
    return { ...plan, steps: plan.steps.toSpliced(at + 1, 0, ...gone) };
  });
  return { ...story, set: withSlowHardware(random, story), programs };
}

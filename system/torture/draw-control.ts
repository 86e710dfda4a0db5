/**
 * Control that meets traffic: send queues drained and started again, limits of SRQs, numbers of QPs that lie far apart.
 * Drawn over a story that is there already, so that the rest of it stays as it was.
 */
import type { Random } from '../../sim/index.ts';
import type { ProgramPlan, Step, Story } from './story.ts';

/** Numbers that differ in no low bit are taken for one by whatever looks at the low bits only. */
const qpnGaps = [255, 1023, 2047];

/** @returns the story, in some cases with more of control */
export function withControl(random: Random, story: Story): Story {
  const hasQuiesces = random.chance(0.25);
  const hasLimits = random.chance(0.5);
  const hasGap = random.chance(0.04);
  const gap = qpnGaps[random.below(qpnGaps.length)]!;
  const programs = story.programs.map((plan): ProgramPlan => {
    const steps = plan.steps.flatMap((step) => [
      step,
      ...(hasQuiesces && random.chance(0.08) ? quiesce(random, plan) : []),
      ...(hasLimits && random.chance(0.1) ? limit(random, plan) : []),
    ]);
    return { ...plan, steps, qpnGap: hasGap && plan.qps.length > 1 ? gap : 0 };
  });
  return { ...story, programs };
}

function quiesce(random: Random, { qps }: ProgramPlan): Step[] {
  if (qps.length === 0) return [];
  const qp = random.below(qps.length);
  return qps[qp]!.transport === 'RC' ? [{ do: 'quiesce', qp }] : [];
}

function limit(random: Random, { srqs }: ProgramPlan): Step[] {
  if (srqs.length === 0) return [];
  const srq = random.below(srqs.length);
  return [{ do: 'limitShared', srq, limit: random.below(srqs[srq]!.maxWr + 1) }];
}

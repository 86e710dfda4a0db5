/**
 * Areas that are registered on demand: the device asks for their pages, and the program gives some back between and during
 * requests. Added to a finished story, so that the rest of it stays as it was.
 */
import type { Random } from '../sim/index.ts';
import { IBV_ACCESS_ON_DEMAND } from '../userlib/index.ts';
import type { ProgramPlan, Step, Story } from './story.ts';

/** @returns the story, in one of five cases with areas on demand */
export function withOnDemand(random: Random, story: Story): Story {
  if (!random.chance(0.2)) return story;
  const share = random.chance(0.5) ? 1 : 0.5;
  const givesBack = random.chance(0.7);
  const programs = story.programs.map((plan): ProgramPlan => {
    const areas = plan.areas.map((area) =>
      random.chance(share) ? { ...area, access: area.access | IBV_ACCESS_ON_DEMAND } : area,
    );
    return { ...plan, areas, steps: givesBack ? withGiveBacks(random, plan) : plan.steps };
  });
  const set = {
    ...(random.chance(0.5) ? { 'driver.pageRequestPagesMax': 1 + random.below(8) } : {}),
    // Each request touches up to 64 pages; fewer than that, and pages go as fast as they come.
    ...(random.chance(0.4) ? { 'driver.onDemandPagesMax': 128 + random.below(400) } : {}),
    ...story.set,
  };
  return { ...story, set, programs };
}

function withGiveBacks(random: Random, { areas, steps }: ProgramPlan): Step[] {
  return steps.flatMap((step): Step[] => {
    if (!random.chance(0.15)) return [step];
    const area = random.below(areas.length);
    const pageCount = Math.ceil(areas[area]!.lengthBytes / 4096);
    return [
      step,
      { do: 'giveBack', area, page: random.below(pageCount), pages: 1 + random.below(pageCount) },
    ];
  });
}

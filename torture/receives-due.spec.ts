import { describe, expect, it } from 'vitest';
import { messagesWithoutReceive } from './receives-due.ts';
import type { ProgramPlan, Step, Story } from './story.ts';
import { playersOfSeed } from './story-of-seed.ts';
import { consumesReceive } from './verbs.ts';

const withSteps = (story: Story, keep: (step: Step) => boolean): Story => ({
  ...story,
  programs: story.programs.map(
    (plan): ProgramPlan => ({ ...plan, early: plan.early.filter(keep), steps: plan.steps.filter(keep) }),
  ),
});

const isReceive = (step: Step): boolean => step.do === 'receive' || step.do === 'receiveShared';
const isMessage = (step: Step): boolean =>
  step.do === 'post' && step.wrs.some(({ opcode }) => consumesReceive(opcode));

describe('messages without a receive', () => {
  it('are none in calm stories as they are drawn, which use receive queues of their own and shared ones', () => {
    const stories = Array.from({ length: 400 }, (_, seed) => playersOfSeed(seed)).filter(
      ({ climate }) => climate === 'calm',
    );
    const steps = stories.flatMap(({ programs }) => programs.flatMap(({ early }) => early));
    expect(new Set(steps.map((step) => step.do))).toEqual(new Set(['receive', 'receiveShared']));
    for (const story of stories) expect(messagesWithoutReceive(story), `seed ${story.seed}`).toBe(0);
  });

  it('are all of them where the receives are left out, and none where the messages are left out as well', () => {
    for (let seed = 0; seed < 50; seed++) {
      const story = playersOfSeed(seed);
      const messages = story.programs.flatMap(({ steps }) =>
        steps.flatMap((step) =>
          step.do === 'post' ? step.wrs.filter(({ opcode }) => consumesReceive(opcode)) : [],
        ),
      );
      const hungry = withSteps(story, (step) => !isReceive(step));
      expect(messagesWithoutReceive(hungry)).toBe(messages.length);
      expect(messagesWithoutReceive(withSteps(hungry, (step) => !isMessage(step)))).toBe(0);
    }
  });
});

/**
 * Turns: objects that are destroyed and created again in mid-story are played, and judged like those that existed from
 * the beginning.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS } from '../userlib/index.ts';
import { judges } from './judges/index.ts';
import type { CompletionSeen } from './observations.ts';
import { type Played, playStory, runStory } from './run-story.ts';
import { isCurrent, type SendPlan, sendsOf } from './story.ts';
import { playersOfSeed } from './story-of-seed.ts';
import { exampleStory } from './testing/example-story.ts';

const verdict = (name: string, played: Played): string[] =>
  judges.find((judge) => judge.name === name)!.judge(played);

/** The story with one completion altered, or left out. */
const told = (played: Played, one: CompletionSeen, other: readonly CompletionSeen[]): Played => ({
  ...played,
  seen: played.seen.map(
    (seen) =>
      seen && {
        ...seen,
        completions: seen.completions.flatMap((completion) => (completion === one ? other : [completion])),
      },
  ),
});

interface Ended {
  readonly program: number;
  readonly plan: SendPlan;
  readonly end: CompletionSeen;
}

/** The requests that completed, each with its plan. */
function endedOf({ story, seen }: Played): Ended[] {
  const plans = new Map([...sendsOf(story)].map(({ plan }) => [plan.id, plan]));
  return seen.flatMap((observations, program) =>
    (observations?.completions ?? []).flatMap((end) => {
      const plan = plans.get(end.id);
      return plan === undefined ? [] : [{ program, plan, end }];
    }),
  );
}

describe('a story with turns', () => {
  /** Calm, of two turns: RC QPs in new objects and through RESET, CQs with channels, areas elsewhere. */
  let played: Played;
  const renewalOf = ({ program, end }: Ended) => played.story.programs[program]!.qps[end.qp]?.renewal;

  beforeAll(async () => {
    played = await playStory(
      { ...exampleStory(128), again: undefined },
      { partition: 'single', shuffleSeed: undefined },
    );
  });

  it('goes on after them on QPs that are new objects, and on QPs that went through RESET', () => {
    for (const { name } of judges) expect(verdict(name, played)).toEqual([]);
    const after = endedOf(played).filter(({ end }) => end.status === IBV_WC_SUCCESS);
    expect(new Set(after.map((one) => renewalOf(one)?.how))).toEqual(new Set([undefined, 'create', 'reset']));
    expect(new Set(after.map((one) => renewalOf(one)?.turn ?? 0))).toEqual(new Set([0, 1, 2]));
  });

  it('destroys CQs whose events it took without acknowledging them one by one', () => {
    const refusals = played.seen.flatMap((seen) => seen?.refusals ?? []);
    expect(refusals.filter((refusal) => refusal.startsWith('renew'))).toEqual([]);
  });

  it('is not what was notified when a request completes on the QP whose place its own took', () => {
    const one = endedOf(played).find((ended) => renewalOf(ended) !== undefined)!;
    const { of: former } = renewalOf(one)!;
    const wrong = told(played, one.end, [{ ...one.end, qp: former }]);
    expect(verdict('completions', wrong).join()).toMatch(/completed on another QP/);
  });

  it('is not what was notified when the last request of a QP before a turn never completes', () => {
    const isReplaced = ({ program, end }: Ended): boolean =>
      played.story.programs[program]!.qps.some(({ renewal }) => renewal?.of === end.qp);
    const last = endedOf(played).findLast(isReplaced)!;
    const wrong = told(played, last.end, []);
    expect(verdict('completions', wrong).join()).toMatch(new RegExp(`request ${last.plan.id} .*completed`));
  });

  it('is not what was notified when an area that got another address holds other bytes', () => {
    const { turns } = played.story;
    const program = turns!.at(-1)!.programs.findIndex(({ areas, isMoved }) => isMoved && areas.length > 0);
    const [area] = turns!.at(-1)!.programs[program]!.areas;
    const seen = played.seen.map((observations, index) => {
      if (observations === null || index !== program) return observations;
      const bytes = Buffer.from(observations.finals[area!]!, 'base64');
      bytes[bytes.length - 1]! ^= 0x80;
      return { ...observations, finals: observations.finals.with(area!, bytes.toString('base64')) };
    });
    expect(verdict('bytes', { ...played, seen }).join()).toMatch(
      new RegExp(`program ${program}, area ${area}, byte .*at the end`),
    );
  });
});

describe('a story whose requests use keys from before a turn', () => {
  it.each([
    { flaw: 'oldLocalKey', example: 483, status: IBV_WC_LOC_PROT_ERR },
    { flaw: 'oldRemoteKey', example: 387, status: IBV_WC_REM_ACCESS_ERR },
  ])('ends them as wrong keys do ($flaw), and is not what was told when one succeeds', async (keys) => {
    const { flaw, example, status } = keys;
    const played = await playStory(
      { ...exampleStory(example), again: undefined },
      { partition: 'single', shuffleSeed: undefined },
    );
    for (const { name } of judges) expect(verdict(name, played)).toEqual([]);
    // IBTA 11.6.2: a local protection error of the requester; a remote access error of the responder.
    const failed = endedOf(played).find(({ plan, end }) => plan.flaw === flaw && end.status === status)!;
    expect(failed).toBeDefined();
    const wrong = told(played, failed.end, [{ ...failed.end, status: IBV_WC_SUCCESS }]);
    expect(verdict('completions', wrong).join()).toContain(`in spite of its flaw: ${flaw}`);
  });
});

describe('drawing', () => {
  it('lets one program of a node at most make QPs for their numbers: those of more do not fit memory', async () => {
    const story = exampleStory(26);
    for (const node of [0, 1]) {
      const gaps = story.programs.filter((plan) => plan.node === node).map(({ qpnGap }) => qpnGap);
      expect(gaps.filter((gap) => gap > 0)).toEqual([2047]);
    }
    expect((await runStory(story)).findings).toEqual([]);
  });

  it('asks only QPs that are there to say when they are drained', () => {
    for (let seed = 200; seed < 260; seed++)
      for (const plan of playersOfSeed(seed).programs) {
        let turn = 0;
        for (const step of plan.steps) {
          if (step.do === 'turn') turn = step.turn;
          if (step.do === 'quiesce') expect(isCurrent(plan, step.qp, turn)).toBe(true);
        }
      }
  });
});

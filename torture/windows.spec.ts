/** Memory windows in stories of players: drawn in addition to the rest of a story, played without a finding, judged. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_BIND_MW,
  IBV_WR_LOCAL_INV,
  IBV_WR_SEND_WITH_INV,
} from '../userlib/index.ts';
import { judges } from './judges/index.ts';
import type { CompletionSeen } from './observations.ts';
import { renderStory } from './render-story.ts';
import { type Played, playStory, runStory } from './run-story.ts';
import { type SendPlan, type Story, sendsOf } from './story.ts';
import { playersOfSeed } from './story-of-seed.ts';
import { exampleStory } from './testing/example-story.ts';

const hasWindows = ({ programs }: Story): boolean => programs.some(({ windows }) => windows !== undefined);
const opcodesOf = (story: Story): Set<number> => new Set([...sendsOf(story)].map(({ plan }) => plan.opcode));

describe('windows in stories', () => {
  const drawn = Array.from({ length: 300 }, (_, seed) => playersOfSeed(seed));

  it('come to about a fifth of the stories of players, with every way to take them back', () => {
    const some = drawn.filter(hasWindows);
    expect(some.length).toBeGreaterThan(40);
    expect(some.length).toBeLessThan(100);
    const opcodes = new Set(some.flatMap((story) => [...opcodesOf(story)]));
    for (const opcode of [IBV_WR_BIND_MW, IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV])
      expect(opcodes.has(opcode)).toBe(true);
  });

  it('are never waited for while a send queue is stopped', () => {
    for (const { programs } of drawn.filter(hasWindows))
      for (const { steps } of programs)
        for (const [index, step] of steps.entries()) {
          if (step.do !== 'tell' && step.do !== 'await') continue;
          const control = steps.slice(0, index).filter(({ do: what }) => what === 'modify');
          const isStopped = control.some(
            (stop, place) =>
              stop.do === 'modify' &&
              stop.to === 'SQD' &&
              !control.slice(place + 1).some((start) => start.do === 'modify' && start.qp === stop.qp),
          );
          const isStartedLater = steps
            .slice(index)
            .some((start) => start.do === 'modify' && start.to === 'RTS');
          expect(isStopped && isStartedLater).toBe(false);
        }
  });

  // 135, 554, 700: invalidated keys are used; 466: by a queue whose device has failed; 473, 745: both kinds of
  // invalidation.
  it.each([135, 466, 473, 554, 700, 745] as const)(
    'of example %i are played without a finding',
    async (number) => {
      const story = { ...exampleStory(`windows ${number}`), again: undefined };
      const { findings } = await runStory(story);
      expect(findings, renderStory(story).join('\n')).toEqual([]);
    },
  );
});

describe('the judges of a story with windows', () => {
  /** Calm: bound, used, taken back by SEND with Invalidate. */
  let calm: Played;
  /** Flawed story: one request uses an invalidated key. */
  let flawed: Played;

  beforeAll(async () => {
    const play = (number: number): Promise<Played> =>
      playStory(
        { ...exampleStory(`windows ${number}`), again: undefined },
        { partition: 'single', shuffleSeed: undefined },
      );
    calm = await play(473);
    flawed = await play(135);
  });

  const found = (name: string, played: Played): string =>
    judges
      .find((judge) => judge.name === name)!
      .judge(played)
      .join('\n');

  /** Returns the story with the first completion of such a request changed. */
  function altered(
    played: Played,
    isMeant: (plan: SendPlan, end: CompletionSeen) => boolean,
    change: Partial<CompletionSeen>,
  ): Played {
    const plans = new Map([...sendsOf(played.story)].map(({ plan }) => [plan.id, plan]));
    let isDone = false;
    const seen = played.seen.map((observations) =>
      observations === null
        ? null
        : {
            ...observations,
            completions: observations.completions.map((end) => {
              const plan = plans.get(end.id);
              if (isDone || plan === undefined || !isMeant(plan, end)) return end;
              isDone = true;
              return { ...end, ...change };
            }),
          },
    );
    expect(isDone).toBe(true);
    return { ...played, seen };
  }

  const isUse = ({ through, remote }: SendPlan): boolean => through !== undefined && remote !== undefined;

  it('find a request that succeeded by a key that was gone', () => {
    const told = altered(flawed, (plan, { status }) => isUse(plan) && status === IBV_WC_REM_ACCESS_ERR, {
      status: IBV_WC_SUCCESS,
      bytes: '',
    });
    expect(found('completions', told)).toMatch(/by the key of a window that was gone/);
  });

  it('find a request that was refused while its window was bound', () => {
    const told = altered(calm, (plan, { status }) => isUse(plan) && status === IBV_WC_SUCCESS, {
      status: IBV_WC_REM_ACCESS_ERR,
    });
    expect(found('completions', told)).toMatch(/REM_ACCESS_ERR: it had no flaw/);
  });

  it('find a bind that failed, or was counted otherwise', () => {
    const isBind = ({ opcode }: SendPlan): boolean => opcode === IBV_WR_BIND_MW;
    expect(found('completions', altered(calm, isBind, { status: 6 }))).toMatch(/MW_BIND_ERR: it had no flaw/);
    expect(found('completions', altered(calm, isBind, { opcode: 0 }))).toMatch(/opcode is 0, expected 5/);
    const { operations } = calm.report;
    const row = operations['BIND_MW']!;
    const report = {
      ...calm.report,
      operations: { ...operations, BIND_MW: { ...row, count: row.count + 1 } },
    };
    expect(found('report', { ...calm, report })).toMatch(/BIND_MW: the report says/);
  });

  it('find a receive that names another key than was invalidated', () => {
    const seen = calm.seen.map((observations) =>
      observations === null
        ? null
        : {
            ...observations,
            completions: observations.completions.map((end) =>
              (end.flags & 8) === 0 ? end : { ...end, imm: end.imm ^ 1 },
            ),
          },
    );
    expect(found('completions', { ...calm, seen })).toMatch(/the key is \d+, expected \d+/);
  });

  it('find bytes that a WRITE put there after its window was gone', () => {
    const use = [...sendsOf(flawed.story)].filter(({ plan }) => isUse(plan) && plan.remote!.area === 4);
    expect(use.length).toBeGreaterThan(0);
    const owner = flawed.story.programs.findIndex(({ windows }) => windows !== undefined);
    const seen = flawed.seen.map((observations, program) =>
      observations === null || program !== owner
        ? observations
        : {
            ...observations,
            finals: observations.finals.map((bytes, area) => {
              const buffer = Buffer.from(bytes, 'base64');
              if (area === 4) buffer[buffer.length - 1]! ^= 0x80;
              return buffer.toString('base64');
            }),
          },
    );
    expect(found('bytes', { ...flawed, seen })).toMatch(/area 4, byte \d+, at the end/);
  });
});

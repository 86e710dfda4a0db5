/** Stories by seed: drawn the same every time, played without a finding, made small when they fail. */
import { describe, expect, it } from 'vitest';
import { epochLengthPs } from '../sim/index.ts';
import { itOfAll } from '../test/extent.ts';
import { messagesWithoutReceive } from './receives-due.ts';
import { renderStory } from './render-story.ts';
import { epochPsFor, runStory, textOf } from './run-story.ts';
import { kindOf, shrinkStory } from './shrink.ts';
import { type Again, climates, type Step, type Story } from './story.ts';
import { plain, playersOfSeed } from './story-of-seed.ts';
import { exampleStory } from './testing/example-story.ts';
import { consumesReceive } from './verbs.ts';

/** Steps of stories that are drawn for players; scenes have others. */
const steps: readonly Step['do'][] = [
  ...(['post', 'receive', 'receiveShared', 'limitShared', 'drain', 'sleep', 'refill', 'peek'] as const),
  ...(['registerScratch', 'reregister', 'deregister', 'churn', 'giveBack', 'turn'] as const),
  ...(['resizeCq', 'moderate', 'awaitEvent', 'awaitAll', 'modify', 'quiesce', 'destroy'] as const),
  ...(['tell', 'await', 'deallocateWindow', 'refillTarget', 'exit'] as const),
];

const stepsOf = ({ programs }: Story): Step[] => programs.flatMap((plan) => [...plan.early, ...plan.steps]);

/** Returns the shortest of these stories, enough that every climate and every step occurs. */
function quickOnes(all: readonly Story[]): Story[] {
  const seen = new Set<string>();
  return all
    .toSorted((left, right) => stepsOf(left).length - stepsOf(right).length)
    .filter((story) => {
      const fresh = [story.climate, ...stepsOf(story).map((step) => step.do)].filter(
        (what) => !seen.has(what),
      );
      for (const what of fresh) seen.add(what);
      return fresh.length > 0;
    });
}

describe('stories', () => {
  const quick = quickOnes(Array.from({ length: 600 }, (_, seed) => playersOfSeed(seed)));

  it('have every climate and every step among them', () => {
    expect(new Set(quick.map(({ climate }) => climate))).toEqual(new Set(climates));
    expect(new Set(quick.flatMap(stepsOf).map((step) => step.do))).toEqual(new Set(steps));
  });

  it.each(quick.map(({ seed }) => seed))(
    'of seed %i are played without a finding',
    {
      timeout: 300_000,
    },
    async (seed) => {
      const { findings, refused } = await runStory(playersOfSeed(seed));
      expect(findings).toEqual([]);
      expect(refused).toBeUndefined();
    },
  );

  it('have the same outcome without shortcuts', async () => {
    const [usual, without] = await Promise.all(
      [exampleStory(8), plain(exampleStory(8))].map((story) => runStory(story)),
    );
    expect(without!.findings).toEqual(usual!.findings);
    expect(textOf(without!.played!.report)).toBe(textOf(usual!.played!.report));
    expect(textOf(without!.played!.results)).toBe(textOf(usual!.played!.results));
  });

  it('that go on and on do not end: a finding that says who goes on and what the programs wait for', async () => {
    const story = exampleStory(8);
    const looksOften = { ...story, set: { ...story.set, 'machine.pollPatienceMs': 1 } };
    expect((await runStory(looksOften)).findings).toEqual([]);
    const { findings } = await runStory(looksOften, 5000);
    expect(findings[0]).toMatchObject({
      judge: 'ending',
      what: expect.stringMatching(
        /programs have not ended after \d+ steps, at \d+ ps; \w+ takes most of them; program 'player0' on node 0 waits in /,
      ),
    });
  });

  it('are drawn the same from the same seed, and otherwise from another', () => {
    expect(playersOfSeed(7)).toEqual(playersOfSeed(7));
    expect(playersOfSeed(8)).not.toEqual(playersOfSeed(7));
  });

  it('survive JSON, so that they can be kept', () => {
    const story = playersOfSeed(12);
    expect(JSON.parse(JSON.stringify(story))).toEqual(JSON.parse(JSON.stringify(playersOfSeed(12))));
    expect(renderStory(JSON.parse(JSON.stringify(story)) as Story)).toEqual(renderStory(story));
  });

  it('say how they are played once more, and nothing of what is not asked for', () => {
    const again = { partition: 'single', shuffleSeed: undefined } as const;
    const linesOf = (more: Partial<Again>) =>
      renderStory({ ...playersOfSeed(7), again: { ...again, ...more } }).filter((line) =>
        /^again/.test(line),
      );
    expect(linesOf({})).toEqual(['again in partition single']);
    expect(linesOf({ shuffleSeed: 4, epochPs: 1e9, isPlain: true, isUnwatched: true })).toEqual([
      'again in partition single, shuffled by 4, in epochs of 1000000000 ps, without shortcuts, without observers',
    ]);
  });

  itOfAll(
    'that fail are made small, and still fail in the same way',
    async () => {
      // The story claims that a request has a flaw that it lacks: its success is a finding.
      const story = exampleStory(10);
      const liar: Story = {
        ...story,
        again: undefined,
        programs: story.programs.map((plan) => ({
          ...plan,
          steps: plan.steps.map((step) =>
            step.do === 'post'
              ? { ...step, wrs: step.wrs.map((wr) => ({ ...wr, flaw: 'misaligned' as const })) }
              : step,
          ),
        })),
      };
      const { findings } = await runStory(liar);
      expect(findings).not.toEqual([]);
      const shrunk = await shrinkStory(liar, findings, 30);
      expect(shrunk.findings.map(kindOf)).toContain(kindOf(findings[0]!));
      expect(renderStory(shrunk.story).length).toBeLessThan(renderStory(liar).length);
      expect(renderStory(shrunk.story).length).toBeLessThan(12);
    },
    300_000,
  );

  it('are not made small by leaving out the receives of messages that then wait for ever', async () => {
    const drawn = exampleStory(36);
    const isMessage = (step: Step): boolean =>
      step.do === 'post' && step.wrs.some(({ opcode }) => consumesReceive(opcode));
    const patient: Story = {
      ...drawn,
      again: undefined,
      // A message and its receive; retries without end, the longest delay between two, and time-outs (IBTA 9.7.5.2.8).
      programs: drawn.programs.map((plan) => ({
        ...plan,
        steps: plan.steps.filter(isMessage),
        qps: plan.qps.map((qp) => ({ ...qp, rnrRetry: 7, rnrTimer: 0, timeout: 14 })),
      })),
    };
    expect(patient.programs.map(({ early, steps }) => [early.length, steps.length])).toEqual([
      [0, 1],
      [1, 0],
    ]);
    const lost = { judge: 'completions', what: 'request 1 (program 0, QP 0) never completed' };
    const { story, findings } = await shrinkStory(patient, [lost], 3);
    expect(messagesWithoutReceive(story)).toBe(0);
    expect(findings).toEqual([lost]);
  });
});

describe('epochs', () => {
  it('of a story of minutes are a multiple of those drawn, and at most 50,000', () => {
    expect(epochPsFor(10_000_000, 400_000_000_000n)).toBe(10_000_000);
    expect(epochPsFor(10_000_000, 332_000_000_000_000n)).toBe(10_000_000 * 2 ** 10);
    expect(epochPsFor(10_000_000, 10n ** 18n)).toBeLessThanOrEqual(epochLengthPs);
  });
});

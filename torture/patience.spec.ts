import { describe, expect, it } from 'vitest';
import { patienceOf, withBearableRnr } from './patience.ts';
import { type Story, sendsOf } from './story.ts';
import { exampleStory } from './testing/example-story.ts';
import { rnrDelayPs } from './verbs-model.ts';

/** A story with one QP of these attributes for each row, in one program. */
function storyOf(
  climate: Story['climate'],
  rows: readonly (readonly [timeout: number, rnrRetry: number, rnrTimer: number])[],
): Story {
  const drawn = exampleStory(3);
  const [program] = drawn.programs;
  const [qp] = program!.qps;
  const qps = rows.map(([timeout, rnrRetry, rnrTimer]) => ({
    ...qp!,
    transport: 'RC' as const,
    retryCount: 7,
    timeout,
    rnrRetry,
    rnrTimer,
  }));
  return { ...drawn, climate, programs: [{ ...program!, areas: [], qps }] };
}

const timersOf = (story: Story): number[] => story.programs[0]!.qps.map(({ rnrTimer }) => rnrTimer);

describe('patience', () => {
  it('covers nine time-outs of up to four times their code, and nine of the longest RNR delays', () => {
    // 200 ms; 4 × 9 × 4.096 µs × 2^14; 9 × 655.36 ms (IBTA vol 1, 9.7.6.1.3, 9.7.5.2.8, table 45).
    expect(patienceOf(storyOf('broken', [[14, 7, 1]]))).toBe(
      200e9 + 36 * 4_096_000 * 2 ** 14 + 9 * 655_360e6,
    );
  });
});

describe('RNR delays of lossy and broken stories', () => {
  it('grow until 500,000 of them last as long as a program waits for its peer', () => {
    // Time-out code 14: 16 × 8.5 s / 500,000 = 0.27 ms, and code 9 is 0.24, 10 is 0.32 ms; 4 × 67 ms / 4000 = 0.07 ms. 655.36 ms is long enough.
    expect(
      timersOf(
        withBearableRnr(
          storyOf('broken', [
            [14, 7, 1],
            [14, 3, 0],
            [14, 3, 12],
          ]),
        ),
      ),
    ).toEqual([10, 0, 12]);
  });

  it('are so long in story 980001455, which once asked for a missing receive every 40 µs for minutes', () => {
    const story = withBearableRnr(exampleStory(980_001_455));
    const endless = story.programs
      .flatMap(({ qps }) => qps)
      .filter(({ transport, rnrRetry }) => transport === 'RC' && rnrRetry === 7);
    expect([story.climate, endless.length > 0]).toEqual(['broken', true]);
    for (const { rnrTimer } of endless)
      expect((16 * patienceOf(story)) / rnrDelayPs(rnrTimer)).toBeLessThanOrEqual(500_000);
  });

  it('grow where packets get lost until 4,000 of them last as long as a time-out', () => {
    // Time-out code 20: 4 × 4.3 s / 4000 = 4.3 ms, and code 17 is 3.84, 18 is 5.12 ms; 14: 0.07 ms, and code 5 is 0.06, 6 is 0.08 ms.
    expect(timersOf(withBearableRnr(storyOf('lossy', [[20, 7, 13]])))).toEqual([18]);
    expect(timersOf(withBearableRnr(storyOf('lossy', [[14, 7, 1]])))).toEqual([6]);
  });

  it('stay as drawn where retries end, and in other climates', () => {
    expect(timersOf(withBearableRnr(storyOf('broken', [[14, 6, 1]])))).toEqual([1]);
    expect(timersOf(withBearableRnr(storyOf('calm', [[14, 7, 1]])))).toEqual([1]);
  });

  it('are the longest where nothing is long enough', () => {
    expect(timersOf(withBearableRnr(storyOf('broken', [[31, 7, 1]])))).toEqual([0]);
  });
});

describe('on a cable that stays bad', () => {
  const bad = { packet: 'lost', chance: '10%', node: 0 };

  it('a time-out for each packet of the longest message is waited for as well', () => {
    const story = exampleStory(121);
    const sizes = [...sendsOf(story)].flatMap(({ program, qp, plan }) => {
      const { transport, mtu, timeout } = story.programs[program]!.qps[qp]!;
      const bytes = plan.sges.reduce((sum, { length }) => sum + length, 0);
      return transport === 'RC' ? [4 * Math.ceil(bytes / (128 << mtu)) * 4_096_000 * 2 ** timeout] : [];
    });
    expect(Math.max(...sizes)).toBeGreaterThan(0);
    expect(patienceOf({ ...story, faults: [bad] }) - patienceOf({ ...story, faults: [] })).toBe(
      Math.max(...sizes),
    );
  });

  it('three packets that get lost are no bad cable', () => {
    const story = exampleStory(121);
    expect(patienceOf({ ...story, faults: [{ ...bad, shots: 3 }] })).toBe(
      patienceOf({ ...story, faults: [] }),
    );
  });
});

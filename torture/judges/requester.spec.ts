/** A falsified story whose requesters were busy for other cycles than their packets take. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Played, playStory } from '../run-story.ts';
import { exampleStory } from '../testing/example-story.ts';
import { judgeRequester } from './requester.ts';

let played: Played;
beforeAll(async () => {
  // Calm, with parameters that leave one number of cycles: 43 requests in 77 packets, of 6 cycles each.
  const story = { ...exampleStory(60), again: undefined };
  played = await playStory(story, { partition: 'single', shuffleSeed: undefined });
}, 60_000);

/** Returns the findings if the requester of each node had this many more busy cycles. */
function foundWith(...more: readonly number[]): string {
  const nodes = played.report.nodes.map((of, node) => {
    const requester = of.hca.blocks['requester']!;
    const busyCycles = requester.busyCycles + more[node]!;
    return {
      ...of,
      hca: { ...of.hca, blocks: { ...of.hca.blocks, requester: { ...requester, busyCycles } } },
    };
  });
  return judgeRequester({ ...played, report: { ...played.report, nodes } }).join('\n');
}

describe('the judge of requesters', () => {
  it('finds nothing where all went well, of 720 cycles', () => {
    const cycles = played.report.nodes.map(({ hca }) => hca.blocks['requester']!.busyCycles);
    expect(cycles.reduce((sum, one) => sum + one)).toBe((43 + 77) * 6);
    expect(foundWith(0, 0)).toBe('');
  });

  it('finds a cycle too few, and one too many', () => {
    expect(foundWith(-1, 0)).toMatch(/busy for \d+ cycles, what (was|it) sent takes \d+ at least/);
    expect(foundWith(0, 1)).toMatch(/were busy for 721 cycles, 43 requests and 77 packets take 720 at most/);
  });

  it('finds cycles that one node has of the other', () => {
    const least = /node (\d): its requester was busy for \d+ cycles, what it sent takes \d+ at least/;
    expect(foundWith(-200, 200)).toMatch(least);
    expect(foundWith(400, -400)).toMatch(least);
  });

  it('holds the story to the parameters that it was played with', () => {
    const { hca, ...config } = played.config;
    const slower = { ...config, hca: { ...hca, wqeDecodeCycles: 7 } };
    expect(judgeRequester({ ...played, config: slower }).join()).toMatch(/at least/);
    const wider = { ...config, hca: { ...hca, wqeLineCycles: 7 } };
    expect(judgeRequester({ ...played, config: wider })).toEqual([]);
  });

  it('judges nothing that was cut off', () => {
    const story = { ...played.story, climate: 'broken' as const };
    expect(
      judgeRequester({
        ...played,
        story,
        config: { ...played.config, hca: { ...played.config.hca, wqeDecodeCycles: 70 } },
      }),
    ).toEqual([]);
  });
});

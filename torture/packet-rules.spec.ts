/**
 * Faults of packets by rule, in stories of players: bounded, lawful, and counted by the judges at their greatest
 * possible effect.
 */
import { describe, expect, it } from 'vitest';
import { Machine } from '../machine/machine.ts';
import { copiesOf, isDisordered, lossesOf } from './cable-faults.ts';
import { judgeLiveness } from './judges/liveness.ts';
import { playStory, runStory } from './run-story.ts';
import { isOnDemandArea, type Story, sendsOf } from './story.ts';
import { playersOfSeed } from './story-of-seed.ts';

const drawn = Array.from({ length: 400 }, (_, seed) => playersOfSeed(seed));
const rulesOf = ({ faults }: Story) => faults.filter(({ shots }) => shots !== undefined);

describe('faults of packets by rule', () => {
  it('are in about a third of the stories whose packets get lost, each with a number of shots', () => {
    const lossy = drawn.filter(({ climate }) => climate === 'lossy');
    const having = lossy.filter((story) => rulesOf(story).length > 0);
    expect(having.length / lossy.length).toBeGreaterThan(0.2);
    expect(having.length / lossy.length).toBeLessThan(0.5);
    for (const { climate, faults } of drawn.filter((story) => rulesOf(story).length > 0)) {
      expect(['lossy', 'broken']).toContain(climate);
      for (const fault of faults)
        if ('qpn' in fault || 'psn' in fault || 'opcode' in fault || 'only' in fault || 'chance' in fault)
          if (fault['only'] !== 'pauses') expect(fault['shots']).toBeGreaterThan(0);
    }
  });

  it('name packets in every way that there is', () => {
    const fields = new Set(drawn.flatMap(rulesOf).flatMap((fault) => Object.keys(fault)));
    for (const field of ['qpn', 'psn', 'opcode', 'only', 'chance', 'nth', 'crc', 'where'])
      expect(fields.has(field), field).toBe(true);
    expect(drawn.some((story) => rulesOf(story).length > 0 && story.set['wire.packetForm'] === 'bytes')).toBe(
      true,
    );
  });

  it('are such as a machine takes', async () => {
    const faults = drawn.flatMap(rulesOf).slice(0, 60);
    await using machine = await Machine.create({ faults });
    expect(machine).toBeDefined();
  });

  it('concern as many packets as they have shots, or as their numbers name', () => {
    const story = { ...playersOfSeed(8), climate: 'lossy' as const };
    const losses = (fault: object): number => lossesOf({ ...story, faults: [fault as never] });
    expect(losses({ packet: 'lost', psn: '+3', shots: 2, node: 0 })).toBe(2);
    expect(losses({ packet: 'lost', psn: '+3', nth: 4, shots: 2, node: 0 })).toBe(1);
    expect(losses({ packet: 'lost', only: 'requests', nth: '2-9', shots: 12, node: 0 })).toBe(8);
    expect(losses({ packet: 'lost', nth: 5, node: 0 })).toBe(1);
    expect(losses({ packet: 'lost', node: 0 })).toBe(1);
    expect(losses({ packet: 'lost', chance: '1%', node: 0 })).toBe(Number.POSITIVE_INFINITY);
    expect(losses({ packet: 'congested', shots: 3, node: 0 })).toBe(0);
    const copied = {
      ...story,
      faults: [{ packet: 'duplicated', opcode: 'UD_SEND_ONLY', shots: 3, node: 0 }],
    };
    expect(copiesOf(copied)).toBe(3);
    expect(isDisordered(copied)).toBe(true);
  });

  // Packets lost by PSN, and again when they are repeated; by chance; where bytes travel.
  it.each(playedSeeds())('of seed %i are met without a finding', async (seed) => {
    const { findings } = await runStory({ ...playersOfSeed(seed), again: undefined });
    expect(findings).toEqual([]);
  });
});

describe('the judge of liveness', () => {
  it('finds a request that ended long after its retries, and nothing where no fault can have been the last', async () => {
    const isJudged = (one: Story): boolean =>
      rulesOf(one).length > 0 &&
      one.programs.every(
        ({ qps, areas, steps }) =>
          steps.length < 40 &&
          steps.every(({ do: what }) => what !== 'modify' && what !== 'quiesce') &&
          qps.every(({ transport, timeout }) => transport === 'RC' && timeout > 5 && timeout < 15) &&
          !areas.some(isOnDemandArea),
      );
    const story = { ...drawn.find(isJudged)!, again: undefined };
    const played = await playStory(story, { partition: 'single', shuffleSeed: undefined });
    expect(judgeLiveness(played)).toEqual([]);
    const sent = new Set([...sendsOf(story)].map(({ plan }) => plan.id));
    const late = played.seen.map((seen) =>
      seen === null
        ? null
        : {
            ...seen,
            completions: seen.completions.map((end) =>
              end === seen.completions.findLast(({ id }) => sent.has(id))
                ? { ...end, fromPs: end.fromPs + hoursPs, toPs: end.toPs + hoursPs }
                : end,
            ),
          },
    );
    expect(judgeLiveness({ ...played, seen: late }).join()).toMatch(/its retries take \d+ at most/);
    const endless = [{ packet: 'lost', chance: '1%', node: 0 }] as never;
    expect(judgeLiveness({ ...played, seen: late, story: { ...story, faults: endless } })).toEqual([]);
  });
});

const hoursPs = 1e16;

/** The first small stories with such faults. */
function playedSeeds(): number[] {
  const isSmall = ({ programs }: Story): boolean =>
    programs.reduce((sum, { steps }) => sum + steps.length, 0) < 40;
  return drawn
    .filter((story) => story.climate === 'lossy' && rulesOf(story).length > 1 && isSmall(story))
    .slice(0, 4)
    .map(({ seed }) => seed);
}

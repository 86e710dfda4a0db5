import { describe, expect, it } from 'vitest';
import type { Machine } from '../machine/machine.ts';
import { differencesOf, firstDifference, whereTheyPart } from './first-difference.ts';
import { machineOf, programsOf } from './run-story.ts';
import { storyOfSeed } from './story-of-seed.ts';

describe('the first difference of two runs', () => {
  it('is none where the runs are the same', async () => {
    const again = { partition: 'single', shuffleSeed: 5 } as const;
    expect(await firstDifference({ ...storyOfSeed(3), again })).toEqual([]);
  });

  it('is found to the picosecond, at the instant from which the states differ', async () => {
    const counted = (from: bigint) => async (ps: bigint) => [{ requester: { count: ps < from ? 0 : 1 } }];
    expect(await whereTheyPart(counted(1_234_567n), counted(2_000_000n), 1_900_000n)).toEqual([
      'the runs part at 1234567 ps:',
      'node 0 requester count: 1 / 0',
    ]);
  });

  it('is named by node, block and value', () => {
    const one = { requester: { active: 3, waiting: [1] }, queuePairs: { 65: { psn: 1 } } };
    const other = { requester: { active: 3, waiting: [] }, queuePairs: {} };
    expect(differencesOf('node 0', one, other)).toEqual([
      'node 0 requester waiting: [1] / []',
      'node 0 queuePairs 65: {"psn":1} / undefined',
    ]);
  });
});

describe('the state of the blocks', () => {
  it('is the same at every instant, in whatever partition, with shortcuts and without', async () => {
    const story = storyOfSeed(8);
    const states: unknown[][] = [];
    const ways = [
      { partition: 'single' },
      { partition: 'per-device' },
      { partition: 'single', isPlain: true },
    ] as const;
    for (const way of ways) {
      await using machine: Machine = await machineOf(story, { ...way, shuffleSeed: undefined });
      for (const program of programsOf(story)) await machine.load(program);
      const seen: unknown[] = [];
      for (let step = 1n; step <= 6n; step++) {
        await machine.runTo(step * 1_777_777_777n);
        seen.push(await machine.inspect());
      }
      states.push(seen);
    }
    for (const others of states.slice(1)) expect(others).toEqual(states[0]);
    const blocks = [
      'rootComplex',
      'rootPort',
      'linkPort',
      'pcieFunction',
      'dmaRead',
      'dmaWrite',
      'requester',
    ];
    for (const state of states[0]![0] as object[])
      expect(Object.keys(state)).toEqual(expect.arrayContaining(blocks));
    // The states of the blocks differ between several instants: the comparison is not of idle blocks.
    expect(new Set(states[0]!.map((state) => JSON.stringify(state))).size).toBeGreaterThan(2);
  });
});

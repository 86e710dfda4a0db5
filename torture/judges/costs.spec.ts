/** Costs of operations against the links' counts, with all observers; false accounts do not deceive the judge. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Played, playStory, textOf } from '../run-story.ts';
import { exampleStory } from '../testing/example-story.ts';
import { keptStory } from '../testing/kept-story.ts';
import { judgeCosts } from './costs.ts';

/** Calm: a program sends to itself. */
const loopbackSeed = 39;

let observed: Played;
let usual: Played;
beforeAll(async () => {
  const once = { partition: 'single', shuffleSeed: undefined } as const;
  usual = await playStory(exampleStory(8), once);
  observed = await playStory(exampleStory(8), { ...once, isObserved: true });
}, 60_000);

describe('a story with all observers', () => {
  it('reports the same, and all TLPs have an owner', () => {
    expect(textOf(observed.report)).toBe(textOf(usual.report));
    expect(textOf(observed.results)).toBe(textOf(usual.results));
    expect(observed.costs?.operations.length).toBeGreaterThan(0);
    expect(judgeCosts(observed)).toEqual([]);
  });

  it('has what the own device received among its own, where QPs of one program are connected', async () => {
    const story = exampleStory(loopbackSeed);
    const isLoopback = story.links.some(({ ends: [one, other] }) => one.program === other.program);
    expect(isLoopback).toBe(true);
    const how = { partition: 'single', shuffleSeed: undefined, isObserved: true } as const;
    const { costs, ...played } = await playStory(story, how);
    expect(judgeCosts({ ...played, costs })).toEqual([]);
    const elsewhere = { ...story, links: story.links.slice(0, 0) };
    expect(judgeCosts({ ...played, costs, story: elsewhere })).not.toEqual([]);
  });

  it('may own more reads than its link has counted where reads are given up, and nowhere else', async () => {
    const story = keptStory('reads-given-up');
    const how = { partition: 'single', shuffleSeed: undefined, isObserved: true } as const;
    const { costs, ...played } = await playStory(story, how);
    expect(judgeCosts({ ...played, costs })).toEqual([]);
    const elsewhere = { ...story, scene: { ...story.scene!, name: 'one-message' } };
    expect(judgeCosts({ ...played, costs, story: elsewhere })).toEqual([
      'node 0: 25 TLPs of class payloadRead have an owner, its link counted 16',
    ]);
  });

  it('may own more writes than its link has counted where a device is reset, and nowhere else', async () => {
    const story = keptStory('reset-with-writes-under-way');
    const how = { partition: 'single', shuffleSeed: undefined, isObserved: true } as const;
    const { costs, ...played } = await playStory(story, how);
    expect(judgeCosts({ ...played, costs })).toEqual([]);
    // Three writes whose device was reset before its link counted them.
    const [first, ...rest] = played.report.nodes;
    const { toHost } = first!.pcie;
    const owned = toHost.classes['payloadWrite']!.tlps;
    const payloadWrite = { ...toHost.classes['payloadWrite']!, tlps: owned - 3 };
    const classes = { ...toHost.classes, payloadWrite };
    const pcie = { ...first!.pcie, toHost: { ...toHost, classes } };
    const report = { ...played.report, nodes: [{ ...first!, pcie }, ...rest] };
    const fewer = { ...played, costs, report };
    expect(judgeCosts(fewer)).toEqual([]);
    const elsewhere = { ...story, scene: { ...story.scene!, name: 'one-message' } };
    expect(judgeCosts({ ...fewer, story: elsewhere })).toEqual([
      `node 0: ${owned} TLPs of class payloadWrite have an owner, its link counted ${owned - 3}`,
    ]);
  });

  it('is judged by nothing where no costs are attributed', () => {
    expect([usual.costs, judgeCosts(usual)]).toEqual([undefined, []]);
  });

  it('is found out when CQEs of its requests belong to no operation', () => {
    const { operations, others } = observed.costs!;
    const without = operations.map((operation) => ({ ...operation, writeTlps: {} }));
    expect(judgeCosts({ ...observed, costs: { operations: without, others } })).toContainEqual(
      expect.stringMatching(/^node \d: 0 CQEs are of operations, \d+ requests in them ended well$/),
    );
  });

  it('is found out when a TLP has no owner, and when it has two', () => {
    const { operations, others } = observed.costs!;
    const changed = operations.find(({ writeTlps }) => (writeTlps['cqe'] ?? 0) > 0)!;
    const rest = operations.filter((operation) => operation !== changed);
    const { cqe } = changed.writeTlps;
    for (const wrong of [cqe! - 1, cqe! + 1]) {
      const costs = {
        operations: [...rest, { ...changed, writeTlps: { ...changed.writeTlps, cqe: wrong } }],
        others,
      };
      // If a device leaves its slot some operations may have no TLP.
      const story = { ...observed.story, faults: [] };
      expect(judgeCosts({ ...observed, costs, story })).toEqual([
        expect.stringMatching(/^node \d: \d+ TLPs of class cqe have an owner, its link counted \d+$/),
      ]);
    }
  });
});

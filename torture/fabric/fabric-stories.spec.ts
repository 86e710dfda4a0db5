import { expect, it, vi } from 'vitest';
import { fabricStoryOf } from './draw-fabric.ts';
import type { FabricStory } from './fabric-story.ts';
import { playFabricStory } from './play-fabric.ts';

vi.setConfig({ testTimeout: 240_000 });

it.each([1, 2, 3, 4, 5, 6])('nothing is found in story %i of a fabric', async (seed) => {
  const { findings, refused } = await playFabricStory(fabricStoryOf(seed));
  expect([findings, refused]).toEqual([[], undefined]);
});

it('a seed is a story, and stories have flows and faults of all kinds', () => {
  expect(fabricStoryOf(17)).toEqual(fabricStoryOf(17));
  const stories = Array.from({ length: 200 }, (_, seed) => fabricStoryOf(seed));
  const kinds = new Set(stories.flatMap(({ flows }) => flows.map(({ kind }) => kind)));
  expect([...kinds].toSorted()).toEqual(['datagram', 'group', 'read', 'send', 'write']);
  const effects = new Set(stories.flatMap(({ faults }) => faults.map((fault) => Object.keys(fault)[0]!)));
  expect([...effects].toSorted()).toEqual(['cable', 'forwarding', 'packet', 'port']);
  const has = (isTrue: (story: FabricStory) => boolean): boolean => stories.some(isTrue);
  expect(has(({ memberships }) => memberships !== undefined)).toBe(true);
  expect(has(({ flows }) => flows.some(({ rate }) => rate !== undefined))).toBe(true);
  expect(has(({ cables }) => cables.some(({ hoqLife }) => hoqLife !== undefined))).toBe(true);
  expect(has(({ faults }) => faults.some(({ crc }) => crc === 'icrc'))).toBe(true);
  expect(has(({ set }) => set['hca.lossRecovery'] === 'selective-repeat')).toBe(true);
});

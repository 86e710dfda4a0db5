/**
 * Scenes, each played once; stories of theirs that found defects are files (torture/kept). Seeded mistakes show that
 * their judges find defects (test/mistakes).
 */
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import { renderStory } from '../render-story.ts';
import { runStory } from '../run-story.ts';
import { drawScene, storyOfSeed } from '../story-of-seed.ts';
import { sceneOf, scenes } from './index.ts';
import { pageWith, readPage, sceneTable } from './scene-table.ts';

/** Seeds of short stories for these scenes; `test/torture` uses other seeds in every run. */
const briefSeeds: Readonly<Record<string, number>> = { 'crowd-of-queues': 2, 'wrapped-counters': 3 };
const played = scenes.map((scene) => ({ name: scene.name, seed: briefSeeds[scene.name] ?? 1, scene }));

describe.each(played)('the scene $name', ({ seed, scene }) => {
  it(`of seed ${seed} is played without a finding`, { timeout: 300_000 }, async () => {
    const story = { ...drawScene(seed, scene), again: undefined };
    const { findings, refused } = await runStory(story);
    expect(findings, renderStory(story).join('\n')).toEqual([]);
    expect(refused).toBeUndefined();
  });
});

describe('scenes', () => {
  it('have names of their own', () => {
    expect(new Set(scenes.map(({ name }) => name)).size).toBe(scenes.length);
    expect(() => sceneOf({ name: 'of-nobody' })).toThrow(ConfigurationError);
  });

  it('stand in docs/how-to/torture.md (npm run docs)', () => {
    expect(pageWith(sceneTable(), readPage())).toBe(readPage());
  });

  it('are found by seed, beside stories of players', () => {
    const drawn = Array.from({ length: 100 }, (_, seed) => storyOfSeed(seed));
    const played = drawn.filter(({ scene }) => scene !== undefined);
    expect(played.length).toBeGreaterThan(50);
    expect(played.length).toBeLessThan(100);
    expect(played.every(({ programs }) => programs.length === 0)).toBe(true);
  });

  it('are played by name, with the seed that they are given', () => {
    expect(storyOfSeed(5, 'taken-away')).toEqual(drawScene(5, sceneOf({ name: 'taken-away' })));
    expect(storyOfSeed(6, 'taken-away')).not.toEqual(storyOfSeed(5, 'taken-away'));
    expect(() => storyOfSeed(5, 'of-nobody')).toThrow(ConfigurationError);
  });

  it('end with a finding when a program does not tell', async () => {
    const story = drawScene(1, scenes[0]!);
    const liar = { ...story, again: undefined, scene: { ...story.scene!, args: { count: 0 } } };
    const { findings } = await runStory(liar);
    expect(findings).not.toEqual([]);
  });
});

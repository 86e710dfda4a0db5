/** Values of files that are stories, and values that are none. */
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../base/index.ts';
import { storyFrom } from './story-of-file.ts';
import { keptNames, keptStory } from './testing/kept-story.ts';

type Json = Record<string, unknown>;

/** A kept story of players with one value replaced; `path` is as errors name it. */
function altered(path: string, value: unknown, name = 'window-of-a-region-that-is-gone'): unknown {
  const story = structuredClone(keptStory(name)) as unknown as Json;
  const names = path.split('.');
  const last = names.pop()!;
  const parent = names.reduce<Json>((at, field) => at[field] as Json, story);
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return story;
}

describe('a story of a file', () => {
  it.each(keptNames())('may be %s', (name) => {
    expect(storyFrom(keptStory(name))).toEqual(keptStory(name));
  });

  it.each([
    ['seed', -1],
    ['climate', 'stormy'],
    ['set', 3],
    ['faults', {}],
    ['faults', [7]],
    ['again', { partition: 'nowhere' }],
    ['stopsAfter', 2],
    ['programs', []],
    ['programs', undefined],
    ['programs.0.node', 2],
    ['programs.0.qps.0.mtu', 9],
    ['programs.0.qps.0.sendCq', 900],
    ['programs.0.qps.0.srq', 900],
    ['programs.0.areas.0.kind', 'well'],
    ['programs.0.steps.0', null],
    ['programs.0.steps.0', { do: 'dance' }],
    ['programs.0.steps.0', { do: 'sleep', ns: 'long' }],
    ['programs.0.steps.0', { do: 'exit', at: 1 }],
    ['programs.0.steps.0', { do: 'peek', area: 900, offset: 0, length: 1 }],
    ['programs.0.steps.0', { do: 'post', qp: 0, wrs: [{ id: 1 }] }],
    ['links.0.ends.0.program', 77],
    ['links.0.ends', [{ program: 0, qp: 0 }]],
    ['turns', [{ programs: [] }]],
    ['mood', 'good'],
  ])('has no %s of %j', (path, value) => {
    expect(() => storyFrom(altered(path, value))).toThrow(ConfigurationError);
  });

  it.each([
    ['scene.name', 'of-nobody'],
    ['scene.args', null],
    ['scene.args', { count: 0 }],
    ['scene.args.rounds', 'many'],
    ['scene.args.extra', 1],
  ])('has no %s of %j, where it plays a scene', (path, value) => {
    expect(() => storyFrom(altered(path, value, 'scene-connections-1800000167'))).toThrow(ConfigurationError);
  });

  it.each([null, 3, 'story', [], {}])('is not %j', (value) => {
    expect(() => storyFrom(value)).toThrow(ConfigurationError);
  });
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { makeTemporaryFolder } from '../../guests/linux/temporary-folder.ts';
import { nativeUnavailableReason } from '../../guests/slot/index.ts';
import * as served from '../../torture/index.ts';
import { Screen } from '../output.ts';
import { faultsOf, type Output } from '../testing/schemas.ts';
import { tortureServed } from './torture-served.ts';

/** Plays a short real story instead. */
let isReal = false;

/** Stories of ten of each kind, and three doorbells. */
vi.mock(import('../../torture/index.ts'), async (original) => {
  const module = await original();
  const counts = Object.fromEntries(module.servedKinds.map((kind) => [kind, 10]));
  return {
    ...module,
    playServedStory: ({ seed }) =>
      isReal
        ? module.playServedStory({ seed, lives: 1, actions: 100 })
        : {
            seed,
            findings: [],
            counts: { ...counts, doorbell: 3, reset: 0 } as ReturnType<
              typeof module.playServedStory
            >['counts'],
            coverage: module.noRoughCoverage(),
            grownBytes: 0,
            longestTurnMs: 1,
          },
  };
});

interface Result extends Output {
  readonly commands: object;
  readonly stories: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** The printed summary of a run. */
function resultOf(actions: number, last: number, first = 1): Result {
  const folder = makeTemporaryFolder('hca-torture-');
  try {
    const json = join(folder.path, 'result.json');
    tortureServed({ seeds: { first, last }, actions, json }, new Command('torture'), new Screen('-'));
    return JSON.parse(readFileSync(json, 'utf8')) as Result;
  } finally {
    folder.remove();
  }
}

afterEach(() => {
  isReal = false;
});

describe('torture --served --actions', () => {
  it('plays until each kind has reached its count, and no story more', () => {
    for (const [actions, stories] of [
      [1, 1],
      [3, 1],
      [4, 2],
      [30, 10],
      [31, 11],
    ] as const) {
      const result = resultOf(actions, 1000);
      expect(result.stories).toBe(stories);
      for (const kind of served.countedKinds) expect(result.counts[kind]).toBeGreaterThanOrEqual(actions);
    }
  });

  it.skipIf(nativeUnavailableReason() !== undefined)('writes what its published schema says', () => {
    isReal = true;
    const result = resultOf(1000, 6, 6);
    expect(faultsOf(result)).toEqual([]);
    expect(Object.keys(result.commands).length).toBeGreaterThan(5);
  });

  it('ends with the last seed, even if the counts were not reached', () => {
    expect(resultOf(1000, 5)).toMatchObject({ stories: 5 });
  });
});

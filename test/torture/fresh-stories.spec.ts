/**
 * A minute of stories that were never played before, in addition to the fixed ones of `torture`. The wall clock limits the
 * duration of the test, and selects its first seed; no story depends on it. HCA_TORTURE_SEED=N begins at N instead, to play the
 * same ones again.
 */
import { expect, it } from 'vitest';
import { seedMax } from '../../cli/torture/seed-range.ts';
import { campaign } from '../../torture/index.ts';
import { randomComparison } from '../image-stories.ts';

const lookMs = 60_000;
const imagesMs = 5_000;
/** The story that runs when the minute ends is played to its end; the campaign itself ends a hanging one. */
const testTimeoutMs = 480_000;
/** Seeds from the clock stay below the maximum. */
const seedsPerMs = 16;

/** @throws Error if HCA_TORTURE_SEED is not a seed */
function firstSeed(): number {
  const asked = process.env['HCA_TORTURE_SEED'];
  if (asked === undefined) return Date.now() * seedsPerMs;
  if (!/^\d+$/.test(asked) || Number(asked) > seedMax)
    throw new Error(`HCA_TORTURE_SEED is "${asked}", expected a whole number up to 2^48`);
  return Number(asked);
}

function* seedsFrom(first: number): Generator<number> {
  for (let seed = first; ; seed++) yield seed;
}

it('a minute of fresh stories is played without a finding', { timeout: testTimeoutMs }, async () => {
  const first = firstSeed();
  console.log(`Fresh stories from seed ${first} on.`);
  const endMs = performance.now() + lookMs;
  const found: string[] = [];
  let [stories, refused] = [0, 0];
  for await (const outcome of campaign(seedsFrom(first), 1, () => performance.now() > endMs)) {
    stories++;
    if (outcome.refused !== undefined) refused++;
    for (const { judge, what } of outcome.findings)
      found.push(`npx hca torture --seed ${outcome.seed}    ${judge}: ${what}`);
  }
  console.log(`${stories} stories played, ${refused} of them refused by the configuration's checks.`);
  expect(found, found.join('\n')).toEqual([]);
  // A run in which every story was refused has tested nothing.
  expect(stories).toBeGreaterThan(refused);
});

it('machines that start from images behave like fresh ones, on random hardware', {
  timeout: testTimeoutMs,
}, async () => {
  const endMs = performance.now() + imagesMs;
  const found: string[] = [];
  let fromImages = 0;
  for (let seed = firstSeed(); performance.now() < endMs; seed++) {
    const { difference, fromImage } = await randomComparison(seed);
    fromImages += fromImage;
    if (difference !== '') found.push(`randomComparison(${seed}) of test/image-stories.ts: ${difference}`);
  }
  expect(found, found.join('\n')).toEqual([]);
  expect(fromImages).toBeGreaterThan(0);
});

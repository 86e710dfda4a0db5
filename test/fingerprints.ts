/**
 * `npm run fingerprints`: prints a hash of everything that runs bring to light, one line for each run. A change that is to
 * change nothing prints the same lines before and after:
 *
 *     npm run -s fingerprints > before;   … the change …   npm run -s fingerprints | diff before -
 *
 * The default machine runs the mixture of all operations; stories, on hardware of all kinds, are those of the seeds asked for.
 */
import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { runStory } from '../system/torture/run-story.ts';
import { storyOfSeed } from '../system/torture/story-of-seed.ts';
import { programsOf, runPrograms } from './machines.ts';

/** Instants beyond 2^53 ps are bigints. */
function hashOf(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `${part}` : part));
  return createHash('sha256')
    .update(text ?? '')
    .digest('hex');
}

/** @throws RangeError when the seeds are not two whole numbers in order */
function seedsOf(text: string): readonly [number, number] {
  const [first, last] = text.split('..').map(Number);
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last) || first! > last!)
    throw new RangeError(`--seeds is "${text}", expected two whole numbers A..B with A up to B`);
  return [first!, last!];
}

const { values } = parseArgs({ options: { seeds: { type: 'string', default: '1..200' } } });
const [first, last] = seedsOf(values.seeds);
const { report, results } = await runPrograms(
  [
    ...programsOf('mixture', 'polling', { qps: 3, rounds: 4 }),
    ...programsOf('mixture', 'sleeping', { qps: 3, rounds: 4 }),
  ],
  { set: { 'host.memory.sizeMib': 512 } },
);
console.log(`default ${hashOf({ report, results })}`);
for (let seed = first; seed <= last; seed++) {
  const { played, findings, refused } = await runStory(storyOfSeed(seed));
  const { report: told, results: came, packets, leftovers } = played ?? {};
  console.log(`${seed} ${hashOf({ refused, findings, report: told, results: came, packets, leftovers })}`);
}

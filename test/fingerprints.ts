/**
 * `npm run fingerprints`: prints a hash of everything that runs bring to light, one line for each run. A change that is to
 * change nothing prints the same lines before and after:
 *
 *     npm run -s fingerprints > before;   … the change …   npm run -s fingerprints | diff before -
 *
 * The default machine runs the mixture of all operations; stories, on hardware of all kinds, are those of the seeds asked for.
 */
import '../runtime/node.ts';
import { createHash } from 'node:crypto';
import { Command } from 'commander';
import { type SeedRange, seedRange } from '../cli/torture/seed-range.ts';
import { runStory, textOf } from '../torture/run-story.ts';
import { storyOfSeed } from '../torture/story-of-seed.ts';
import { programsOf, runPrograms } from './machines.ts';

const hashOf = (value: unknown): string => createHash('sha256').update(textOf(value)).digest('hex');

const { first, last } = new Command('fingerprints')
  .option('--seeds <first..last>', 'stories to play', seedRange, { first: 1, last: 200 })
  .parse()
  .opts<{ readonly seeds: SeedRange }>().seeds;
const args = { qps: 3, rounds: 4 };
const { report, results } = await runPrograms(
  [...programsOf('mixture', 'polling', args), ...programsOf('mixture', 'sleeping', args)],
  { set: { 'host.memory.sizeMib': 512 } },
);
console.log(`default ${hashOf({ report, results })}`);
for (let seed = first; seed <= last; seed++) {
  const { played, findings, refused } = await runStory(storyOfSeed(seed));
  const { report: told, results: came, packets, leftovers } = played ?? {};
  console.log(`${seed} ${hashOf({ refused, findings, report: told, results: came, packets, leftovers })}`);
}

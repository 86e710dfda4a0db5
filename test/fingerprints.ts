/**
 * `npm run fingerprints`: prints a hash of all results of a run, one line for each run. If a change preserves behaviour, the
 * lines are equal before and after:
 *
 *     npm run -s fingerprints > before;   … the change …   npm run -s fingerprints | diff before -
 *
 * The default machine runs the mixture of all operations, and one with iWARP each of its verbs, on a cable that loses
 * frames: its report has the TCP engine's blocks, among them that of its events. Two hundred stories, on hardware of all
 * kinds, and eight over iWARP are data in `fingerprint-stories.json.gz`, so that they stay the same if seeds later generate
 * other stories. `--draw 1..200` replaces them with the stories of these seeds.
 */
import '../runtime/node.ts';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Command } from 'commander';
import { type SeedRange, seedRange } from '../cli/torture/seed-range.ts';
import { runStory, type Story, storyOfSeed, textOf } from '../torture/index.ts';
import { programsOf, runPrograms } from './machines.ts';

const storiesFile = new URL('fingerprint-stories.json.gz', import.meta.url);

const storiesOf = ({ first, last }: SeedRange): Story[] =>
  Array.from({ length: last - first + 1 }, (_, index) => storyOfSeed(first + index));

const hashOf = (value: unknown): string => createHash('sha256').update(textOf(value)).digest('hex');

async function printDefaultMachine(): Promise<void> {
  const args = { qps: 3, rounds: 4 };
  const { report, results } = await runPrograms(
    [...programsOf('mixture', 'polling', args), ...programsOf('mixture', 'sleeping', args)],
    { set: { 'host.memory.sizeMib': 512 } },
  );
  console.log(`default ${hashOf({ report, results })}`);
}

async function printIwarp(): Promise<void> {
  const sizes = [0, 1, 1440, 5000, 65_536];
  const { report, results } = await runPrograms(programsOf('iwarp', 'everyVerb', { sizes }), {
    set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
    faults: [{ packet: 'lost', chance: 0.02 }],
  });
  console.log(`iwarp ${hashOf({ report, results })}`);
}

async function printStory(story: Story): Promise<void> {
  const { played, findings, refused } = await runStory(story);
  const { report, results, packets, leftovers } = played ?? {};
  console.log(`${story.seed} ${hashOf({ refused, findings, report, results, packets, leftovers })}`);
}

const { seeds, draw } = new Command('fingerprints')
  .option('--seeds <first..last>', 'stories to play, by the seeds that drew them', seedRange)
  .option('--draw <first..last>', 'replace the stories by those that these seeds draw now', seedRange)
  .parse()
  .opts<{ readonly seeds?: SeedRange; readonly draw?: SeedRange }>();

if (draw !== undefined) writeFileSync(storiesFile, gzipSync(JSON.stringify(storiesOf(draw)), { level: 9 }));
else {
  const stories = JSON.parse(gunzipSync(readFileSync(storiesFile)).toString()) as Story[];
  await printDefaultMachine();
  await printIwarp();
  for (const story of stories)
    if (seeds === undefined || (story.seed >= seeds.first && story.seed <= seeds.last))
      await printStory(story);
}

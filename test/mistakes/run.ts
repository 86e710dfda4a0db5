/**
 * `npm run mistakes`: tests the tester. Each seeded mistake is put into a copy of the source, alone, and `hca torture` must
 * find it, or the spec that it names. Prints one line for each, and at the end the table for bench/notes/torture.md.
 */
import { writeFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { allMistakes, mistakesByArea } from './index.ts';
import { KnownStories } from './known-stories.ts';
import type { Mistake } from './mistake.ts';
import { SourceTree } from './source-tree.ts';
import { trySpec, UnchangedSpecs } from './spec-player.ts';
import { type Trial, tryMistake, UnchangedSource, firstSeed as usualSeed } from './trial.ts';
import { tryKind } from './try-kind.ts';

interface Options {
  readonly minutes: number;
  readonly only?: readonly string[];
  readonly area?: readonly string[];
  readonly jobs: number;
  readonly firstSeed: number;
  readonly json?: string;
  readonly inOrder: boolean;
  readonly likely: boolean;
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('expected a number above 0.');
  return value;
}

const { minutes, only, area, jobs, firstSeed, json, inOrder, likely } = new Command('mistakes')
  .description(
    'put each seeded mistake into a copy of the source, and see whether hca torture finds it, or the spec that it names',
  )
  .option('--minutes <n>', 'time for each mistake that stories of two hosts are to find', positive, 10)
  .option('--only <names...>', 'these mistakes')
  .option('--area <areas...>', `mistakes of these areas: ${Object.keys(mistakesByArea).join(', ')}`)
  .option('--jobs <n>', 'mistakes at once', positive, 1)
  .option('--first-seed <n>', 'play the stories from this seed on', positive, usualSeed)
  .option(
    '--in-order',
    'play all stories in order, for each mistake, in place of the likely ones first',
    false,
  )
  .option('--likely', 'play only the scenes that are likely to show the mistakes, in turn', false)
  .option('--json <file>', 'write the result of each, as JSON')
  .parse()
  .opts<Options>();

const wanted = chosen(only, area);
const trials: Trial[] = [];
const scenes = likely ? [...new Set(wanted.flatMap(({ scene }) => scene ?? []))] : [];
using tree = new SourceTree();
const unchanged = new UnchangedSource(tree);
const unchangedSpecs = new UnchangedSpecs(tree);
await tellFailingSpecs();
const known =
  inOrder || !wanted.some(isOfTwoHosts)
    ? undefined
    : await KnownStories.play(tree, { firstSeed, minutes, jobs, scenes }, tellProgress);
if (known !== undefined) {
  process.stdout.write(`${known.count} stories without a mistake\n`);
  for (const { seed, findings } of known.failing())
    process.stdout.write(
      `seed ${seed}: FOUND WITHOUT A MISTAKE by ${findings[0]!.judge}: ${findings[0]!.what}\n`,
    );
}
const waiting = [...wanted];
await Promise.all(Array.from({ length: Math.min(jobs, wanted.length) }, work));
process.stdout.write(`\n${markdownOf(trials)}\n`);

/** @throws Error for an unknown name or area */
function chosen(names: readonly string[] | undefined, areas: readonly string[] | undefined): Mistake[] {
  if (names === undefined && areas === undefined) return [...allMistakes];
  const byArea = (areas ?? []).flatMap((name) => {
    const found = mistakesByArea[name];
    if (found === undefined) throw new Error(`no area ${name}`);
    return found;
  });
  const byName = (names ?? []).map((name) => {
    const found = allMistakes.find((mistake) => mistake.name === name);
    if (found === undefined) throw new Error(`no mistake ${name}`);
    return found;
  });
  return [...new Set([...byArea, ...byName])];
}

/** Whether stories of two hosts are to find the mistake. */
function isOfTwoHosts({ spec, isServed, isFabric }: Mistake): boolean {
  return spec === undefined && isServed !== true && isFabric !== true;
}

/** Runs the specs that mistakes name in the unchanged source: a spec that fails there finds no mistake. */
async function tellFailingSpecs(): Promise<void> {
  for (const spec of new Set(wanted.flatMap((mistake) => mistake.spec ?? []))) {
    const failure = await unchangedSpecs.failureOf(spec);
    if (failure !== undefined) process.stdout.write(`${spec}: FAILS WITHOUT A MISTAKE: ${failure}\n`);
  }
}

async function work(): Promise<void> {
  using own = new SourceTree();
  for (let mistake = waiting.shift(); mistake !== undefined; mistake = waiting.shift()) {
    const trial = await tryOne(mistake, own);
    trials.push(trial);
    process.stdout.write(`${lineOf(trial)}\n`);
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(trials, null, 1)}\n`);
  }
}

async function tryOne(mistake: Mistake, own: SourceTree): Promise<Trial> {
  const { spec, isServed, isFabric } = mistake;
  if (spec !== undefined) return await trySpec({ ...mistake, spec }, own, unchangedSpecs);
  if (isServed === true) return await tryKind(mistake, own, 'served');
  if (isFabric === true) return await tryKind(mistake, own, 'fabric');
  return known === undefined
    ? await tryMistake(mistake, own, unchanged, minutes, firstSeed)
    : await known.tryMistake(mistake, own);
}

function tellProgress(done: number): void {
  if (process.stderr.isTTY)
    process.stderr.write(`\rstories without a mistake: ${done.toFixed(1)} of ${minutes} minutes `);
}

function lineOf({ mistake, find, stories, seconds }: Trial): string {
  const effort = `${mistake.spec === undefined ? `${stories} stories` : 'a spec'}, ${seconds.toFixed(0)} s`;
  const seed = mistake.spec === undefined ? `, seed ${find?.seed}` : '';
  const outcome = find === undefined ? 'MISSED' : `found by ${find.by}${seed}: ${find.what.slice(0, 160)}`;
  return `${mistake.name.padEnd(36)} ${effort.padEnd(22)} ${outcome}`;
}

function markdownOf(all: readonly Trial[]): string {
  const rows = wanted.flatMap((wantedMistake) => {
    const trial = all.find(({ mistake }) => mistake.name === wantedMistake.name);
    if (trial === undefined) return [];
    const { mistake, find, stories, seconds } = trial;
    const seed = find === undefined || mistake.spec !== undefined ? '' : `seed ${find.seed}, `;
    const effort = `${seed}${mistake.spec ?? `${stories} stories`}, ${seconds.toFixed(0)} s`;
    const by = find?.by === 'scene' ? `scene ${find.scene}` : find?.by;
    return [`| ${mistake.name} | ${mistake.file} | ${mistake.kind} | ${by ?? '**missed**'} | ${effort} |`];
  });
  const head = ['| mistake | file | kind | found by | seed, stories, seconds |', '|---|---|---|---|---|'];
  const foundCount = all.filter(({ find }) => find !== undefined).length;
  return [...head, ...rows, '', `${foundCount} of ${all.length} found.`].join('\n');
}

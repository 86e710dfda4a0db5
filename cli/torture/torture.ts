/**
 * `hca torture`: plays random stories and judges each. Without options it plays new ones for a minute; `--seed` repeats
 * a story and describes it; `--shrink` reduces a failing one. Exit code 1 if anything was found.
 */
import { createHash, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { type PageTable, pageOf, tableSection, textSection } from '../../explain/page/index.ts';
import { tableOf } from '../../explain/text/table.ts';
import { readSmallFile } from '../../runtime/files.ts';
import { checkWritable, writeFileAtomically } from '../../runtime/output-files.ts';
import {
  type Coverage,
  campaign,
  drawnPaths,
  type Finding,
  fabricStoryOf,
  firstDifference,
  joinCoverage,
  lastMoments,
  noCoverage,
  plain,
  renderFabricStory,
  renderStory,
  runStory,
  type Story,
  type StoryOutcome,
  sceneNames,
  shrinkStory,
  storyFrom,
  storyOfSeed,
} from '../../torture/index.ts';
import { CountBar } from '../count-bar.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import { argumentsOf, type InvocationInput, inputName, invocationOf } from '../invocation.ts';
import type { StoryOutput } from '../json-outputs.ts';
import { addShortcutsOption, integer } from '../options.ts';
import { codeOf, exitFailed, Screen, writeJson } from '../output.ts';
import { playedArguments, type SeedRange, seedMax, seedRange } from './seed-range.ts';
import { tortureServed } from './torture-served.ts';

interface TortureChoice extends HtmlChoice {
  readonly seed?: number;
  readonly seeds?: SeedRange;
  readonly scene?: string;
  readonly story?: string;
  readonly minutes?: number;
  readonly jobs: number;
  readonly shrink?: true;
  readonly tries: number;
  readonly save?: string;
  readonly shortcuts: boolean;
  readonly fabric?: true;
  readonly fabrics?: number;
  readonly served?: true;
  readonly actions?: number;
  readonly json?: string;
}

interface TortureOptions extends TortureChoice {
  readonly command: Command;
}

/** Failures printed as they occur; the JSON has all of them. */
const failuresPrinted = 30;

export function addTortureCommand(program: Command): void {
  const command = program
    .command('torture')
    .description('play random stories of programs, hardware and faults, and judge their outcome')
    .option('--seed <n>', 'play the story of this seed, and describe it', integer(0, seedMax))
    .option('--seeds <first..last>', 'play the stories of these seeds', seedRange)
    .option('--scene <name>', `play this scene with the seeds: ${sceneNames.join(', ')}`, sceneName)
    .option('--story <file>', 'play the story of a file that --save wrote')
    .option('--minutes <n>', 'play new stories for this long (default: 1)', minutes)
    .option(
      '--jobs <n>',
      'stories at once (default: one for each core)',
      integer(1, 256),
      availableParallelism(),
    )
    .option('--shrink', 'make the story that failed as small as it can be and still fail')
    .option('--tries <n>', 'stories to play for that at most', integer(1, 100_000), 600)
    .option('--fabric', 'play stories of hosts and switches, with faults of their cables, instead')
    .option(
      '--fabrics <n>',
      `of every n stories, one is of hosts and switches (default: ${fabricEvery}; with --seeds none)`,
      integer(2, 1e6),
    )
    .option('--served', 'play rough guests at a served device instead')
    .option(
      '--actions <n>',
      'with --served: stop when each kind of action was played so often',
      integer(1, 1e9),
    )
    .option('--save <file>', 'write the story that failed (made small by --shrink) as JSON')
    .option('--json <file>', 'write the figures as JSON; - is standard output')
    .option(...htmlOption)
    .action(torture);
  addShortcutsOption(command);
}

function sceneName(text: string): string {
  if (sceneNames.includes(text)) return text;
  throw new InvalidArgumentError(`expected one of ${sceneNames.join(', ')}.`);
}

function minutes(text: string): number {
  const value = Number(text);
  if (!(value > 0) || value > 100_000)
    throw new InvalidArgumentError('expected a number above 0, of minutes.');
  return value;
}

async function torture(given: TortureChoice, command: Command): Promise<void> {
  const options: TortureOptions = { ...given, command };
  const { seed, scene, story, json, save, served, shortcuts } = options;
  checkWritable(json);
  checkWritable(given.html);
  checkWritable(save);
  const screen = new Screen(json);
  if (served === true && !shortcuts)
    throw new ConfigurationError('--no-shortcuts', 'given', 'left out with --served');
  const share = shareOfFabrics(options);
  if (given.fabric === true) await fabrics(options, screen);
  else if (served === true) tortureServed(options, command, screen);
  else if (story !== undefined) await one(storyOf(story), options, screen);
  else if (seed !== undefined) await one(storyOfSeed(seed, scene), options, screen);
  else await many(options, screen, share);
}

/** New stories per story of a fabric. Such a story takes about five times as long as another, so fabrics take a quarter of the time. */
const fabricEvery = 16;

/** Options that stories of fabrics do not have. */
const notOfFabrics = ['scene', 'story', 'served', 'actions', 'shrink', 'save', 'fabrics'] as const;

/** Options of one kind of story. */
const ofOneKind = ['seed', 'scene', 'story', 'served', 'save', 'shrink'] as const;

/**
 * Returns the number of stories per story of a fabric in a campaign; undefined if it plays none.
 * @throws ConfigurationError if it is given for one kind of story
 */
function shareOfFabrics(options: TortureChoice): number | undefined {
  const given = ofOneKind.find((name) => options[name] !== undefined);
  const { fabrics, shortcuts, seeds, fabric } = options;
  const other = given ?? (shortcuts ? undefined : 'no-shortcuts');
  if (fabrics !== undefined && other !== undefined)
    throw new ConfigurationError('--fabrics', fabrics, `left out with --${other}`);
  if (other !== undefined || fabric === true) return undefined;
  return fabrics ?? (seeds === undefined ? fabricEvery : undefined);
}

/** @throws ConfigurationError for an option that does not apply to stories of fabrics */
async function fabrics(options: TortureOptions, screen: Screen): Promise<void> {
  for (const name of notOfFabrics)
    if (options[name] !== undefined)
      throw new ConfigurationError(`--${name}`, options[name], 'left out with --fabric');
  if (!options.shortcuts) throw new ConfigurationError('--no-shortcuts', 'given', 'left out with --fabric');
  const { seed } = options;
  if (seed === undefined) return await many(options, screen);
  for (const line of renderFabricStory(fabricStoryOf(seed))) screen.print(line);
  await many({ ...options, seeds: { first: seed, last: seed } }, screen);
}

/** @throws ConfigurationError if the file is not a story */
function storyOf(file: string): Story {
  let value: unknown;
  try {
    value = JSON.parse(readSmallFile(file));
  } catch (error) {
    throw new ConfigurationError('story', file, `a file that --save wrote (${codeOf(error)})`);
  }
  return storyFrom(value);
}

async function one(drawn: Story, options: TortureOptions, screen: Screen): Promise<void> {
  const story = options.shortcuts ? drawn : plain(drawn);
  const { findings, refused } = await runStory(story);
  if (refused !== undefined) screen.print(`The machine refuses the configuration of this story: ${refused}`);
  if (findings.length > 0 && options.shrink) {
    await small(story, findings, options, screen);
    return;
  }
  for (const line of renderStory(story)) screen.print(line);
  if (refused === undefined) printFindings(findings, screen);
  await printDifference(story, findings, screen);
  finish({ story, findings, refused: refused ?? null }, options, screen);
  // A story from a file that cannot be played proves nothing and must not pass.
  if (refused !== undefined && options.story !== undefined) process.exitCode = exitFailed;
}

async function small(
  story: Story,
  findings: readonly Finding[],
  options: TortureOptions,
  screen: Screen,
): Promise<void> {
  const bar = new CountBar(options.tries, 'tries');
  const shrunk = await shrinkStory(story, findings, options.tries, (tries) => bar.update(tries));
  bar.stop();
  for (const line of renderStory(shrunk.story)) screen.print(line);
  printFindings(shrunk.findings, screen);
  await printDifference(shrunk.story, shrunk.findings, screen);
  screen.print(`Made small in ${shrunk.tries} tries. The last microseconds of its traffic:`);
  for (const line of await lastMoments(shrunk.story).catch(() => [])) screen.print(line);
  finish({ ...shrunk, refused: null }, options, screen);
}

/** Prints, for a story with different results elsewhere, the first block at which the two runs differ. */
async function printDifference(story: Story, findings: readonly Finding[], screen: Screen): Promise<void> {
  if (!findings.some(({ judge }) => judge === 'sameness')) return;
  for (const line of await firstDifference(story)) screen.print(line);
}

function finish(
  result: Omit<StoryOutput, 'schema' | 'invocation'>,
  { save, json, html, story: file, command }: TortureOptions,
  screen: Screen,
): void {
  if (save !== undefined) writeFileAtomically(save, `${JSON.stringify(result.story, null, 1)}\n`);
  if (json !== undefined) {
    const input = file === undefined ? undefined : storyInput(file);
    const invocation = invocationOf(command, argumentsOf(command), undefined, input);
    writeJson(json, { schema: 'hca-torture-story/1', invocation, ...result });
  }
  const { story, findings } = result;
  const head = headOf(command, { title: 'A story', sentences: findingLines(findings) });
  const section = textSection('The story', renderStory(story).join('\n'));
  writePage(html === undefined ? {} : { html }, () => pageOf(head, [section]), screen);
  if (findings.length > 0) process.exitCode = exitFailed;
}

function storyInput(file: string): InvocationInput {
  const bytes = readFileSync(file);
  return {
    file: inputName(file),
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
}

function printFindings(findings: readonly Finding[], screen: Screen): void {
  for (const line of findingLines(findings)) screen.print(line);
}

const findingLines = (findings: readonly Finding[]): string[] =>
  findings.length === 0
    ? ['Nothing found.']
    : findings.map(({ judge, what }) => `FOUND by ${judge}: ${what}`);

interface Tally {
  stories: number;
  refused: number;
  coverage: Coverage;
  readonly failures: Pick<StoryOutcome, 'seed' | 'climate' | 'findings'>[];
}

/** @param every number of stories per story of a fabric; left out: the options decide whether none or all are */
async function many(options: TortureOptions, screen: Screen, every?: number): Promise<void> {
  const { seeds, scene, jobs, json, shortcuts, fabric } = options;
  const first = seeds?.first ?? randomInt(2 ** 40);
  const limitMs =
    seeds !== undefined && options.minutes === undefined
      ? Number.POSITIVE_INFINITY
      : (options.minutes ?? 1) * 60_000;
  const beganMs = performance.now();
  const elapsedMs = (): number => performance.now() - beganMs;
  const count = seeds === undefined ? Number.POSITIVE_INFINITY : seeds.last - seeds.first + 1;
  const mixed = every === undefined ? '' : ` Seeds that ${every} divides are of hosts and switches.`;
  screen.print(`Stories from seed ${first} on, ${jobs} at once.${mixed}`);
  const bar = Number.isFinite(count)
    ? new CountBar(count, 'stories')
    : new CountBar(Math.ceil(limitMs / 1000), 's');
  const tally: Tally = { stories: 0, refused: 0, coverage: noCoverage, failures: [] };
  const isTimeUp = (): boolean => elapsedMs() > limitMs;
  const how = {
    ...(scene === undefined ? {} : { scene }),
    ...(fabric === true ? { fabricEvery: 1 } : {}),
    ...(every === undefined ? {} : { fabricEvery: every }),
    ...(shortcuts ? {} : { isPlain: true as const }),
  };
  for await (const outcome of campaign(numbersFrom(first, count), jobs, isTimeUp, how)) {
    note(tally, outcome);
    for (const { judge, what } of tally.failures.length > failuresPrinted ? [] : outcome.findings.slice(0, 3))
      screen.print(`seed ${outcome.seed} (${outcome.climate}): FOUND by ${judge}: ${what}`);
    bar.update(Number.isFinite(count) ? tally.stories : Math.floor(elapsedMs() / 1000));
  }
  bar.stop();
  const seconds = elapsedMs() / 1000;
  const tables = tablesOf(tally);
  for (const { title, head, rows } of tables) screen.print(tableOf(title, head, rows));
  const summary = summaryOf(tally, seconds, fabric === true);
  const played = playedArguments(options.command, first, tally.stories, every);
  for (const line of summary) screen.print(line);
  if (json !== undefined) {
    const invocation = invocationOf(options.command, played);
    writeJson(json, { schema: 'hca-torture/1', invocation, firstSeed: first, seconds, ...tally });
  }
  const failed = tally.failures.flatMap(({ seed, findings }) =>
    findingLines(findings).map((line) => `seed ${seed}: ${line}`),
  );
  const ran = { title: 'Random stories', instead: played, sentences: [...summary, ...failed] };
  writePage(options, () => pageOf(headOf(options.command, ran), tables.map(tableSection)), screen);
  const [failure] = tally.failures;
  if (failure === undefined) return;
  process.exitCode = exitFailed;
  const isOfFabric = fabric === true || (every !== undefined && failure.seed % every === 0);
  screen.print(
    isOfFabric
      ? `Again: hca torture --fabric --seed ${failure.seed}`
      : `Again: hca torture --seed ${failure.seed}${scene === undefined ? '' : ` --scene ${scene}`}${shortcuts ? '' : ' --no-shortcuts'}${options.shrink ? '' : '    Smaller: add --shrink'}`,
  );
  if (options.shrink) {
    const { json: _written, html: _page, ...rest } = options;
    await one(storyOfSeed(failure.seed, scene), rest, screen);
  }
}

/** Counts the requests of each verb that met each kind of fault, and their different outcomes. */
function faultTables({ ends, endsByFault, faults }: Coverage): PageTable[] {
  const kinds = Object.keys(faults).toSorted();
  const verbs = Object.keys(ends).toSorted();
  if (kinds.length === 0 || verbs.length === 0 || Object.keys(endsByFault).length === 0) return [];
  const cell = (verb: string, kind: string): string => {
    const counts = Object.values(endsByFault[`${verb}, ${kind}`] ?? {});
    const requests = counts.reduce((sum, count) => sum + count, 0);
    return requests === 0 ? '' : `${requests} / ${counts.length}`;
  };
  const rows = verbs.map((verb) => [verb, ...kinds.map((kind) => cell(verb, kind))]);
  return [
    { title: 'Requests beside faults / ways they ended', head: ['transport and verb', ...kinds], rows },
  ];
}

function* numbersFrom(first: number, count: number): Generator<number> {
  for (let index = 0; index < count; index++) yield first + index;
}

function note(tally: Tally, { seed, climate, findings, refused, coverage }: StoryOutcome): void {
  tally.stories++;
  if (refused !== undefined) tally.refused++;
  tally.coverage = joinCoverage(tally.coverage, coverage);
  if (findings.length > 0) tally.failures.push({ seed, climate, findings });
}

function tablesOf({ coverage }: Tally): PageTable[] {
  const ends = [...new Set(Object.values(coverage.ends).flatMap(Object.keys))].toSorted();
  const rows = Object.entries(coverage.ends)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([verb, counts]) => [verb, ...ends.map((end) => counts[end] ?? 0)]);
  const counted = (title: string, counts: Readonly<Record<string, number>>): PageTable[] =>
    Object.keys(counts).length === 0
      ? []
      : [{ title, head: ['what', 'times'], rows: Object.entries(counts).toSorted() }];
  return [
    { title: 'Requests by how they ended', head: ['transport and verb', ...ends], rows },
    ...faultTables(coverage),
    ...counted('Faults injected', coverage.faults),
    ...counted('Steps of programs', coverage.steps),
    ...counted('Objects of programs', coverage.objects),
  ];
}

function summaryOf(
  { stories, refused, coverage, failures }: Tally,
  seconds: number,
  isOfFabrics: boolean,
): string[] {
  const changed = drawnPaths.filter((path) => coverage.parameters[path] !== undefined).length;
  const rate = (stories / seconds).toFixed(2);
  const parameters = isOfFabrics
    ? []
    : [`Parameters changed: ${changed} of ${drawnPaths.length}; the ranges drawn are in the JSON.`];
  return [
    ...parameters,
    `${stories} stories in ${seconds.toFixed(0)} s (${rate} a second), ${refused} refused by the configuration's checks, ${failures.length} with findings.`,
  ];
}

/** `hca torture --served`: misbehaving guests at a served device, in this thread, one story after another. */
import { randomInt } from 'node:crypto';
import type { Command } from 'commander';
import { commandStatusName } from '../../abi/index.ts';
import { type PageTable, pageOf, tableSection } from '../../explain/page/index.ts';
import { tableOf } from '../../explain/text/table.ts';
import {
  addCoverage,
  type CommandCoverage,
  countedKinds,
  noRoughCoverage,
  playServedStory,
  type RoughCoverage,
  type ServedKind,
  type ServedStory,
  servedKinds,
  servedKindTable,
  shrinkServedStory,
} from '../../torture/index.ts';
import { CountBar } from '../count-bar.ts';
import { headOf, writePage } from '../html-output.ts';
import { invocationOf } from '../invocation.ts';
import { exitFailed, type Screen, writeJson } from '../output.ts';
import { playedArguments } from './seed-range.ts';

export interface ServedChoice {
  readonly seed?: number;
  readonly seeds?: { readonly first: number; readonly last: number };
  readonly minutes?: number;
  /** Number of each counted kind, unless time or seeds end the run earlier. */
  readonly actions?: number;
  readonly shrink?: true;
  readonly json?: string;
  readonly html?: string;
}

type Failure = Pick<ServedStory, 'seed' | 'findings'>;

interface Tally {
  stories: number;
  longestTurnMs: number;
  readonly counts: Record<ServedKind, number>;
  readonly coverage: RoughCoverage;
  readonly failures: Failure[];
}

export function tortureServed(choice: ServedChoice, command: Command, screen: Screen): void {
  const { seed, seeds, actions, json } = choice;
  const first = seed ?? seeds?.first ?? randomInt(2 ** 40);
  const last = seed ?? seeds?.last ?? Number.POSITIVE_INFINITY;
  const isTimed = choice.minutes !== undefined || (!Number.isFinite(last) && actions === undefined);
  const limitMs = isTimed ? (choice.minutes ?? 1) * 60_000 : Number.POSITIVE_INFINITY;
  const beganMs = performance.now();
  const tally = noTally();
  const fewest = (): number => Math.min(...countedKinds.map((kind) => tally.counts[kind]));
  const elapsedMs = (): number => performance.now() - beganMs;
  screen.print(`Served stories from seed ${first} on.`);
  const bar =
    actions === undefined
      ? new CountBar(Math.ceil(limitMs / 1000), 's')
      : new CountBar(actions, 'of each kind');
  for (let next = first; next <= last && elapsedMs() <= limitMs && fewest() < (actions ?? Infinity); next++) {
    const story = playServedStory({ seed: next });
    note(tally, story);
    for (const { kind, text } of story.findings) screen.print(`seed ${next}: FOUND by ${kind}: ${text}`);
    bar.update(actions === undefined ? Math.floor(elapsedMs() / 1000) : Math.min(actions, fewest()));
  }
  bar.stop();
  const seconds = elapsedMs() / 1000;
  const [failed] = tally.failures;
  if (failed !== undefined) {
    process.exitCode = exitFailed;
    printFailure(failed, choice, screen);
  }
  const tables = tablesOf(tally);
  for (const { title, head, rows } of tables) screen.print(tableOf(title, head, rows));
  const summary = summaryOf(tally, seconds);
  for (const line of summary) screen.print(line);
  const instead = playedArguments(command, first, tally.stories);
  const page = (): string =>
    pageOf(headOf(command, { title: 'Rough guests', instead, sentences: summary }), tables.map(tableSection));
  writePage(choice, page, screen);
  if (json !== undefined) {
    const invocation = invocationOf(command, playedArguments(command, first, tally.stories));
    writeJson(json, { schema: 'hca-torture-served/1', invocation, ...resultOf(tally, first, seconds) });
  }
}

const noTally = (): Tally => ({
  stories: 0,
  longestTurnMs: 0,
  counts: Object.fromEntries(servedKinds.map((kind) => [kind, 0])) as Record<ServedKind, number>,
  coverage: noRoughCoverage(),
  failures: [],
});

function note(tally: Tally, { seed, findings, counts, coverage, longestTurnMs }: ServedStory): void {
  tally.stories++;
  tally.longestTurnMs = Math.max(tally.longestTurnMs, longestTurnMs);
  for (const kind of servedKinds) tally.counts[kind] += counts[kind];
  addCoverage(tally.coverage, coverage);
  if (findings.length > 0) tally.failures.push({ seed, findings });
}

const tablesOf = ({ counts, coverage }: Tally): PageTable[] => [
  {
    title: 'What rough guests did',
    head: ['kind', 'what', 'times'],
    rows: servedKinds.map((kind) => [kind, servedKindTable[kind].meaning, counts[kind]]),
  },
  commandTable(coverage.commands),
];

function summaryOf({ stories, counts, coverage, failures, longestTurnMs }: Tally, seconds: number): string[] {
  const fields = [...coverage.fields.values()];
  const both = fields.filter(({ accepted, refused }) => accepted > 0 && refused > 0).length;
  const all = servedKinds.reduce((sum, kind) => sum + counts[kind], 0);
  const rate = Math.round(all / seconds);
  return [
    `Mailbox fields with unusual values: ${fields.length}, ${both} of them both in commands that succeeded and in refused ones.`,
    `${stories} served stories in ${seconds.toFixed(0)} s (${rate} actions a second), longest turn ${longestTurnMs.toFixed(0)} ms, ${failures.length} with findings.`,
  ];
}

/** Counts how often each command ended with each status. */
function commandTable(commands: CommandCoverage): PageTable {
  const rows = [...commands]
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, statuses]) => {
      const refusals = [...statuses]
        .filter(([status]) => status !== 0)
        .toSorted(([left], [right]) => left - right)
        .map(([status, count]) => `${statusName(status)} ${count}`);
      return [name, statuses.get(0) ?? 0, refusals.join(', ')];
    });
  return { title: 'Commands by how they ended', head: ['command', 'OK', 'otherwise'], rows };
}

const statusName = (status: number): string => {
  if (status >= 0) return commandStatusName(status);
  return status === -1 ? 'not ended' : 'out of reach';
};

function resultOf(
  { stories, counts, coverage, failures, longestTurnMs }: Tally,
  first: number,
  seconds: number,
) {
  const commands = Object.fromEntries(
    [...coverage.commands].map(([name, statuses]) => [
      name,
      Object.fromEntries([...statuses].map(([status, count]) => [statusName(status), count])),
    ]),
  );
  const fields = Object.fromEntries(coverage.fields);
  return { firstSeed: first, seconds, stories, counts, longestTurnMs, commands, fields, failures };
}

function printFailure({ seed, findings }: Failure, { shrink }: ServedChoice, screen: Screen): void {
  if (shrink !== true) {
    screen.print(`Again: hca torture --served --seed ${seed}    Smaller: add --shrink`);
    return;
  }
  const small = shrinkServedStory({ seed });
  const [finding] = small?.story.findings ?? findings;
  screen.print(`Seed ${seed} made small: ${JSON.stringify(small?.options ?? { seed })}`);
  for (const action of finding?.actions ?? []) screen.print(`  ${action}`);
}

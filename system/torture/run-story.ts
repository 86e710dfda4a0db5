/**
 * Plays a story on a machine of its own and has it judged.
 *
 *     story ─► Machine ─► players ─► observations, report, leftovers ─► judges ─► findings
 *       └── again, in another partition or another order of one instant: everything equal
 *
 * A configuration that the machine refuses with a ConfigurationError is no story: `refused` says why.
 */
import type { Finding as LintFinding } from '../../analyser/index.ts';
import { ConfigurationError } from '../../base/assert.ts';
import { psPerSecond } from '../../base/units.ts';
import type { AnalysisOptions } from '../analysis/index.ts';
import { Machine } from '../machine.ts';
import type { Held } from '../node/held.ts';
import type { Partition } from '../partition/placement.ts';
import type { JsonValue } from '../program.ts';
import type { Report } from '../report/schema.ts';
import type { Finding } from './finding.ts';
import { judges } from './judges/index.ts';
import type { Observations } from './observations.ts';
import { patienceOf } from './player.ts';
import type { Story } from './story.ts';

export interface Verdict {
  readonly findings: readonly Finding[];
  /** Why the machine did not want the story's configuration; undefined when it took it. */
  readonly refused: string | undefined;
  readonly played: Played | undefined;
}

/** Everything that can be judged. */
export interface Played {
  readonly story: Story;
  /** By program; null of one that ended without a result, or never began. */
  readonly seen: readonly (Observations | null)[];
  readonly report: Report;
  /** What software and memory still held when all programs had ended and the drivers were gone, by node. */
  readonly leftovers: readonly (Readonly<Record<string, number>> | null)[];
  /**
   * What the blocks of each node held: in a machine just built, when all programs had ended, and when the drivers were gone.
   * Undefined where the story did not come so far.
   */
  readonly held: Readonly<Record<'fresh' | 'ended' | 'removed', readonly Held[] | undefined>>;
  /** Rules of the interface that the drivers broke, by the linter. */
  readonly lint: readonly LintFinding[];
  /** How the run itself ended: undefined is well. */
  readonly error: Error | undefined;
}

/** Plays and judges. */
export async function runStory(story: Story): Promise<Verdict> {
  try {
    const played = await playStory(story, 'single', undefined);
    const findings = judges.flatMap(({ name, judge }) =>
      judge(played).map((what) => ({ judge: name, what })),
    );
    if (story.again !== undefined && played.error === undefined)
      findings.push(...(await compared(story, played, story.again)));
    return { findings, refused: undefined, played };
  } catch (error) {
    if (error instanceof ConfigurationError)
      return { findings: [], refused: error.message, played: undefined };
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return {
      findings: [{ judge: 'machine', what: `the model threw ${text}` }],
      refused: undefined,
      played: undefined,
    };
  }
}

async function compared(story: Story, first: Played, again: NonNullable<Story['again']>): Promise<Finding[]> {
  const second = await playStory(story, again.partition, again.shuffleSeed);
  const how = `in partition ${again.partition}, shuffled by ${again.shuffleSeed}`;
  const differs = (what: string, left: unknown, right: unknown): Finding[] => {
    const [before, after] = [JSON.stringify(left) ?? '', JSON.stringify(right) ?? ''];
    if (before === after) return [];
    let at = 0;
    while (before[at] === after[at]) at++;
    const excerpt = (text: string): string => text.slice(Math.max(0, at - 60), at + 40);
    return [
      { judge: 'sameness', what: `${what} differs ${how}: …${excerpt(before)}… and …${excerpt(after)}…` },
    ];
  };
  return [
    ...differs('what the programs saw', first.seen, second.seen),
    ...differs('the report', first.report, second.report),
  ];
}

/** In the package the modules are JavaScript. */
const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const players = new URL(`./player${ending}`, import.meta.url);
const inspectors = new URL(`./leftovers${ending}`, import.meta.url);

/** Beyond what all programs together may wait for: a story that goes on until here does not end. */
const simulatedLimitPs = (story: Story): bigint =>
  BigInt(60 * psPerSecond) + BigInt(40 * (1 + (story.turns?.length ?? 0))) * BigInt(patienceOf(story));

export async function playStory(
  story: Story,
  partition: Partition,
  shuffleSeed: number | undefined,
  analysis?: AnalysisOptions,
): Promise<Played> {
  const { set, faults } = story;
  await using machine = await Machine.create({
    set,
    faults,
    partition,
    watch: 'accesses',
    ...(shuffleSeed === undefined ? {} : { shuffleSeed }),
    analysis: analysis ?? { lint: true },
  });
  const fresh = await machine.held();
  for (const [program, { node }] of story.programs.entries())
    await machine.load({
      node,
      run: { url: players, exportName: 'play' },
      name: `player${program}`,
      args: { story, program } as unknown as JsonValue,
    });
  let error = await errorOf(() => machine.run(simulatedLimitPs(story)));
  const seen = (await machine.results()).map((result) => (result ?? null) as Observations | null);
  let leftovers: (Readonly<Record<string, number>> | null)[] = [null, null];
  const held: { -readonly [When in keyof Played['held']]: Played['held'][When] } = {
    fresh,
    ended: undefined,
    removed: undefined,
  };
  if (error === undefined && seen.every((result) => result !== null)) {
    error = await errorOf(async () => {
      held.ended = await machine.held();
      await machine.removeDrivers();
      held.removed = await machine.held();
      for (const node of [0, 1])
        await machine.load({
          node,
          run: { url: inspectors, exportName: 'leftovers' },
          name: `inspector${node}`,
        });
      await machine.run(BigInt(machine.instantPs) + simulatedLimitPs(story));
      leftovers = (await machine.results()).slice(-2) as typeof leftovers;
    });
  }
  const lint = (await machine.analyses()).flatMap(({ findings }) => findings);
  return { story, seen, report: await machine.report(), leftovers, held, lint, error };
}

async function errorOf(body: () => Promise<unknown>): Promise<Error | undefined> {
  try {
    await body();
    return undefined;
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    return error instanceof Error ? error : new Error(String(error));
  }
}

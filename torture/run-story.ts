/**
 * Plays a story on its own machine and judges it.
 *
 *     story ─► Machine ─► players ─► observations, report, leftovers ─► judges ─► findings
 *       └── again, in another partition, another order of one instant or without shortcuts: everything equal
 *
 * A configuration that the machine rejects with a ConfigurationError is no story: `refused` gives the reason.
 */
import type { Finding as LintFinding } from '../analyser/index.ts';
import { ConfigurationError, psPerSecond, type TextSink } from '../base/index.ts';
import { type AnalysisOptions, traceDefaults } from '../machine/analysis/index.ts';
import { CostsOverflowError, type OperationCost, type OtherCost } from '../machine/costs/index.ts';
import {
  type Held,
  type JsonValue,
  type LinkPackets,
  Machine,
  type NodeConnections,
  type Partition,
  type ProgramOptions,
  type Report,
} from '../machine/index.ts';
import type { MachineConfig } from '../machine/profile/index.ts';
import { epochLengthPs } from '../sim/index.ts';
import type { Finding } from './finding.ts';
import { judgeCosts, judgesOf } from './judges/index.ts';
import type { Observations } from './observations.ts';
import { patienceOf, peerPatienceFactor } from './patience.ts';
import { againText } from './render-story.ts';
import { sceneOf } from './scenes/index.ts';
import type { Again, Story } from './story.ts';

export interface Verdict {
  readonly findings: readonly Finding[];
  /** Why the machine refused the story's configuration; undefined when it accepted it. */
  readonly refused: string | undefined;
  readonly played: Played | undefined;
}

/** Costs of the operations that players marked, and costs without an operation. */
export interface Costs {
  readonly operations: readonly OperationCost[];
  readonly others: readonly OtherCost[];
}

/** Everything that can be judged. */
export interface Played {
  readonly story: Story;
  /** When all programs had ended. */
  readonly endPs: bigint;
  /** Results by program; null for one that ended without a result, or never began. */
  readonly results: readonly (JsonValue | null)[];
  /** The results of players; empty of a scene. */
  readonly seen: readonly (Observations | null)[];
  readonly report: Report;
  /** Objects that software and memory still held when all programs had ended and the drivers were removed, by node. */
  readonly leftovers: readonly (Readonly<Record<string, number>> | null)[];
  /**
   * Work that the blocks of each node held: in a new machine, when all programs had ended, and when the drivers were removed.
   * Undefined if the story ended earlier.
   */
  readonly held: Readonly<Record<'fresh' | 'ended' | 'removed', readonly Held[] | undefined>>;
  /** Rules of the interface that the drivers broke, by the linter. */
  readonly lint: readonly LintFinding[];
  /** Packets of the PCIe links until the drivers were removed. */
  readonly packets: readonly LinkPackets[];
  /** Costs of operations; undefined if the machine attributes none, or cannot tell that many packets apart. */
  readonly costs: Costs | undefined;
  /** The connections that drivers made. */
  readonly connections: readonly NodeConnections[];
  /** Capture of both ends of the cable; undefined without observers. */
  readonly capture: Uint8Array | undefined;
  /** When the capture ends. */
  readonly lastPs: bigint;
  /** Every parameter of the machine. */
  readonly config: MachineConfig;
  /** Error that ended the run; undefined without an error. */
  readonly error: Error | undefined;
}

/**
 * Events, records and clock edges of a story. The busiest scene takes 7 million, stories of players less than one; a
 * device in which a block polls indefinitely takes at least 30 million in each second of simulated time.
 */
const stepLimitOfStories = 25_000_000;

/** Plays and judges. @param stepLimit a story that takes more steps does not end */
export async function runStory(story: Story, stepLimit = stepLimitOfStories): Promise<Verdict> {
  try {
    const played = await playStory(story, { partition: 'single', shuffleSeed: undefined }, { stepLimit });
    const findings = judgesOf(story).flatMap(({ name, judge }) =>
      judge(played).map((what) => ({ judge: name, what })),
    );
    if (story.again !== undefined && played.error === undefined)
      findings.push(...(await compared(story, played, story.again)));
    if (story.stopsAfter !== undefined && played.error === undefined)
      findings.push(...(await stopped(story, played, story.stopsAfter)));
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

/** Plays a part of the story: work in flight there is cut, and the ledgers still balance. */
async function stopped(story: Story, { endPs }: Played, part: number): Promise<Finding[]> {
  await using machine = await machineOf(
    story,
    { partition: 'single', shuffleSeed: undefined },
    { analysis: {} },
  );
  for (const program of programsOf(story)) await machine.load(program);
  // Parts per million: an exact instant, however long the story.
  const untilPs = (endPs * BigInt(Math.round(1e6 * part))) / 1_000_000n;
  await machine.runTo(untilPs);
  const { balanced, ...checks } = (await machine.report()).checks;
  const found = Object.entries(checks).flatMap(([name, { failures }]) =>
    failures.map((failure) => `${name}: ${failure}`),
  );
  if (!balanced && found.length === 0) found.push('the ledgers do not balance, and no check says why');
  return found.map((what) => ({ judge: 'stopped', what: `stopped at ${untilPs} ps: ${what}` }));
}

async function compared(story: Story, first: Played, again: NonNullable<Story['again']>): Promise<Finding[]> {
  const epochPs = again.epochPs === undefined ? undefined : epochPsFor(again.epochPs, first.endPs);
  const second = await playStory(story, epochPs === undefined ? again : { ...again, epochPs });
  const how = againText(again, epochPs);
  const differs = (what: string, left: unknown, right: unknown): Finding[] => {
    const [before, after] = [textOf(left), textOf(right)];
    if (before === after) return [];
    let at = 0;
    while (before[at] === after[at]) at++;
    const excerpt = (text: string): string => text.slice(Math.max(0, at - 60), at + 40);
    return [
      { judge: 'sameness', what: `${what} differs ${how}: …${excerpt(before)}… and …${excerpt(after)}…` },
    ];
  };
  return [
    ...differs('what the programs saw', first.results, second.results),
    ...differs('the report', withoutWatch(first.report), withoutWatch(second.report)),
    ...(again.isUnwatched === true ? [] : differs('what the linter reports', first.lint, second.lint)),
    ...(isSameCapture(first.capture, second.capture)
      ? []
      : [{ judge: 'sameness', what: `the capture of the cable differs ${how}` }]),
    ...judgeCosts(second).map((what) => ({ judge: 'costs', what })),
  ];
}

/** Compares captures; some plays have none. */
const isSameCapture = (left: Uint8Array | undefined, right: Uint8Array | undefined): boolean =>
  left === undefined || right === undefined || Buffer.compare(left, right) === 0;

/** Each epoch is a step, even if nothing happens in it. */
const epochsMax = 50_000n;

/**
 * Returns an epoch that is a multiple of the drawn one, so long that a story of minutes does not have millions of them.
 */
export function epochPsFor(drawnPs: number, endPs: bigint): number {
  let epochPs = drawnPs;
  while (endPs / BigInt(epochPs) > epochsMax && 2 * epochPs <= epochLengthPs) epochPs *= 2;
  return epochPs;
}

/** Instants beyond 2^53 ps are bigints. */
export const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `${part}` : part)) ?? '';

/** Findings of a watch are no difference. */
const withoutWatch = ({ nodes, ...rest }: Report): unknown => ({
  ...rest,
  nodes: nodes.map(({ unownedAccesses: _, ...node }) => node),
});

/** In the package the modules are JavaScript. */
const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const sceneProgram = new URL(`./scenes/play-scene${ending}`, import.meta.url);
const players = new URL(`./playing/player${ending}`, import.meta.url);
const inspectors = new URL(`./leftovers${ending}`, import.meta.url);

/** Limit beyond the patience of all programs together: a story that lasts longer does not end. */
const simulatedLimitPs = (story: Story): bigint =>
  BigInt(60 + (story.scene?.sleepsSeconds ?? 0)) * BigInt(psPerSecond) +
  BigInt(40 * (1 + (story.turns?.length ?? 0)) + peerPatienceFactor * awaitCount(story)) *
    BigInt(patienceOf(story));

/** Number of steps at which a program waits for a message of another, which may never arrive. */
const awaitCount = ({ programs }: Story): number =>
  programs.reduce((sum, { steps }) => sum + steps.filter((step) => step.do === 'await').length, 0);

export interface PlayOptions {
  /** Analyses; omitted: those that the judges need. */
  readonly analysis?: AnalysisOptions;
  readonly stepLimit?: number;
}

/** Observers of a machine in addition to those that judges need. Their notes are dropped once rendered as text. */
const observers = (partition: Partition): AnalysisOptions => ({
  timeline: {
    recordsMax: observedRecordsMax,
    ...(partition === 'single' ? { sink: () => {} } : {}),
  },
  capture: { ends: bothEnds, sizeBytes: 2 ** 20 },
  ...(partition === 'single' ? { trace: { ...traceDefaults, sinkOf: () => nowhere } } : {}),
});

const bothEnds = [{ node: 0 }, { node: 1 }];
const observedRecordsMax = 4096;
/**
 * Size of the capture: more than the frames of most stories need; some have tens of thousands, which take longer to
 * read than to send.
 */
const captureBytes = 2 ** 23;
const nowhere: TextSink = { write: () => {}, close: () => {} };

/** The machine of a story, without programs. */
export function machineOf(story: Story, how: Again, options: PlayOptions = {}): Promise<Machine> {
  const { set, faults } = story;
  const { partition, shuffleSeed, epochPs, isUnwatched, isObserved, isPlain = story.isPlain } = how;
  const { analysis, stepLimit = stepLimitOfStories } = options;
  return Machine.create({
    set,
    faults,
    partition,
    stepLimit,
    shortcuts: isPlain !== true,
    ...(isUnwatched === true ? {} : { watch: 'accesses' }),
    ...(shuffleSeed === undefined ? {} : { shuffleSeed }),
    ...(epochPs === undefined ? {} : { epochPs }),
    ...(isObserved === true ? { attributesCosts: true } : {}),
    analysis:
      analysis ??
      (isUnwatched === true
        ? {}
        : {
            lint: true,
            packets: true,
            ...(isObserved === true && !isOfNics(set) ? observers(partition) : {}),
            ...(isCaptured(story, how, options)
              ? { capture: { ends: bothEnds, sizeBytes: captureBytes } }
              : {}),
          }),
  });
}

export async function playStory(story: Story, how: Again, options: PlayOptions = {}): Promise<Played> {
  await using machine = await machineOf(story, how, options);
  const fresh = await machine.held();
  for (const program of programsOf(story, how.isObserved)) await machine.load(program);
  let error = await errorOf(() => machine.run(simulatedLimitPs(story)));
  const endPs = BigInt(machine.instantPs);
  const results = (await machine.results()).map((result) => result ?? null);
  let leftovers: (Readonly<Record<string, number>> | null)[] = [null, null];
  const held: { -readonly [When in keyof Played['held']]: Played['held'][When] } = {
    fresh,
    ended: undefined,
    removed: undefined,
  };
  if (error === undefined && results.every((result) => result !== null)) {
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
  const seen = story.scene === undefined ? (results as unknown as (Observations | null)[]) : [];
  const report = await machine.report();
  // Read after the report, whose ledgers count packets that have not arrived.
  const packets = await machine.packets();
  const connections = await machine.connections();
  const capture = isCaptured(story, how, options) ? await machine.capture() : undefined;
  const lastPs = BigInt(machine.instantPs);
  const costs = how.isObserved === true ? await costsOf(machine) : undefined;
  const { config } = machine;
  const looks = { lint, packets, connections, capture, lastPs, costs };
  return { story, endPs, seen, results, report, leftovers, held, ...looks, config, error };
}

/** Frames and responses are judged one by one; NICs have no ends of a capture. */
const isCaptured = ({ set }: Story, { isUnwatched }: Again, { analysis }: PlayOptions): boolean =>
  isUnwatched !== true && analysis === undefined && !isOfNics(set);

const isOfNics = (set: Story['set']): boolean => set['machine.adapter'] === 'nic';

async function costsOf(machine: Machine): Promise<Costs | undefined> {
  try {
    return await machine.operationCosts();
  } catch (error) {
    if (error instanceof CostsOverflowError) return undefined;
    throw error;
  }
}

/**
 * Programs of a story's machine.
 * @param marks whether players mark their posts as operations, each with its costs
 */
export function programsOf(story: Story, marks = false): ProgramOptions[] {
  if (story.scene !== undefined) {
    const { name, args } = story.scene;
    return sceneOf(story.scene).programs.map(({ node }, program) => ({
      node,
      run: { url: sceneProgram, exportName: 'playScene' },
      name: `program${program}`,
      args: { name, program, args },
    }));
  }
  return story.programs.map(({ node }, program) => ({
    node,
    run: { url: players, exportName: 'play' },
    name: `player${program}`,
    args: { story, program, marks },
  }));
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

/**
 * Plays a story of a fabric, judges it, and plays it again in another manner, in which nothing may differ.
 *
 *     story ─► Machine ─► a program per host ─► outcomes, report, capture of all hosts' cables, state of the switches ─► judges
 */
import { ConfigurationError, psPerSecond } from '../../base/index.ts';
import { Machine } from '../../machine/index.ts';
import { hostsOf, switchesOf } from '../../machine/topology/index.ts';
import type { BlockState } from '../../sim/index.ts';
import type { Finding } from '../finding.ts';
import type { Again } from '../story.ts';
import { type FabricStory, type HostOutcome, topologyOf } from './fabric-story.ts';
import { fabricJudges } from './judges/index.ts';
import type { PlayedFabric } from './played.ts';

export interface FabricVerdict {
  readonly seed: number;
  readonly findings: readonly Finding[];
  /** Why the machine refused the configuration. */
  readonly refused: string | undefined;
  /** Requests by kind of flow and by how they ended. */
  readonly ends: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

const stepLimit = 40_000_000;
/** More than the packets of any story: a capture that is cut is a finding. */
const captureBytes = 2 ** 28;
const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const program = new URL(`./fabric-host${ending}`, import.meta.url);
/** Retries of a connection end within a second. */
const limitPs = 60n * BigInt(psPerSecond);

export async function playFabricStory(story: FabricStory): Promise<FabricVerdict> {
  const { seed } = story;
  try {
    const played = await playOnce(story);
    const findings = fabricJudges.flatMap(({ name, judge }) =>
      judge(played).map((what): Finding => ({ judge: name, what })),
    );
    if (findings.length === 0)
      findings.push(...differencesOf(played, await playOnce(story, story.again), story.again));
    return { seed, findings, refused: undefined, ends: endsOf(played) };
  } catch (error) {
    if (error instanceof ConfigurationError) return { seed, findings: [], refused: error.message, ends: {} };
    const what = `the model threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    return { seed, findings: [{ judge: 'machine', what }], refused: undefined, ends: {} };
  }
}

/** Plays a story once. */
export async function playOnce(
  story: FabricStory,
  how: Again = { partition: 'single', shuffleSeed: undefined },
): Promise<PlayedFabric> {
  const { set, faults, flows } = story;
  const topology = topologyOf(story);
  const hosts = hostsOf(topology);
  const { partition, shuffleSeed, epochPs, isPlain } = how;
  await using machine = await Machine.create({
    topology,
    set,
    faults,
    partition,
    stepLimit,
    shortcuts: isPlain !== true,
    ...(shuffleSeed === undefined ? {} : { shuffleSeed }),
    ...(epochPs === undefined ? {} : { epochPs }),
    analysis: { capture: { ends: hosts.map((node) => ({ node })), sizeBytes: captureBytes } },
  });
  const fresh = await switchStatesOf(machine);
  const run = { url: program, exportName: 'fabricStoryHost' };
  const pkeys = (story.memberships ?? []).map(({ pkey }) => pkey);
  const args = { flows: flows.map((flow) => ({ ...flow })), hostCount: hosts.length, pkeys };
  for (const node of hosts) await machine.load({ node, run, name: `host${node}`, args });
  let error: Error | undefined;
  try {
    await machine.run(limitPs);
  } catch (thrown) {
    if (thrown instanceof ConfigurationError) throw thrown;
    error = thrown instanceof Error ? thrown : new Error(String(thrown));
  }
  const results = await machine.results<(HostOutcome | undefined)[]>();
  const outcomes = results.flatMap((outcome) => outcome ?? []);
  const ended = error === undefined ? await switchStatesOf(machine) : fresh;
  const report = await machine.report();
  const capture = await machine.capture();
  return { story, topology, hostCount: hosts.length, outcomes, report, capture, fresh, ended, error };
}

function endsOf({ story, outcomes }: PlayedFabric): FabricVerdict['ends'] {
  const ends: Record<string, Record<string, number>> = {};
  for (const { flow, statuses } of outcomes.flatMap((outcome) => outcome.ends)) {
    const { kind } = story.flows[flow]!;
    const counts = ends[kind] ?? {};
    for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
    ends[kind] = counts;
  }
  return ends;
}

async function switchStatesOf(machine: Machine): Promise<ReadonlyMap<number, BlockState>> {
  const states = await machine.inspect();
  return new Map(switchesOf(machine.topology).map((node) => [node, states[node]!]));
}

function differencesOf(first: PlayedFabric, second: PlayedFabric, again: Again): Finding[] {
  const differ = (what: string, left: unknown, right: unknown): Finding[] => {
    const [before, after] = [textOf(left), textOf(right)];
    if (before === after) return [];
    let at = 0;
    while (before[at] === after[at]) at++;
    const excerpt = (text: string): string => text.slice(Math.max(0, at - 60), at + 40);
    const how = JSON.stringify(again);
    return [
      {
        judge: 'sameness',
        what: `${what} differs with ${how}: …${excerpt(before)}… and …${excerpt(after)}…`,
      },
    ];
  };
  return [
    ...differ('the outcome of hosts', first.outcomes, second.outcomes),
    ...differ('the report', first.report, second.report),
    ...differ('the state of the switches', [...first.ended], [...second.ended]),
    ...(Buffer.compare(first.capture ?? new Uint8Array(), second.capture ?? new Uint8Array()) === 0
      ? []
      : [{ judge: 'sameness', what: `the capture differs with ${JSON.stringify(again)}` }]),
  ];
}

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `${part}` : part)) ?? '';

/**
 * One operation as it happens: a machine runs it once, with everything recorded, and what was recorded of its time is told in words: the
 * timeline's records, the bytes that the bus analyser and a capture of the cable decoded, and the instants that matter.
 *
 *     timeline ──► records, stages, levels ─┐
 *     bus analyser ──► WQE, CQE, contexts ──┼─► picture, instants after the post
 *     capture ──► packet headers ───────────┘
 */
import { type JsonValue, Machine, wcStatusStr } from '../../../browser.ts';
import { traceDefaults } from '../../../system/machine/analysis/index.ts';
import {
  packetLost,
  type Timeline,
  type TimelineRecord,
  timelineKinds,
} from '../../../system/machine/timeline/index.ts';
import { argumentsOf, explained, labelOf, operationOf } from '../../../system/timeline/index.ts';
import type {
  OperationPicture,
  OperationQuestion,
  PictureLevel,
  PictureRecord,
  PictureTrack,
} from '../../protocol.ts';
import { type BusEvent, busEvents } from './bus-text.ts';
import { Decoder } from './decoder.ts';
import { milestonesOf } from './milestones.ts';
import { type CablePacket, cablePackets } from './packet-headers.ts';
import { type WatchArgs, type WatchResult, watchedClient, watchedServer } from './programs.ts';
import { Recording } from './recording.ts';
import { faultsOf, scenarios, sizeOf, warmUps } from './scenarios.ts';

/** What a run gave. */
interface Watched {
  readonly timeline: Timeline;
  readonly bus: readonly BusEvent[];
  readonly packets: readonly CablePacket[];
  readonly result: WatchResult;
  readonly ordinal: number;
  readonly configHash: string;
  readonly isBalanced: boolean;
}

/** Shown after the last thing that happens. */
const marginPs = 50_000;
const captureBytes = 4 * 1024 ** 2;

/** @throws ConfigurationError naming what is wrong with the machine, or what has to be smaller */
export async function operation(question: OperationQuestion): Promise<OperationPicture> {
  const watched = await watch(question);
  const { timeline, result, ordinal } = watched;
  const shownToPs = result.toPs + afterPs;
  const within = timeline.between(result.fromPs, shownToPs);
  const flow = operationOf(within, ordinal);
  const explanation = flow === undefined ? undefined : explained(within, flow);
  if (flow === undefined || explanation === undefined)
    throw new Error('the operation has no end within the time that was simulated');
  const { postedPs } = explanation;
  const isMeanwhile = ({ atPs }: { readonly atPs: number }): boolean =>
    atPs >= result.fromPs && atPs <= shownToPs;
  const decoder = new Decoder(watched.bus.filter(isMeanwhile), watched.packets.filter(isMeanwhile), postedPs);
  const { records, tracks } = recordsOf(within, postedPs, decoder);
  const span = spanOf(records, result, postedPs);
  const shown = records.filter(({ fromPs }) => fromPs <= span.toPs);
  const levels = levelsOf(timeline, postedPs, span);
  const { milestones, cqePs, lastBytesPs } = milestonesOf(
    flow.qpn,
    scenarios[question.scenario],
    shown,
    tracks,
    decoder.events,
  );
  const count = (kind: string): number => shown.filter((each) => each.kind === kind).length;
  return {
    operation: explanation.operation,
    payloadBytes: explanation.payloadBytes,
    latencyPs: explanation.latencyPs,
    ...span,
    status: wcStatusStr(result.status),
    postedPs,
    stages: explanation.steps.map(({ stage, afterPs: fromPs, durationPs, text }) => ({
      name: stage,
      fromPs,
      toPs: fromPs + durationPs,
      text,
    })),
    milestones,
    cqePs,
    lastBytesPs,
    tracks,
    records: shown,
    decoded: decoder.events,
    levels,
    hits: count('cacheHit'),
    misses: count('cacheMiss'),
    configHash: watched.configHash,
    isBalanced: watched.isBalanced,
  };
}

/** Looked for after the completion. */
const afterPs = 3_000_000;

async function watch({
  machine,
  scenario: name,
  sizeBytes,
  mtuBytes,
  isWarm,
}: OperationQuestion): Promise<Watched> {
  const scenario = scenarios[name];
  const warmUpCount = isWarm ? warmUps : 0;
  const args: WatchArgs = { scenario, sizeBytes: sizeOf(scenario, sizeBytes), mtuBytes, warmUpCount };
  const recording = new Recording();
  const pieces: string[] = [];
  const { profile, set, seed } = machine;
  await using simulated = await Machine.create({
    profile,
    set,
    seed,
    faults: faultsOf(scenario, warmUpCount),
    analysis: {
      timeline: recording.options,
      capture: { ends: [{ node: 0 }], sizeBytes: captureBytes },
      trace: {
        ...traceDefaults,
        categories: ['doorbells', 'dma', 'events', 'interrupts'],
        sinkOf: () => ({ write: (text) => recording.isKeeping && pieces.push(text), close: () => undefined }),
      },
    },
  });
  const plain = args as unknown as JsonValue;
  await simulated.load({
    node: 0,
    name: 'client',
    run: (program) => watchedClient(program, () => recording.keep()),
    args: plain,
  });
  await simulated.load({ node: 1, name: 'server', run: watchedServer, args: plain });
  await simulated.run();
  const [result] = (await simulated.results()) as unknown as [WatchResult];
  const { configHash, checks } = await simulated.report();
  return {
    timeline: recording.timeline(await simulated.timeline()),
    bus: busEvents(pieces),
    packets: cablePackets(await simulated.capture()),
    result,
    ordinal: warmUpCount * (scenario.listed ?? 1),
    configHash,
    isBalanced: checks.balanced,
  };
}

/** From the program's post to the last thing that takes effect. */
function spanOf(
  records: readonly PictureRecord[],
  result: WatchResult,
  postedPs: number,
): { readonly fromPs: number; readonly toPs: number } {
  const crossing = records.filter(
    ({ kind }) => kind === 'tlp' || kind === 'packet' || kind === 'interruptServed',
  );
  const lastPs = Math.max(
    result.toPs - postedPs,
    ...crossing.map(({ toPs, arrivesPs, inMemoryPs }) => Math.max(toPs, arrivesPs ?? 0, inMemoryPs ?? 0)),
  );
  return { fromPs: Math.min(0, result.fromPs - postedPs), toPs: lastPs + marginPs };
}

function recordsOf(
  timeline: Timeline,
  postedPs: number,
  decoder: Decoder,
): { readonly records: PictureRecord[]; readonly tracks: PictureTrack[] } {
  const tracks = timeline.tracks.map(({ process, group, name }) => ({ process, group, name }));
  const records = [...timeline.records()]
    .filter(({ kind }) => timelineKinds[kind].shape !== 'level')
    .map((record) => pictureOf(record, postedPs, decoder));
  return { records, tracks };
}

function pictureOf(record: TimelineRecord, postedPs: number, decoder: Decoder): PictureRecord {
  const { kind, track, trackNumber, durationPs, values } = record;
  const fromPs = Number(record.atPs) - postedPs;
  const toPs = fromPs + durationPs;
  const isLost = kind === 'packet' && (values[4]! & packetLost) !== 0;
  const arrivesPs = track.latencyPs === undefined || isLost ? undefined : toPs + track.latencyPs;
  const { decoded, inMemoryPs } = decoder.of(record, fromPs, toPs, arrivesPs);
  return {
    kind,
    track: trackNumber,
    fromPs,
    toPs,
    ...(arrivesPs === undefined ? {} : { arrivesPs }),
    ...(inMemoryPs === undefined ? {} : { inMemoryPs }),
    label: labelOf(record),
    values: argumentsOf(record),
    decoded,
  };
}

/** Levels that change meanwhile, and credit limits as they arrive. */
function levelsOf(
  timeline: Timeline,
  postedPs: number,
  { fromPs, toPs }: { readonly fromPs: number; readonly toPs: number },
): PictureLevel[] {
  const levels = new Map<string, { process: string; name: string; steps: [number, number][] }>();
  for (const record of timeline.records()) {
    const { kind, track, values, durationPs } = record;
    const isCredit = kind === 'updateFc' || kind === 'flowControl';
    if (kind !== 'level' && !isCredit) continue;
    const atPs = Number(record.atPs) - postedPs + durationPs + (isCredit ? track.latencyPs! : 0);
    if (atPs > toPs) continue;
    const flow = kind === 'updateFc' ? ` ${String(argumentsOf(record)[0]![1])}` : '';
    const name = isCredit ? `${track.group} credit limit${flow}` : track.name;
    const value = kind === 'updateFc' ? values[1]! : values[0]!;
    const key = `${track.process} ${name}`;
    const known = levels.get(key) ?? { process: track.process, name, steps: [] };
    levels.set(key, known);
    // Ahead of the picture, the last value alone counts.
    if (atPs <= fromPs) known.steps = [[fromPs, value]];
    else known.steps.push([atPs, value]);
  }
  const nameOf = ({ process, name }: PictureLevel): string => `${process} ${name}`;
  return [...levels.values()]
    .filter(({ steps }) => steps.some(([atPs]) => atPs > fromPs))
    .toSorted((left, right) => (nameOf(left) < nameOf(right) ? -1 : 1));
}

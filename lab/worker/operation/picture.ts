/**
 * One operation of a scenario or of a reader's program, as it happens. A machine runs it with everything recorded. The
 * picture has the timeline's records in words, the bytes decoded by the bus analyser and a capture of the cable, and
 * the milestones.
 *
 *     timeline ──► records, stages, levels ─┐
 *     bus analyser ──► WQE, CQE, contexts ──┼─► picture, instants after the post
 *     capture ──► packet headers ───────────┘
 */
import { type AnalysisOptions, Machine } from '../../../browser.ts';
import {
  argumentsOf,
  type Explanation,
  explained,
  labelOf,
  operationFlows,
  operationOf,
  statusOf,
} from '../../../explain/timeline/index.ts';
import { traceDefaults } from '../../../machine/analysis/index.ts';
import {
  packetLost,
  type Timeline,
  type TimelineRecord,
  timelineKinds,
} from '../../../machine/timeline/index.ts';
import { cabledPeerOf } from '../../../machine/topology/index.ts';
import type {
  MachinePicture,
  OperationPicture,
  OperationQuestion,
  PictureLevel,
  PictureRecord,
  PictureTrack,
} from '../../protocol.ts';
import { type BusEvent, busEvents } from './bus-text.ts';
import { Decoder } from './decoder.ts';
import { milestonesOf } from './milestones.ts';
import { type CableFrame, type CablePacket, cableFrames, cablePackets } from './packet-headers.ts';
import { afterPs, type WatchArgs, type WatchResult, watchedClient, watchedServer } from './programs.ts';
import { Recording } from './recording.ts';
import { faultsOf, networkSet, scenarios, sizeOf, warmUps } from './scenarios.ts';

/** One operation of a run: its host, its number among the sends of that host, and the displayed time. Instants since power-on. */
export interface WatchedOperation {
  readonly node: number;
  readonly ordinal: number;
  readonly fromPs: number;
  readonly toPs: number;
  /** Left out: 3 µs later. */
  readonly shownToPs?: number;
}

/** The records of a run. */
interface Watched {
  readonly timeline: Timeline;
  readonly bus: readonly BusEvent[];
  readonly packets: readonly CablePacket[];
  readonly frames: readonly CableFrame[];
  readonly configHash: string;
  readonly isBalanced: boolean;
}

/** Everything that a picture is drawn from, as a machine records it. */
export class WatchedRun {
  readonly #recording = new Recording();
  readonly #pieces: string[] = [];

  /** Options of the watched machine. */
  readonly analysis: AnalysisOptions = {
    timeline: this.#recording.options,
    capture: { ends: [{ node: 0 }], sizeBytes: captureBytes },
    trace: {
      ...traceDefaults,
      categories: ['doorbells', 'dma', 'events', 'interrupts'],
      sinkOf: () => ({
        write: (text) => this.#recording.isKeeping && this.#pieces.push(text),
        close: () => undefined,
      }),
    },
  };

  get isKeeping(): boolean {
    return this.#recording.isKeeping;
  }

  /** Starts to keep all records; of earlier ones, only levels are kept. */
  keep(): void {
    this.#recording.keep();
  }

  /**
   * Draws one of its operations.
   * @throws if the recording lacks the end of the operation
   */
  async pictureOf(machine: Machine, operation: WatchedOperation): Promise<OperationPicture> {
    const { configHash, checks } = await machine.report();
    const capture = await machine.capture();
    return pictureOf(
      {
        timeline: this.#recording.timeline(await machine.timeline()),
        bus: busEvents(this.#pieces),
        packets: cablePackets(capture),
        frames: cableFrames(capture),
        configHash,
        isBalanced: checks.balanced,
      },
      operation,
    );
  }

  /** The machine around an instant, with instants after it. Running intervals are drawn as far as the machine has simulated them. */
  async momentOf(machine: Machine, atPs: number): Promise<MachinePicture> {
    const [fromPs, toPs] = [Math.max(0, atPs - momentPs), atPs + momentPs];
    const timeline = this.#recording.timeline(await machine.timeline()).between(fromPs, toPs);
    const capture = await machine.capture();
    const decoder = new Decoder(busEvents(this.#pieces), cablePackets(capture), cableFrames(capture), atPs);
    const { records, tracks } = recordsOf(timeline, new Set(), atPs, decoder);
    return { fromPs: fromPs - atPs, toPs: toPs - atPs, tracks, records };
  }
}

/** Longest travel time of a packet on the longest cable; packets sent earlier have arrived. */
const momentPs = 5_000_000;

/** Time shown after the last event. */
const marginPs = 50_000;
const captureBytes = 4 * 1024 ** 2;

function pictureOf(watched: Watched, operation: WatchedOperation): OperationPicture {
  const { timeline } = watched;
  const { node, ordinal, fromPs, toPs, shownToPs = toPs + afterPs } = operation;
  const within = timeline.between(fromPs, shownToPs);
  const flow = operationOf(within, ordinal, node);
  const isOnDevice = flow?.records.some((place) => /^(?:operation|failed)$/.test(within.record(place).kind));
  const explanation = flow === undefined || !isOnDevice ? undefined : explained(within, flow);
  if (flow === undefined || explanation === undefined)
    throw new Error(
      `Operation ${ordinal} of host ${node} has no end on the device within the time that was simulated: it is still under way, or was flushed before the device began it.`,
    );
  const { postedPs, syndrome } = explanation;
  const isMeanwhile = ({ atPs }: { readonly atPs: number }): boolean => atPs >= fromPs && atPs <= shownToPs;
  const decoder = new Decoder(
    watched.bus.filter(isMeanwhile),
    watched.packets.filter(isMeanwhile),
    watched.frames.filter(isMeanwhile),
    postedPs,
  );
  const ownPlaces = new Set([
    ...flow.records,
    ...(syndrome === undefined ? [] : unclaimedPackets(within, explanation)),
  ]);
  const { records, own, tracks } = recordsOf(within, ownPlaces, postedPs, decoder);
  const span = spanOf(records, operation, postedPs);
  const shown = records.filter((record) => record.fromPs <= span.toPs);
  const levels = levelsOf(timeline, postedPs, span);
  const { milestones, cqePs, lastBytesPs } = milestonesOf(
    {
      ...{ ...flow, far: cabledPeerOf(timeline.topology, node), records: own },
      ...{ name: explanation.operation, payloadBytes: explanation.payloadBytes },
    },
    shown,
    tracks,
    decoder.events,
  );
  const count = (kind: string): number => shown.filter((each) => each.kind === kind).length;
  return {
    operation: explanation.operation,
    node,
    payloadBytes: explanation.payloadBytes,
    latencyPs: explanation.latencyPs,
    ...span,
    status: syndrome === undefined ? 'SUCCESS' : statusOf(syndrome),
    others: explanation.others,
    postedPs,
    stages: explanation.steps.map(({ stage, afterPs: beginPs, durationPs, text }) => ({
      name: stage,
      fromPs: beginPs,
      toPs: beginPs + durationPs,
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

/** Packets that belong to no operation. The device keeps no PSNs of a failed operation; these packets count as its own. */
function unclaimedPackets(timeline: Timeline, { postedPs, latencyPs }: Explanation): readonly number[] {
  const claimed = new Set(operationFlows(timeline).flatMap(({ records }) => records));
  return [...timeline.records()].flatMap(({ kind, atPs }, place) => {
    const afterPostPs = Number(atPs) - postedPs;
    const isMeanwhile = afterPostPs >= 0 && afterPostPs <= latencyPs;
    return kind === 'packet' && isMeanwhile && !claimed.has(place) ? [place] : [];
  });
}

/** @throws ConfigurationError naming the invalid field of the machine, or the value that must be smaller */
export async function operation({
  machine,
  scenario: name,
  network = 'infiniband',
  sizeBytes,
  mtuBytes,
  isWarm,
}: OperationQuestion): Promise<OperationPicture> {
  const scenario = scenarios[name];
  const warmUpCount = isWarm ? warmUps : 0;
  const args: WatchArgs = { scenario, sizeBytes: sizeOf(scenario, sizeBytes), mtuBytes, warmUpCount };
  const run = new WatchedRun();
  const { profile, set, seed } = machine;
  await using simulated = await Machine.create({
    profile,
    set: { ...set, ...networkSet(network, scenario) },
    seed,
    faults: faultsOf(scenario, warmUpCount),
    analysis: run.analysis,
  });
  await simulated.load({
    node: 0,
    name: 'client',
    run: (program) => watchedClient(program, () => run.keep()),
    args,
  });
  await simulated.load({ node: 1, name: 'server', run: watchedServer, args });
  await simulated.run();
  const [{ fromPs, toPs, shownToPs }] = await simulated.results<[WatchResult]>();
  const ordinal = warmUpCount * (scenario.listed ?? 1);
  return await run.pictureOf(simulated, { node: 0, ordinal, fromPs, toPs, shownToPs });
}

/** Returns the time from the program's post to the last effect. */
function spanOf(
  records: readonly PictureRecord[],
  operation: WatchedOperation,
  postedPs: number,
): { readonly fromPs: number; readonly toPs: number } {
  const crossing = records.filter(
    ({ kind }) => kind === 'tlp' || kind === 'packet' || kind === 'frame' || kind === 'interruptServed',
  );
  const lastPs = Math.max(
    operation.toPs - postedPs,
    ...crossing.map(({ toPs, arrivesPs, inMemoryPs }) => Math.max(toPs, arrivesPs ?? 0, inMemoryPs ?? 0)),
  );
  return { fromPs: Math.min(0, operation.fromPs - postedPs), toPs: lastPs + marginPs };
}

/** @param ownPlaces indexes of the operation's own records in the timeline */
export function recordsOf(
  timeline: Timeline,
  ownPlaces: ReadonlySet<number>,
  postedPs: number,
  decoder: Decoder,
): {
  readonly records: PictureRecord[];
  readonly own: ReadonlySet<PictureRecord>;
  readonly tracks: PictureTrack[];
} {
  const tracks = timeline.tracks.map(({ process, group, name }) => ({ process, group, name }));
  const records: PictureRecord[] = [];
  const own = new Set<PictureRecord>();
  for (const [place, record] of [...timeline.records()].entries()) {
    if (timelineKinds[record.kind].shape === 'level') continue;
    const reported = recordInWords(record, postedPs, decoder);
    records.push(reported);
    if (ownPlaces.has(place)) own.add(reported);
  }
  return { records, own, tracks };
}

function recordInWords(record: TimelineRecord, postedPs: number, decoder: Decoder): PictureRecord {
  const { kind, track, trackNumber, durationPs, values } = record;
  const fromPs = Number(record.atPs) - postedPs;
  const toPs = fromPs + durationPs;
  const flags = { packet: values[4], frame: values[1] }[kind as 'packet'] ?? 0;
  const isLost = (flags & packetLost) !== 0;
  const arrivesPs = track.latencyPs === undefined || isLost ? undefined : toPs + track.latencyPs;
  const { decoded, inMemoryPs, words } = decoder.of(record, fromPs, toPs, arrivesPs);
  return {
    kind,
    track: trackNumber,
    fromPs,
    toPs,
    ...(arrivesPs === undefined ? {} : { arrivesPs }),
    ...(inMemoryPs === undefined ? {} : { inMemoryPs }),
    label: words === undefined ? labelOf(record) : labelOf(record).replace('frame', words),
    values: argumentsOf(record),
    decoded,
  };
}

/** Levels that change during the picture, and credit limits as they arrive. */
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
    // Before the picture, only the last value counts.
    if (atPs <= fromPs) known.steps = [[fromPs, value]];
    else known.steps.push([atPs, value]);
  }
  const nameOf = ({ process, name }: PictureLevel): string => `${process} ${name}`;
  return [...levels.values()]
    .filter(({ steps }) => steps.some(([atPs]) => atPs > fromPs))
    .toSorted((left, right) => (nameOf(left) < nameOf(right) ? -1 : 1));
}

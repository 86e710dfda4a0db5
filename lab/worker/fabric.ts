/** "A fabric": traffic over hosts and switches; at any instant the ports that send or wait, and the bytes in every queue. */
import { ConfigurationError, Machine } from '../../browser.ts';
import { slowestCable, trafficOf } from '../../experiments/runs/fabric-figures.ts';
import {
  type FabricArgs,
  type FabricSide,
  fabricDefaults,
  fabricHost,
  flowsOf,
} from '../../experiments/workloads/index.ts';
import { topologyLayoutOf } from '../../explain/diagram/index.ts';
import type { Timeline, TimelineRecord } from '../../machine/timeline/index.ts';
import { hopSteps, portOfTrack } from '../../machine/timeline/index.ts';
import {
  directionsOf,
  hostsOf,
  isSwitch,
  type NodePort,
  parsedTopology,
  type Topology,
} from '../../machine/topology/index.ts';
import type { FabricDirection, FabricPicture, FabricQuestion, FabricQueue, Spans } from '../protocol.ts';
import { setOf } from './operation/scenarios.ts';

/** Payload of all flows of a picture: some seconds of computing. */
const bytesMax = 64 * 1024 * 1024;
/** More messages than that compute for long, however small they are. */
const messagesMax = 20_000;
/** Records of each process. */
const recordsMax = 1_000_000;

/** @throws ConfigurationError naming the error in the machine, in the topology, or in the amount of traffic */
export async function fabric({
  machine,
  network,
  topology: text,
  pattern,
  sizeBytes,
  messages,
}: FabricQuestion): Promise<FabricPicture> {
  const topology = parsedTopology(text);
  const hostCount = hostsOf(topology).length;
  const args: FabricArgs = { ...fabricDefaults, pattern, sizeBytes, messages, hostCount };
  checkAmount(args);
  const { profile, set, seed } = machine;
  await using simulated = await Machine.create({
    profile,
    set: { ...set, ...setOf(network) },
    seed,
    topology,
    analysis: { timeline: { categories: ['switches', 'levels', 'packets', 'checks'], recordsMax } },
  });
  for (let node = 0; node < hostCount; node++)
    await simulated.load({ node, name: `host${node}`, run: fabricHost, args });
  await simulated.run();
  const sides = await simulated.results<FabricSide[]>();
  const { checks } = await simulated.report();
  const { flows, durationPs, bytesPerSecond, fairness, isEqual } = trafficOf(args, sides);
  const span = { fromPs: sides[0]!.startPs, toPs: sides[0]!.startPs + durationPs };
  const timeline = await simulated.timeline();
  const queues = queuesOf(timeline, span);
  const { config } = simulated;
  return {
    layout: topologyLayoutOf(topology),
    toPs: durationPs,
    directions: activityOf(timeline, topology, span),
    queues,
    gaugeBytes:
      config.hca.capability.linkLayer === 'ethernet'
        ? Math.max(1, ...queues.map(({ mostBytes }) => mostBytes))
        : config.switch.inputBufferBytes,
    losses: lossesOf(timeline, span),
    flows: flows.map(({ from, to, bytesPerSecond: rate, medianPs, p99Ps }) => ({
      ...{ from, to, medianPs, p99Ps },
      bytesPerSecond: rate,
    })),
    durationPs,
    bytesPerSecond,
    cableBytesPerSecond: slowestCable(simulated, args),
    fairness,
    isEqual,
    isBalanced: checks.balanced,
  };
}

function checkAmount(args: FabricArgs): void {
  const count = flowsOf(args).length * args.messages;
  if (count > messagesMax)
    throw new ConfigurationError('messages of all flows', count, `at most ${messagesMax} in a page`);
  const bytes = count * args.sizeBytes;
  if (bytes > bytesMax)
    throw new ConfigurationError('bytes of all flows', bytes, `at most ${bytesMax} in a page`);
}

/** The displayed time, since power-on. */
interface Span {
  readonly fromPs: number;
  readonly toPs: number;
}

const nodeOf = ({ process }: { readonly process: string }): number => Number(/\d+$/.exec(process)?.[0] ?? -1);
const keyOf = ({ node, port }: NodePort): string => `${node}.${port}`;

/** Activity of each direction of each cable: sent packets by the records of their arrivals, waits by those of the switch before it. */
function activityOf(timeline: Timeline, topology: Topology, span: Span): FabricDirection[] {
  const sends = new Map<string, [number, number][]>();
  const waits = new Map<string, [number, number][]>();
  const note = (of: Map<string, [number, number][]>, key: string, { atPs, durationPs }: TimelineRecord) => {
    const fromPs = Math.max(Number(atPs), span.fromPs) - span.fromPs;
    const toPs = Math.min(Number(atPs) + durationPs, span.toPs) - span.fromPs;
    if (toPs <= fromPs) return;
    const own = of.get(key);
    if (own === undefined) of.set(key, [[fromPs, toPs]]);
    else own.push([fromPs, toPs]);
  };
  for (const record of timeline.records()) {
    const { kind, track, values } = record;
    const node = nodeOf(track);
    if (kind === 'packet' || kind === 'frame')
      note(sends, keyOf({ node, port: portOfTrack(track.name) }), record);
    else if (kind === 'queueWait' && farWaits.has(hopSteps[values[0]!]!))
      note(waits, keyOf({ node, port: values[1]! }), record);
  }
  return directionsOf(topology).map(({ from, to }) => ({
    from,
    to,
    sends: joined(sends.get(keyOf(to)) ?? []),
    waits: isSwitch(topology, from.node) ? joined(waits.get(keyOf(from)) ?? []) : [],
  }));
}

/** Causes of waits that lie in the port at the far end of the cable. */
const farWaits: ReadonlySet<string> = new Set(['credits', 'pause'] satisfies (typeof hopSteps)[number][]);

/** One list of times without overlaps. */
function joined(times: readonly (readonly [fromPs: number, toPs: number])[]): Spans {
  const spans: number[] = [];
  for (const [fromPs, toPs] of times.toSorted(([left], [right]) => left - right)) {
    const last = spans.at(-1);
    if (last === undefined || fromPs > last) spans.push(fromPs, toPs);
    else spans[spans.length - 1] = Math.max(last, toPs);
  }
  return spans;
}

/** On Ethernet a frame waits in the queue of its output, on InfiniBand a packet in the buffer of its input. */
const queueName = /^port (\d+): (?:queue|input) bytes$/;

function queuesOf(timeline: Timeline, span: Span): FabricQueue[] {
  const isEthernet = timeline.tracks.some(({ name }) => /^port \d+: queue bytes$/.test(name));
  const steps = new Map<number, [number, number][]>();
  for (const { kind, track, trackNumber, atPs, values } of timeline.records()) {
    if (kind !== 'level' || !track.process.startsWith('switch') || !queueName.test(track.name)) continue;
    if (isEthernet !== track.name.endsWith('queue bytes') || Number(atPs) > span.toPs) continue;
    const own = steps.get(trackNumber) ?? [];
    const at = Math.max(0, Number(atPs) - span.fromPs);
    // Only the last level before the start counts, and only the last one at each instant.
    if (own.at(-1)?.[0] === at) own.pop();
    own.push([at, values[0]!]);
    steps.set(trackNumber, own);
  }
  return [...steps].map(([number, own]) => {
    const track = timeline.tracks[number]!;
    return {
      process: track.process,
      name: track.name,
      node: nodeOf(track),
      port: Number(queueName.exec(track.name)![1]),
      steps: own,
      mostBytes: Math.max(...own.map(([, bytes]) => bytes)),
    };
  });
}

const lossesOf = (timeline: Timeline, span: Span): FabricPicture['losses'] =>
  [...timeline.records()]
    .filter(({ kind, atPs, values }) => kind === 'switchDrop' && values[7] === 1 && Number(atPs) <= span.toPs)
    .map(({ track, atPs, values }) => ({
      node: nodeOf(track),
      port: values[2]! || values[1]!,
      atPs: Math.max(0, Number(atPs) - span.fromPs),
    }));

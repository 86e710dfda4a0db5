/**
 * Finds the bottleneck of a bandwidth test: the server that is busy nearly all of the time. If no server is, a full
 * window is the bottleneck, and of several the one nearest to the cause.
 */

import { cableOf } from '../model/index.ts';
import { lengthsOf } from '../workloads/index.ts';
import { advised, withAlong } from './advice.ts';
import { blockResources } from './blocks.ts';
import { coreResources } from './cores.ts';
import { tcpWindows } from './iwarp.ts';
import { linkBytesOf } from './link-bound.ts';
import { linkResources } from './links.ts';
import {
  gapOf,
  hcaShare,
  hostText,
  intervalOf,
  isIwarp,
  isRequest,
  less,
  type Measured,
  messagesOf,
  more,
  packetPayloadBytes,
  type Resource,
  type Turn,
  trafficOf,
} from './measured.ts';
import { windowResources } from './windows.ts';

export interface Bottleneck {
  /** The bottleneck resource. */
  readonly binds: Resource;
  /** Other resources, by share: the next bottleneck comes first. */
  readonly next: readonly Resource[];
  /** A sentence, present if another resource is nearly as busy, so that a change of the binding one may have little effect. */
  readonly caveat?: string;
}

/** Share from which on a server counts as always busy: the rest is start, end, and gaps between packets. */
const nearlyAll = 0.8;
/** Share of time that a server is busy if nothing else delays it. */
const always = 0.95;
/** Share from which on a window counts as full. */
const mostly = 0.5;
/** A program that waits for its messages is no evidence: it waits for whatever is slower than its core. */
const busyEnough = 0.7;
const nextCount = 4;

export function bottleneckOf(measured: Measured): Bottleneck {
  const cores = coreResources(measured);
  const servers = [
    ...cores.servers,
    sameQpInterval(measured),
    ...messageGap(measured),
    ...rateLimits(measured),
    ...linkResources(measured),
    ...blockResources(measured),
  ].toSorted(byShare);
  const [busiest] = servers;
  // Segments wait for acknowledgements of whatever is busy.
  const tcp = busiest!.share >= always ? [] : tcpWindows(measured);
  const windows = [...windowResources(measured, tcp), ...cores.stores];
  const own = [...cores.stores, ...cores.flights];
  const waiting = [...windows, ...cores.flights];
  const full = nearestFull(waiting) ?? fullest(waiting, busiest!);
  // A queue that holds all messages of a test is full until the end, and limits nothing.
  const isAllAtOnce = cores.flights.includes(full!) && measured.args.iterations <= measured.args.txDepth;
  const isBusy = busiest!.share >= busyEnough && isAllAtOnce;
  const binds =
    full === undefined || isBusy || isAtWork(busiest!, full, own.includes(full)) ? busiest! : full;
  const others = (resources: readonly Resource[]): Resource[] =>
    resources.filter((resource) => resource !== binds).toSorted(byShare);
  // Messages wait for every bottleneck: a full window does not identify the next one.
  const next = [...others([...servers, ...windows]), ...others(cores.flights)];
  const { config, args } = measured;
  const turned = (resource: Resource): Resource => {
    const { turn, ...figures } = advised(config, args, withTranslation(measured, withinTime(resource)));
    return { ...figures, turn: withAlong(measured, turn) };
  };
  const [first, following] = [turned(binds), next.slice(0, nextCount).map(turned)];
  return { binds: first, next: following, ...caveatOf(first, following) };
}

/** A window may be the cause if it is at least this full relative to the fullest one; others are full only briefly. */
const asFull = 0.7;

/** Returns the full window that is nearest to the cause. */
function nearestFull(windows: readonly Resource[]): Resource | undefined {
  const most = Math.max(...windows.map(({ share }) => Math.min(1, share)));
  return windows.find(({ share }) => share >= mostly && share >= asFull * most);
}

/** Fraction of the binding resource's share from which another resource may also limit the rate. */
const nearly = 0.83;

function caveatOf({ share, turn }: Resource, next: readonly Resource[]): Pick<Bottleneck, 'caveat'> {
  const [first] = turn;
  if (first === undefined) return {};
  const isTurnedToo = (other: Resource): boolean => other.turn.some(({ what }) => what === first.what);
  const close = next.find((other) => other.share >= nearly * share && !isTurnedToo(other));
  if (close === undefined) return {};
  const used = close.kind === 'server' ? 'busy' : 'full';
  const percent = Math.round(100 * close.share);
  return { caveat: `Turning that alone may change little: ${close.name} is ${percent} % ${used}, too.` };
}

/** If no server is busy most of the time, and no window is full that long, the resource with the largest share is the bottleneck. */
const fullest = (windows: readonly Resource[], busiest: Resource): Resource | undefined =>
  busiest.share < busyEnough ? windows.toSorted(byShare).find(({ share }) => share > 0) : undefined;

/** Whether a server explains why a window is full. */
function isAtWork({ share }: Resource, full: Resource, isOwn: boolean): boolean {
  if (share >= always) return true;
  return share >= (isOwn ? busyEnough : nearlyAll) && share >= full.share;
}

/** A request of the device waits for the page table walk, so a wait for memory includes that for the walk. */
function withTranslation({ config, figures, args }: Measured, resource: Resource): Resource {
  const counts = figures.nodes.flatMap(({ iommu }) => (iommu === undefined ? [] : [iommu]));
  const sum = (pick: (each: (typeof counts)[number]) => number): number =>
    counts.reduce((total, each) => total + pick(each), 0);
  const misses = sum((each) => each.misses);
  const isMissed = misses > manyMisses * (misses + sum((each) => each.hits));
  if (!config.pcie.iommu.isEnabled || !isMissed || !resource.turn.some(waitsForMemory)) return resource;
  // Fewer misses than pages, or hardly more than entries, are first uses of pages, which no IOTLB avoids.
  const { region, threads = 1 } = args;
  const pages = region === undefined ? 0 : threads * Math.ceil(region.bytes / iommuPageBytes);
  const least = Math.max(pages, missesPerEntry * config.pcie.iommu.iotlbEntries);
  const isTooSmall = counts.some((each) => each.misses > least);
  const [entries] = more('pcie.iommu.iotlbEntries');
  const because = `${pages} pages take turns, and ${config.pcie.iommu.iotlbEntries} translations are held.`;
  return {
    ...resource,
    turn: [
      ...(isTooSmall ? [pages > config.pcie.iommu.iotlbEntries ? { ...entries!, because } : entries!] : []),
      ...less('pcie.iommu.walkLevelNs'),
      ...resource.turn,
    ],
  };
}

/** Share of the device's requests that must miss before walks are named. */
const manyMisses = 0.1;
const missesPerEntry = 2;
const iommuPageBytes = 4096;
const ofMemory: readonly string[] = [
  ...['readLatencyPs', 'writeLatencyPs'].map((name) => `pcie.rootComplex.${name}`),
  ...['postedHeaders', 'postedData', 'nonPostedHeaders'].map((name) => `pcie.rootPort.${name}`),
  ...['qpcCacheEntries', 'sendContextEntries', 'mptCacheEntries', 'mttCacheLines'].map(
    (name) => `hca.${name}`,
  ),
];
const waitsForMemory = ({ what }: Turn): boolean => ofMemory.includes(what);

/** Counters continue during the last messages, which the measured time excludes. */
const withinTime = (resource: Resource): Resource => ({ ...resource, share: Math.min(1, resource.share) });

const byShare = (left: Resource, right: Resource): number => right.share - left.share;

/** The interval between two requests of one QP, by service and operation, and between the further packets of a request. */
function sameQpInterval(measured: Measured): Resource {
  const { config, args } = measured;
  const parameter = intervalOf(args);
  const mtu = packetPayloadBytes(measured);
  const further = isRequest(args)
    ? lengthsOf(args).reduce((sum, { bytes, share }) => sum + share * (Math.ceil(bytes / mtu) - 1), 0)
    : 0;
  const ownCycles = perQpOf(measured) * (config.hca[parameter] + further * packetCycles(config, mtu));
  const missedCycles = args.qpCount === 1 && trafficOf(measured).hasOneService ? missedBefore(measured) : 0;
  const isMissed = missedCycles > clearlyLonger * ownCycles;
  const isEvicted = measured.mttLines.some(({ evicted }) => evicted > 0);
  const missed = isMissed ? [...(isEvicted ? ['hca.mttCacheLines'] : []), '--page-size'] : [];
  return {
    name: 'same-QP interval',
    kind: 'server',
    share: hcaShare(measured, ownCycles + (isMissed ? missedCycles : 0)),
    turn: [...more('--qps', ...missed), ...less(`hca.${parameter}`)],
  };
}

/** Ratio of the delays before the interval to the interval itself from which on they are named. */
const clearlyLonger = 0.1;

/** The interval begins when the requester has everything for the request: with one QP, no other request uses the time of its misses. */
function missedBefore({ figures }: Measured): number {
  const cycles = figures.nodes.map(({ hca }) => hca.blocks['requester']?.stalledCycles['translation'] ?? 0);
  return Math.max(...cycles);
}

/** Messages of a QP. */
function perQpOf(measured: Measured): number {
  const { args } = measured;
  const ways = args.isBidirectional === true ? 2 : 1;
  return messagesOf(measured) / trafficOf(measured).qpCount / ways;
}

/** A message on the cable, and the turnaround until the next one of its QP: for cards that have one, and the opcodes that it applies to. */
function messageGap(measured: Measured): Resource[] {
  const { config, args, durationPs } = measured;
  const parameter = gapOf(args);
  // The transmitter of iWARP has no gap.
  if (isIwarp(config)) return [];
  if (parameter === undefined || !trafficOf(measured).hasOneService || config.hca[parameter] === 0) return [];
  const cable = cableOf(config);
  const { numeratorPs, denominator } = cable.byteTime;
  const linkBytes = lengthsOf(args).reduce(
    (sum, { bytes, share }) => sum + share * linkBytesOf(cable, args, bytes),
    0,
  );
  const cablePs = (linkBytes * numeratorPs) / denominator;
  const perQp = perQpOf(measured);
  return [
    {
      name: 'gap between messages of a QP',
      kind: 'server',
      share: (perQp * cablePs) / durationPs + hcaShare(measured, perQp * config.hca[parameter]),
      turn: [...more('--qps'), ...less(`hca.${parameter}`)],
    },
  ];
}

/** The rates that congestion control gives QPs: the requester has packets, and may send none of them yet. */
const rateLimits = (measured: Measured): Resource[] =>
  measured.figures.nodes.flatMap(({ hca }, node) => {
    const cycles = hca.blocks['requester']?.stalledCycles['rateLimit'];
    if (cycles === undefined) return [];
    const name = `rate of QPs of ${hostText(measured, node)} by congestion control`;
    return [{ name, kind: 'server', share: hcaShare(measured, cycles), turn: more('--qps') }];
  });

/** Cycles of the requester for a packet of a message of several packets, with payload read from memory. */
const packetCycles = ({ hca }: Measured['config'], bytes: number): number =>
  hca.requestPacketCycles +
  hca.gatherCycles +
  (hca.gatherBytesPerCycle === 0 ? 0 : Math.ceil(bytes / hca.gatherBytesPerCycle));

/**
 * The blocks of both HCAs. A block that waits for an off-chip context or translation counts as busy: its share includes
 * these waits, and the larger part determines the advice.
 */

import type { BlockRow, NodeReport } from '../../machine/index.ts';
import { lengthsOf } from '../workloads/index.ts';
import { requesterContexts } from './advice.ts';
import { byCycles } from './block-cycles.ts';
import { iwarpTurns } from './iwarp.ts';
import {
  gathers,
  hcaShare,
  hostText,
  isIwarp,
  isRequest,
  less,
  type Measured,
  more,
  packetPayloadBytes,
  type Resource,
  type Turn,
} from './measured.ts';

interface BlockWords {
  readonly block: string;
  readonly name: string;
  /** Stall reasons that belong to the block itself. */
  readonly own: readonly string[];
  readonly turn: readonly Turn[];
}

const clock = more('hca.coreClockMHz');

const blocks: readonly BlockWords[] = [
  {
    block: 'doorbells',
    name: 'doorbell decoder',
    own: [],
    turn: [...less('hca.doorbellCycles'), ...more('--post-list')],
  },
  { block: 'wqeFetch', name: 'WQE fetch', own: ['translation'], turn: more('hca.wqePrefetchCount') },
  {
    block: 'requester',
    name: 'requester',
    own: ['context', 'translation'],
    turn: [
      ...less(
        'hca.wqeDecodeCycles',
        'hca.requestPacketCycles',
        'hca.wqeLineCycles',
        'hca.gatherCycles',
        'hca.readRequestCycles',
      ),
      ...more('hca.gatherBytesPerCycle'),
      ...clock,
    ],
  },
  {
    block: 'transmitter',
    name: 'transmitter',
    own: [],
    turn: [...less('hca.transmitPacketCycles'), ...more('hca.transmitBytesPerCycle', '--mtu'), ...clock],
  },
  {
    block: 'receiver',
    name: 'receiver',
    own: ['context', 'translation'],
    turn: [
      ...less('hca.receivePacketCycles', 'hca.receiveHeadCycles'),
      ...more('hca.receiveBytesPerCycle', '--mtu'),
      ...clock,
    ],
  },
  {
    block: 'responseEngine',
    name: 'response engine',
    own: ['translation', 'atomic'],
    turn: [
      ...less('hca.responseCycles', 'hca.readResponseCycles'),
      ...more('hca.readResponseBytesPerCycle'),
      ...clock,
    ],
  },
  {
    block: 'receiveWqeFetch',
    name: 'receive WQE fetch',
    own: ['translation', 'context'],
    turn: more('hca.receivePrefetchCount'),
  },
  {
    block: 'completionWriter',
    name: 'completion writer',
    own: ['context', 'translation'],
    turn: [...less('hca.completionCycles'), ...more('--cq-mod')],
  },
  {
    block: 'eventWriter',
    name: 'event writer',
    own: ['context', 'translation', 'dmaWrite'],
    turn: [...less('hca.control.eventCycles'), ...more('--moderation')],
  },
  { block: 'dmaRead', name: 'DMA read engine', own: [], turn: [...less('dma.readIssueCycles'), ...clock] },
  {
    block: 'dmaReadReturn',
    name: 'DMA read return',
    own: [],
    turn: [...more('dma.dataPathBytes'), ...clock],
  },
  {
    block: 'dmaWrite',
    name: 'DMA write engine',
    own: [],
    turn: [...more('dma.dataPathBytes'), ...less('dma.writeIssueCycles'), ...clock],
  },
  { block: 'tcpEngine', name: 'TCP engine', own: ['context'], turn: clock },
  { block: 'tcpTransmitter', name: 'TCP transmitter', own: [], turn: clock },
];

/** Blocks of iWARP have costs of their own. */
const iwarpTurnsOf = (measured: Measured, node: number, block: string): Turn[] | undefined =>
  isIwarp(measured.config) ? iwarpTurns(measured, node, block) : undefined;

const atomicTurn = [...less('pcie.rootComplex.readLatencyPs', 'pcie.link.latencyPs', 'hca.atomicCycles')];

/** Software's commands are not part of a test. */
const setupClasses = ['command', 'register', 'config'];

/** Share of a direction's bytes that belongs to the test. */
export function testShareOf({ classes }: NodeReport['pcie']['toHost']): number {
  const bytesOf = (rows: readonly (readonly [string, { readonly bytes: number }])[]): number =>
    rows.reduce((total, [, { bytes }]) => total + bytes, 0);
  const all = Object.entries(classes);
  const total = bytesOf(all);
  return total === 0 ? 0 : bytesOf(all.filter(([name]) => !setupClasses.includes(name))) / total;
}

export function blockResources(measured: Measured): Resource[] {
  return measured.figures.nodes.flatMap((report, node) =>
    blocks.flatMap((words) => {
      const row = report.hca.blocks[words.block];
      return row === undefined ? [] : [blockResource(measured, node, report, words, row)];
    }),
  );
}

function blockResource(
  measured: Measured,
  node: number,
  report: NodeReport,
  { block, name, own, turn }: BlockWords,
  row: BlockRow,
): Resource {
  const part = block === 'dmaWrite' ? testShareOf(report.pcie.toHost) : 1;
  const busy = row.busyCycles * part;
  const waits = own.map((reason) => [reason, row.stalledCycles[reason] ?? 0] as const);
  const waited = waits.reduce((total, [, cycles]) => total + cycles, 0);
  const share = hcaShare(measured, busy + waited);
  const [longest = ['', 0] as const] = waits.toSorted(([, left], [, right]) => right - left);
  const ownTurn =
    iwarpTurnsOf(measured, node, block) ?? byCycles(measured, node, block, turn.filter(canTurn(measured)));
  if (longest[1] <= busy / 4)
    return { name: `${name} of ${hostText(measured, node)}`, kind: 'server', share, turn: ownTurn };
  const [cause, causeTurn] = causeOf(measured, report, block, longest[0]);
  if (longest[1] > busy)
    return {
      name: `${name} of ${hostText(measured, node)} (${cause})`,
      kind: 'server',
      share,
      turn: causeTurn,
    };
  // A faster block only waits longer: off-chip data does not arrive sooner.
  const both = longest[1] > busy / 2 ? [...causeTurn, ...ownTurn] : [...ownTurn, ...causeTurn];
  return { name: `${name} of ${hostText(measured, node)}`, kind: 'server', share, turn: both };
}

/** Work of READs and of payload read from memory, which other messages do not cause. */
const ofReads = ['hca.readRequestCycles', 'hca.readResponseCycles', 'hca.readResponseBytesPerCycle'];
const ofPayload = ['hca.gatherCycles', 'hca.gatherBytesPerCycle'];

/** A parameter that costs no cycles cannot cost fewer: a path without cost has width 0. */
const canTurn =
  ({ config, args }: Measured) =>
  ({ what }: Turn): boolean => {
    const [room, name] = what.split('.') as [string, string?];
    if (room === 'hca' && Reflect.get(config.hca, name!) === 0) return false;
    if (ofReads.includes(what)) return args.verb === 'read';
    return !ofPayload.includes(what) || gathers(args);
  };

/** The waits of a block, in words, and the parameter to change. */
function causeOf(
  measured: Measured,
  { hca }: NodeReport,
  block: string,
  reason: string,
): readonly [string, readonly Turn[]] {
  if (reason === 'atomic') return ['memory of atomics', atomicTurn];
  if (reason === 'context' && block === 'tcpEngine')
    return ['TCP context misses', tcpContextTurns(measured, hca)];
  if (reason === 'context')
    return ['QPC misses', contextTurns(measured, block, firstUse(hca.caches['qpc'], measured.args.qpCount))];
  if (reason !== 'translation') return [reason, clock];
  const missesOf = (cache: string): number => hca.caches[cache]?.misses ?? 0;
  const { region, threads = 1 } = measured.args;
  const keys = firstUse(hca.caches['mpt'], threads * (region?.keys ?? 1));
  const pages = firstUse(hca.caches['mtt'], 0);
  return missesOf('mpt') > missesOf('mtt')
    ? ['MPT misses', [...(keys ?? more('hca.mptCacheEntries')), ...less('--keys')]]
    : ['MTT misses', [...(pages ?? more('hca.mttCacheLines')), ...more('--page-size'), ...less('--region')]];
}

/** Share of evicting misses among all from which on a cache counts as too small. */
const manyEvictions = 0.4;

/**
 * Advises a warm-up if most misses are first reads of an entry, which no larger cache avoids; undefined if the cache is
 * too small.
 * @param things number of things that the cache is for: if it is used less often, most of them are used for the first
 * time
 */
function firstUse(
  cache: NodeReport['hca']['caches'][string] | undefined,
  things: number,
): Turn[] | undefined {
  if (cache === undefined) return;
  const { hits, misses, evictions } = cache;
  if (misses === 0 || (evictions >= manyEvictions * misses && hits + misses >= things)) return;
  const because = `Of ${misses} misses ${misses - evictions} are the first use of an entry: a larger cache has no more of them.`;
  return [{ ...more('--warmup')[0]!, because }];
}

/**
 * If QPs send in rotation, contexts miss unless all are on chip. The requester serves other QPs while contexts are
 * read, up to the limit of concurrent reads; other blocks wait for each.
 */
function contextTurns(measured: Measured, block: string, first: Turn[] | undefined): readonly Turn[] {
  const { args } = measured;
  const { hca } = measured.config;
  const name = block === 'requester' ? requesterContexts(hca) : 'qpcCacheEntries';
  const onChip = hca[name];
  const because = `${args.qpCount} QPs take turns, and the contexts of ${onChip} are on chip.`;
  const [entries] = more(`hca.${name}`);
  const isFirst = first !== undefined || args.qpCount <= onChip;
  return [
    ...(isFirst ? (first ?? more('--warmup')) : [{ ...entries!, because }]),
    ...(block === 'requester' ? more('hca.contextFetchesInFlight', ...burstTurn(measured)) : []),
    ...less('--qps'),
  ];
}

/** Connections take turns at the TCP engine, which waits for the context of each. */
function tcpContextTurns({ args, config }: Measured, hca: NodeReport['hca']): readonly Turn[] {
  const { contextEntries } = config.hca.iwarp;
  const [entries] = more('hca.iwarp.contextEntries');
  const because = `${args.qpCount} connections take turns, and the contexts of ${contextEntries} are on chip.`;
  const first = firstUse(hca.caches['auxc'], args.qpCount);
  const isFirst = first !== undefined || args.qpCount <= contextEntries;
  return [...(isFirst ? (first ?? more('--warmup')) : [{ ...entries!, because }]), ...less('--qps')];
}

/** The scheduler switches to another QP within a message: each switch may miss. */
const burstTurn = ({ config, args }: Measured): readonly string[] =>
  packetsOf({ config, args }) > config.hca.burstPackets ? ['hca.burstPackets'] : [];

/** Request packets of the longest message. */
const packetsOf = ({ config, args }: Pick<Measured, 'config' | 'args'>): number =>
  isRequest(args)
    ? Math.max(...lengthsOf(args).map(({ bytes }) => Math.ceil(bytes / packetPayloadBytes({ config, args }))))
    : 1;

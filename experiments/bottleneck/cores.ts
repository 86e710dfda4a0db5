/**
 * The cores of the programs. A core waits if it polls an empty queue, if its program sleeps until an event, or if the
 * bus does not accept its stores. The rest is work.
 */
import type { NodeReport } from '../../machine/index.ts';
import { isReliable, type PerfArgs, putBytes } from '../workloads/index.ts';
import {
  hostText,
  lengthsOf,
  less,
  type Measured,
  messagesOf,
  more,
  type ProgramCore,
  type Resource,
} from './measured.ts';

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** CQEs that the device of a host has written. */
function completionsOf({ hca }: NodeReport): number {
  const used = hca.caches['cqc']?.users['completion'];
  return used === undefined ? 0 : used.hits + used.misses;
}

/** Nodes of a test are numbered by side: the client is 0, the server is 1. */
const otherSide = (node: number): number => (node === 0 ? 1 : 0);

const isSender = ({ isBidirectional, isEchoed, kv }: PerfArgs, node: number): boolean =>
  node === 0 || isBidirectional === true || isEchoed === true || kv !== undefined;

/**
 * Whether the core of a host can delay the other host's. An unreliable sender does not wait; it loses messages that are
 * not received in time.
 */
const holdsUp = (args: PerfArgs, node: number): boolean =>
  isSender(args, node) || isReliable(args.connection);

/** Messages that a side posts, all of one length. */
interface Posts {
  readonly count: number;
  readonly bytes: number;
}

function postsOf(measured: Measured, node: number): readonly Posts[] {
  const { args } = measured;
  if (!isSender(args, node)) return [];
  const { kv } = args;
  const count = sentBy(measured);
  if (kv === undefined) return lengthsOf(args).map(({ bytes, share }) => ({ count: share * count, bytes }));
  const gets = (count * kv.getPercent) / 100;
  return node === 0
    ? [
        { count: gets, bytes: kv.keyBytes },
        { count: count - gets, bytes: putBytes(kv) },
      ]
    : [
        { count: gets, bytes: kv.valueBytes },
        { count: count - gets, bytes: 0 },
      ];
}

/** Receives that a side posts. */
function receivesOf(measured: Measured, node: number): number {
  const { args } = measured;
  const isReceiver =
    args.kv === undefined ? args.verb === 'send' && isSender(args, otherSide(node)) : node === 0;
  return isReceiver ? sentBy(measured) : 0;
}

/** Messages of one sending side. */
const sentBy = (measured: Measured): number =>
  measured.args.isBidirectional === true ? messagesOf(measured) / 2 : messagesOf(measured);

/** Cycles of posting if every store is accepted immediately, for one sending side; a list is posted in one call. */
function plainPostCycles(measured: Measured, node: number): number {
  const { config, args, figures } = measured;
  const { cost } = config.host;
  const { postList = 1 } = args;
  const posts = postsOf(measured, node);
  const { send = 0, blueFlame = 0 } = figures.nodes[node]!.hca.doorbells;
  const total = sum(posts.map(({ count }) => count));
  // Additional bytes of a datagram's WQE: an address vector of 48 bytes instead of a remote address of 16.
  const headBytes = args.kv !== undefined && node === 1 ? 16 - (48 - 16) : 16;
  const costOf = ({ count, bytes }: Posts): number => {
    const inlined = bytes <= args.inlineBytes ? bytes : 0;
    const inline = Math.ceil(inlined / 64) * cost.postSendPerInlineByte64;
    const lines = 1 + Math.ceil(Math.max(0, inlined - headBytes) / 64);
    const rung = total === 0 ? 0 : (count / total) * blueFlame * lines * cost.mmioStore;
    return count * (cost.postSend / postList + cost.postSendPerSegment + inline) + rung;
  };
  return sum(posts.map(costOf)) + send * cost.mmioStore + receivesOf(measured, node) * cost.postRecv;
}

interface CoreShares {
  readonly work: number;
  /** Share of time without a completion to poll: polling for one, or asleep until an event. */
  readonly waiting: number;
  readonly blockedPosts: number;
  /** Cycles for falling asleep and waking up. */
  readonly sleeping: number;
}

function sharesOf(measured: Measured, { node, cycles }: ProgramCore, programs: number): CoreShares {
  const { config, durationPs, figures, args } = measured;
  const { core, cost } = config.host;
  const total = (durationPs * core.clockMHz) / 1e6;
  const { post = 0, poll = 0, systemCall = 0, interrupt = 0, contextSwitch = 0 } = cycles;
  const taken = (completionsOf(figures.nodes[node]!) / programs) * (cost.pollCompletion + cost.readDmaLine);
  const emptyPolls = Math.max(0, poll - taken);
  const blockedPosts = Math.max(0, post - plainPostCycles(measured, node) / programs);
  const all = sum(Object.values(cycles));
  const asleep = args.usesEvents ? Math.max(0, total - all) : 0;
  return {
    work: (all - emptyPolls - blockedPosts) / total,
    waiting: (emptyPolls + asleep) / total,
    blockedPosts: blockedPosts / total,
    sleeping: all === 0 ? 0 : (systemCall + interrupt + contextSwitch) / all,
  };
}

interface CoreResources {
  /** Busy cycles. */
  readonly servers: readonly Resource[];
  /** Waits for stores that the bus does not accept. */
  readonly stores: readonly Resource[];
  /** Messages in flight of a program: they wait for the bottleneck. */
  readonly flights: readonly Resource[];
}

/** The busiest program of each host. */
export function coreResources(measured: Measured): CoreResources {
  const all = [0, 1].flatMap((node) => resourcesOf(measured, node).map((each) => ({ ...each, node })));
  return {
    servers: all.flatMap(({ work, node }) => (holdsUp(measured.args, node) ? [work] : [])),
    stores: all.map(({ blocked }) => blocked),
    flights: all.flatMap(({ flight }) => flight),
  };
}

function resourcesOf(
  measured: Measured,
  node: number,
): { readonly work: Resource; readonly blocked: Resource; readonly flight: readonly Resource[] }[] {
  const { cores, args } = measured;
  const own = cores.filter((core) => core.node === node);
  const shares = own.map((core) => sharesOf(measured, core, own.length));
  if (shares.length === 0) return [];
  const most = (pick: (shares: CoreShares) => number): number => Math.max(...shares.map(pick));
  const work: Resource = {
    name: `core of ${hostText(measured, node)}`,
    kind: 'server',
    share: most((each) => each.work),
    turn:
      args.kv === undefined
        ? coreTurns(args, node, args.usesEvents ? most((each) => each.sleeping) : 0)
        : [
            ...more(node === 0 ? '--threads' : '--servers', 'host.core.clockMHz'),
            ...less('host.cost.postSend', ...(node === 0 ? ['host.cost.postRecv'] : ['--lookup'])),
          ],
  };
  const blocked: Resource = {
    name: `stores of ${hostText(measured, node)} to the device`,
    kind: 'window',
    share: most((each) => each.blockedPosts),
    turn: [...more('--post-list', 'pcie.endpointPort.postedHeaders', 'host.core.writeCombiningBuffers')],
  };
  // The server of a store waits for its clients only.
  if (!isSender(args, node) || (args.kv !== undefined && node === 1)) return [{ work, blocked, flight: [] }];
  const flight: Resource = {
    name: `messages in flight of ${hostText(measured, node)}`,
    kind: 'window',
    share: Math.min(...shares.map((each) => each.waiting)),
    turn:
      args.kv === undefined
        ? [
            ...more('--tx-depth', '--qps'),
            ...less('--cq-mod', ...(args.eventModeration === undefined ? [] : ['--moderation'])),
          ]
        : more('--window', '--threads'),
  };
  return [{ work, blocked, flight: [flight] }];
}

/** Share from which on a program falls asleep repeatedly: it is awake briefly, and faster work only makes it sleep more. */
const oftenAsleep = 0.005;

function coreTurns({ verb }: PerfArgs, node: number, sleeping: number): Resource['turn'] {
  if (sleeping >= oftenAsleep)
    return [...less('--events'), ...more('--tx-depth', '--qps', 'host.core.clockMHz')];
  return [
    ...more('--threads', 'host.core.clockMHz'),
    ...(node === 1 && verb === 'send'
      ? less('host.cost.postRecv', 'host.cost.pollCompletion')
      : [...more('--post-list'), ...less('host.cost.postSend')]),
  ];
}

/**
 * The cores of the programs. A core waits if it polls an empty queue, if its program sleeps until an event, or if the
 * bus does not accept its stores. The rest is work.
 */
import type { NodeReport } from '../../machine/index.ts';
import { type Advice, isReliable, type Posts } from '../workloads/index.ts';
import {
  hostText,
  less,
  type Measured,
  messagesOf,
  more,
  type ProgramCore,
  type Resource,
  type Turn,
  trafficOf,
} from './measured.ts';

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** CQEs that the device of a host has written. */
function completionsOf({ hca }: NodeReport): number {
  const used = hca.caches['cqc']?.users['completion'];
  return used === undefined ? 0 : used.hits + used.misses;
}

/**
 * Whether the core of a host can delay the other host's. An unreliable sender does not wait; it loses messages that are
 * not received in time.
 */
const holdsUp = (measured: Measured, side: Side): boolean =>
  trafficOf(measured).sides[side].posts !== undefined || isReliable(measured.args.connection);

/** Nodes of a test are numbered by side: the client is 0, the server is 1. */
type Side = 0 | 1;

/** Messages of one sending side. */
const sentBy = (measured: Measured): number =>
  measured.args.isBidirectional === true ? messagesOf(measured) / 2 : messagesOf(measured);

/** Cycles of posting if every store is accepted immediately, for one sending side; a list is posted in one call. */
function plainPostCycles(measured: Measured, node: Side): number {
  const { config, args, figures } = measured;
  const { cost } = config.host;
  const { postList = 1 } = args;
  const { posts: postsOf, addressBytes, receives } = trafficOf(measured).sides[node];
  const messages = sentBy(measured);
  const posts = postsOf?.(messages) ?? [];
  const { send = 0, blueFlame = 0 } = figures.nodes[node]!.hca.doorbells;
  const total = sum(posts.map(({ count }) => count));
  // Inline data in the first line of a WQE, after the address.
  const headBytes = 32 - addressBytes;
  const costOf = ({ count, bytes }: Posts): number => {
    const inlined = bytes <= args.inlineBytes ? bytes : 0;
    const inline = Math.ceil(inlined / 64) * cost.postSendPerInlineByte64;
    const lines = 1 + Math.ceil(Math.max(0, inlined - headBytes) / 64);
    const rung = total === 0 ? 0 : (count / total) * blueFlame * lines * cost.mmioStore;
    return count * (cost.postSend / postList + cost.postSendPerSegment + inline) + rung;
  };
  return sum(posts.map(costOf)) + send * cost.mmioStore + (receives ? messages : 0) * cost.postRecv;
}

interface CoreShares {
  readonly work: number;
  /** Share of time without a completion to poll: polling for one, or asleep until an event. */
  readonly waiting: number;
  readonly blockedPosts: number;
  /** Cycles for falling asleep and waking up. */
  readonly sleeping: number;
}

function sharesOf(measured: Measured, node: Side, { cycles }: ProgramCore, programs: number): CoreShares {
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
  const all = ([0, 1] as const).flatMap((node) =>
    resourcesOf(measured, node).map((each) => ({ ...each, node })),
  );
  return {
    servers: all.flatMap(({ work, node }) => (holdsUp(measured, node) ? [work] : [])),
    stores: all.map(({ blocked }) => blocked),
    flights: all.flatMap(({ flight }) => flight),
  };
}

function resourcesOf(
  measured: Measured,
  node: Side,
): { readonly work: Resource; readonly blocked: Resource; readonly flight: readonly Resource[] }[] {
  const { cores, args } = measured;
  const { coreAdvice, flightAdvice } = trafficOf(measured).sides[node];
  const own = cores.filter((core) => core.node === node);
  const shares = own.map((core) => sharesOf(measured, node, core, own.length));
  if (shares.length === 0) return [];
  const most = (pick: (shares: CoreShares) => number): number => Math.max(...shares.map(pick));
  const work: Resource = {
    name: `core of ${hostText(measured, node)}`,
    kind: 'server',
    share: most((each) => each.work),
    turn: coreTurns(coreAdvice, args.usesEvents ? most((each) => each.sleeping) : 0),
  };
  const blocked: Resource = {
    name: `stores of ${hostText(measured, node)} to the device`,
    kind: 'window',
    share: most((each) => each.blockedPosts),
    turn: [...more('--post-list', 'pcie.endpointPort.postedHeaders', 'host.core.writeCombiningBuffers')],
  };
  if (flightAdvice === undefined) return [{ work, blocked, flight: [] }];
  const flight: Resource = {
    name: `messages in flight of ${hostText(measured, node)}`,
    kind: 'window',
    share: Math.min(...shares.map((each) => each.waiting)),
    turn: turnsOf(flightAdvice),
  };
  return [{ work, blocked, flight: [flight] }];
}

/** Share from which on a program falls asleep repeatedly: it is awake briefly, and faster work only makes it sleep more. */
const oftenAsleep = 0.005;

function coreTurns(advice: Advice, sleeping: number): Resource['turn'] {
  if (sleeping < oftenAsleep) return turnsOf(advice);
  return [...less('--events'), ...more('--tx-depth', '--qps', 'host.core.clockMHz')];
}

const turnsOf = (advice: Advice): Turn[] => [...more(...advice.more), ...less(...advice.less)];

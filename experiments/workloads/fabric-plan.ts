/**
 * Traffic of a fabric: which host sends to which, and what was measured of each such flow.
 *
 *     incast        all others ─▶ host 0                       many senders meet at one port
 *     outcast       host 0 ─▶ all others
 *     permutation   host n ─▶ host n + half of them            every host sends and receives once
 *     ring          host n ─▶ host n + 1
 *     all-to-all    every host ─▶ every other
 *     victim        incast to host 0, and one of its senders also sends to a host with no other sender
 *     all-reduce    the sum of one vector of each host, at every host: flows as its algorithm has them
 *     parameter-server  every worker ─▶ every server, an equal part of its vector; then each worker reads all parts back
 */
import { ConfigurationError } from '../../base/index.ts';
import type { AllReduceAlgorithm } from '../../userlib/messaging/index.ts';
import { collectivePeers } from '../../userlib/messaging/index.ts';

/** One sender and one receiver. */
export interface Flow {
  readonly from: number;
  readonly to: number;
  /** Service level of its packets on InfiniBand, both ways; left out: 0. */
  readonly serviceLevel?: number;
}

export const fabricPatterns = [
  'incast',
  'outcast',
  'permutation',
  'ring',
  'all-to-all',
  'victim',
  'all-reduce',
  'parameter-server',
] as const;
export type FabricPattern = (typeof fabricPatterns)[number];

export const fabricVerbs = ['write', 'read', 'send'] as const;
export type FabricVerb = (typeof fabricVerbs)[number];

/** Transports of SENDs. */
export const fabricConnections = ['RC', 'XRC', 'UD'] as const;
export type FabricConnection = (typeof fabricConnections)[number];

export interface FabricArgs {
  readonly pattern: FabricPattern;
  /** `write`: the sender writes; `read`: the receiver reads; `send`: the receiver has receives. Data go the same way. */
  readonly verb: FabricVerb;
  /** Transport of SENDs; left out: RC. */
  readonly connection?: FabricConnection;
  /** Whether the RC QPs of a host share one receive queue; XRC has one always. */
  readonly usesSrq?: boolean;
  /** Hosts that take part: the first of the machine. */
  readonly hostCount: number;
  readonly sizeBytes: number;
  /** Messages of each flow. */
  readonly messages: number;
  /** Messages of a flow in flight. */
  readonly window: number;
  /** QPs of a flow, to which its messages go in turn; over UD those of a host, for all of its flows. Left out: 1. */
  readonly qpCount?: number;
  /** Present for an all-reduce: its vector has `sizeBytes`, and it is repeated `messages` times. */
  readonly algorithm?: AllReduceAlgorithm;
  /** Parameter servers: the hosts that keep the vector, an equal part each. The others are the workers; if all are servers, all are workers too. Left out: the last host. */
  readonly servers?: readonly number[];
  /** Flows instead of those of the pattern, at most one from each host to each other. */
  readonly flows?: readonly Flow[];
  /** Service level of all flows; of `victim`, of the last one alone. Left out: 0. */
  readonly serviceLevel?: number;
  readonly victimLevel?: number;
  /** Traffic class of the packets; left out: 0, without a GRH on InfiniBand. */
  readonly trafficClass?: number;
}

export const fabricDefaults = {
  /** The fabric of a run whose options name none. */
  topology: 'star:8',
  pattern: 'incast',
  verb: 'write',
  sizeBytes: 65_536,
  messages: 50,
  window: 16,
} as const;

/** Measurements of one flow, by the host that posts. */
export interface FlowResult extends Flow {
  /** From the common start until the receiver has everything: the last completion, over iWARP that of a READ of no bytes after it. */
  readonly durationPs: number;
  /** From the common start until half of its messages had completed: after that, caches and windows are full. */
  readonly halfPs: number;
  /** Time of each message from its post to its completion, in the order of completion. A WRITE of iWARP completes when TCP has it. */
  readonly messagePs: readonly number[];
}

/** Result of one host's program. */
export interface FabricSide {
  /** The common start. */
  readonly startPs: number;
  readonly flows: readonly FlowResult[];
  /** Flows to this host whose bytes were not as sent. */
  readonly wrong: readonly Flow[];
  /** Present for SENDs: when this host had the last message of each flow to it, from the common start; its QPs and receive queues. */
  readonly arrivals?: readonly (Flow & Pick<FlowResult, 'durationPs'>)[];
  readonly qpCount?: number;
  readonly receiveQueueCount?: number;
}

/** Result of one host's program in an all-reduce. */
export interface ReductionSide {
  /** The common start. */
  readonly startPs: number;
  /** When this host began each operation, and when it had the sums. */
  readonly times: readonly (readonly [startPs: number, endPs: number])[];
  /** Whether it had the right sums in the end. */
  readonly isRight: boolean;
}

/** Result of one host's program of rounds with parameter servers. */
export interface RoundsSide {
  /** From the common start of a round's phase until this host's last message of it ended: 0 for a host that is no worker. */
  readonly rounds: readonly (readonly [pushPs: number, pullPs: number])[];
  /** Flows to this host whose bytes were not as sent. */
  readonly wrong: readonly Flow[];
}

/** The arguments that name the flows. */
export type FlowArgs = Pick<
  FabricArgs,
  'pattern' | 'hostCount' | 'algorithm' | 'servers' | 'flows' | 'serviceLevel' | 'victimLevel'
>;

/**
 * The flows, in order: those given, or those of the pattern; of parameter servers those to the servers.
 * @throws ConfigurationError for too few hosts
 */
export function flowsOf(args: FlowArgs): readonly Flow[] {
  if (args.flows !== undefined) return args.flows;
  const { serviceLevel, victimLevel = serviceLevel } = args;
  const flows = patternFlows(args);
  return flows.map((flow, index) => {
    const level = args.pattern === 'victim' && index === flows.length - 1 ? victimLevel : serviceLevel;
    return level === undefined ? flow : { ...flow, serviceLevel: level };
  });
}

function patternFlows(args: FlowArgs): readonly Flow[] {
  const { pattern, hostCount, algorithm = 'ring' } = args;
  const least = pattern === 'victim' ? 4 : 2;
  if (hostCount < least) throw new ConfigurationError(`hosts of ${pattern}`, hostCount, `at least ${least}`);
  const hosts = Array.from({ length: hostCount }, (_, host) => host);
  const others = hosts.slice(1);
  switch (pattern) {
    case 'incast':
      return others.map((from) => ({ from, to: 0 }));
    case 'outcast':
      return others.map((to) => ({ from: 0, to }));
    case 'permutation': {
      const half = Math.ceil(hostCount / 2);
      return hosts.map((from) => ({ from, to: (from + half) % hostCount }));
    }
    case 'ring':
      return hosts.map((from) => ({ from, to: (from + 1) % hostCount }));
    case 'all-to-all':
      return hosts.flatMap((from) => hosts.flatMap((to) => (to === from ? [] : [{ from, to }])));
    case 'all-reduce':
      return hosts.flatMap((from) =>
        collectivePeers(['barrier', algorithm], from, hostCount).map((to) => ({ from, to })),
      );
    case 'parameter-server':
      return workersOf(args).flatMap((from, index) =>
        rotated(serversOf(args), index).flatMap((to) => (to === from ? [] : [{ from, to }])),
      );
    case 'victim':
      return [...others.slice(0, -1).map((from) => ({ from, to: 0 })), { from: 1, to: hostCount - 1 }];
  }
}

type ServerArgs = Pick<FabricArgs, 'hostCount' | 'servers'>;

/** Hosts that are parameter servers. */
export const serversOf = ({ hostCount, servers = [hostCount - 1] }: ServerArgs): readonly number[] => servers;

/** Workers begin with different servers. Otherwise all would wait at the port of the first server, then at the port of the second. */
const rotated = (servers: readonly number[], index: number): readonly number[] => {
  const first = index % servers.length;
  return [...servers.slice(first), ...servers.slice(0, first)];
};

/** Hosts that send gradients to parameter servers: those that are no servers, or all if all are. */
export function workersOf(args: ServerArgs): readonly number[] {
  const servers = serversOf(args);
  const hosts = Array.from({ length: args.hostCount }, (_, host) => host);
  return servers.length === args.hostCount ? hosts : hosts.filter((host) => !servers.includes(host));
}

/** The host that posts the work requests of a flow. */
export const posterOf = ({ from, to }: Flow, verb: FabricVerb): number => (verb === 'read' ? to : from);

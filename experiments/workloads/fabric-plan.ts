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
] as const;
export type FabricPattern = (typeof fabricPatterns)[number];

export const fabricVerbs = ['write', 'read'] as const;
export type FabricVerb = (typeof fabricVerbs)[number];

export interface FabricArgs {
  readonly pattern: FabricPattern;
  /** `write`: the sender writes; `read`: the receiver reads. Data go the same way. */
  readonly verb: FabricVerb;
  /** Hosts that take part: the first of the machine. */
  readonly hostCount: number;
  readonly sizeBytes: number;
  /** Messages of each flow. */
  readonly messages: number;
  /** Messages of a flow in flight. */
  readonly window: number;
  /** QPs of a flow, to which its messages go in turn; left out: 1. */
  readonly qpCount?: number;
  /** Present for an all-reduce: its vector has `sizeBytes`, and it is repeated `messages` times. */
  readonly algorithm?: AllReduceAlgorithm;
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

/**
 * The flows, in order: those given, or those of the pattern.
 * @throws ConfigurationError for too few hosts
 */
export function flowsOf(
  args: Pick<FabricArgs, 'pattern' | 'hostCount' | 'algorithm' | 'flows' | 'serviceLevel' | 'victimLevel'>,
): readonly Flow[] {
  if (args.flows !== undefined) return args.flows;
  const { serviceLevel, victimLevel = serviceLevel } = args;
  const flows = patternFlows(args);
  return flows.map((flow, index) => {
    const level = args.pattern === 'victim' && index === flows.length - 1 ? victimLevel : serviceLevel;
    return level === undefined ? flow : { ...flow, serviceLevel: level };
  });
}

function patternFlows({
  pattern,
  hostCount,
  algorithm = 'ring',
}: Pick<FabricArgs, 'pattern' | 'hostCount' | 'algorithm'>): readonly Flow[] {
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
    case 'victim':
      return [...others.slice(0, -1).map((from) => ({ from, to: 0 })), { from: 1, to: hostCount - 1 }];
  }
}

/** The host that posts the work requests of a flow. */
export const posterOf = ({ from, to }: Flow, verb: FabricVerb): number => (verb === 'write' ? from : to);

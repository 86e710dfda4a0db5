/** Names of the tests, and arguments of their programs; perftest's defaults. The plan of another kind than perftest's is a member of these. */
import type { KvPlan } from './kv-plan.ts';
import type { LoadPlan } from './offered-load.ts';
import type { RouteChoice } from './port-address.ts';

export type { KvPlan };

export const perfTestNames = [
  'write-lat',
  'write-bw',
  'read-lat',
  'read-bw',
  'send-lat',
  'send-bw',
  'atomic-lat',
  'atomic-bw',
  'kv-rpc',
] as const;
export type PerfTestName = (typeof perfTestNames)[number];

export const perfPatterns = ['sequential', 'random', 'zipf', 'stride'] as const;
export type PerfPattern = (typeof perfPatterns)[number];

/** Transport services of the QPs: perftest's names. */
export const perfConnections = ['RC', 'XRC', 'UC', 'UD'] as const;
export type PerfConnection = (typeof perfConnections)[number];
/** Whether every message arrives. */
export const isReliable = (connection: PerfConnection = 'RC'): boolean =>
  connection === 'RC' || connection === 'XRC';

export type PerfVerb = 'write' | 'read' | 'send' | 'atomic';

/** Arguments of both programs. */
export interface PerfArgs {
  readonly verb: PerfVerb;
  readonly isLatency: boolean;
  readonly sizeBytes: number;
  readonly iterations: number;
  readonly qpCount: number;
  readonly txDepth: number;
  /** Receives of each QP, or of their shared queue. */
  readonly rxDepth: number;
  /** Whether the QPs of a program share a receive queue; those of XRC always do. */
  readonly usesSrq?: boolean;
  /** Messages up to this many bytes are sent inline. */
  readonly inlineBytes: number;
  /** Whether to sleep until a completion event instead of polling. */
  readonly usesEvents: boolean;
  /** Number of sends of a bandwidth test per completion. */
  readonly cqModeration: number;
  /** Path MTU in bytes; 0 is the port's. */
  readonly mtuBytes: number;
  /** Memory of each side that messages walk through, and the pattern; left out if all use one place. */
  readonly region?: PerfRegion;
  /** Whether the buffer is registered on demand instead of pinned. */
  readonly isOnDemand?: boolean;
  /** Routing of packets, if the workload selects it. */
  readonly route?: RouteChoice;
  /** Left out for RC. */
  readonly connection?: PerfConnection;
  /** Programs of each side, each on its own core, over which the QPs are distributed; left out for one. */
  readonly threads?: number;
  /** Index of this program among them. */
  readonly thread?: number;
  /** QPs of all programs of a side; left out if `qpCount` is that number. */
  readonly allQpCount?: number;
  /** Requests posted in one call, with one doorbell; left out for one. */
  readonly postList?: number;
  /** Whether both sides send. */
  readonly isBidirectional?: boolean;
  /** Whether the server answers each message with an equal one; a message completes when its answer has arrived. */
  readonly isEchoed?: boolean;
  /** Messages of a QP before the measured ones: excluded from the result and from the counters of the row. */
  readonly warmupIterations?: number;
  /** Message lengths, drawn randomly in these proportions; `sizeBytes` is the longest. */
  readonly sizes?: readonly SizeShare[];
  /** Page size of the buffer's mapping; left out for 4 KiB. */
  readonly pageBytes?: number;
  /** False: short requests are also announced by a doorbell. */
  readonly usesBlueFlame?: boolean;
  /** One event per this many completions, or after this many microseconds. */
  readonly eventModeration?: { readonly count: number; readonly microseconds: number };
  /** Messages are posted as they arrive; if left out, the next one is posted as soon as there is room. */
  readonly load?: LoadPlan;
  /** The store of kv-rpc: `threads` clients send requests, `sizeBytes` is a value's size, the other verbs' arguments are those of WRITE. */
  readonly kv?: KvPlan;
}

export interface PerfRegion {
  readonly bytes: number;
  readonly pattern: PerfPattern;
  /** Distance between successive messages, for the pattern `stride`. */
  readonly strideBytes?: number;
  /** Memory regions (keys) that it is registered in; left out for one. */
  readonly keys?: number;
  /** Whether every message uses the first place of the local buffer; left out if it uses the place of the remote one. */
  readonly isLocalFixed?: boolean;
  /** Bytes of memory that repeat under all of its addresses (MapOptions of host/mm); left out if each page is separate. */
  readonly stretchBytes?: number;
}

/** A message length, and its weight relative to the sum of all weights. */
export interface SizeShare {
  readonly bytes: number;
  readonly weight: number;
}

/** The verb of a test of perftest, by its name. */
export const verbOf = (test: PerfTestName): PerfVerb => test.slice(0, test.indexOf('-')) as PerfVerb;
export const isLatencyTest = (test: PerfTestName): boolean => test.endsWith('-lat');

/** Lengths of messages, and the share of each. */
export function lengthsOf({
  sizeBytes,
  sizes = [{ bytes: sizeBytes, weight: 1 }],
}: PerfArgs): readonly { readonly bytes: number; readonly share: number }[] {
  const total = sizes.reduce((sum, { weight }) => sum + weight, 0);
  return sizes.map(({ bytes, weight }) => ({ bytes, share: weight / total }));
}

/** perftest 4.5: iterations, depths, and the inline sizes of ib_write_lat and ib_send_lat. */
export const perfDefaults = {
  latencyIterations: 1000,
  bandwidthIterations: 5000,
  txDepth: 128,
  rxDepth: 512,
  cqModeration: 100,
  sizeBytes: { write: 65_536, read: 65_536, send: 65_536, atomic: 8 },
  latencySizeBytes: { write: 2, read: 2, send: 2, atomic: 8 },
  inlineBytes: { write: 220, read: 0, send: 236, atomic: 0 },
  datagramInlineBytes: 188,
} as const;

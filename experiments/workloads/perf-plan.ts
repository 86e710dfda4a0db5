/** Arguments of the two programs of `perf` and what the client returns; perftest's tests and defaults. */
import type { KvPlan, KvRequests } from './kv-plan.ts';
import type { LoadCounts, LoadPlan } from './offered-load.ts';
import type { RouteChoice } from './port-address.ts';

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

/** Given to both programs. */
export interface PerfArgs {
  readonly verb: PerfVerb;
  readonly isLatency: boolean;
  readonly sizeBytes: number;
  readonly iterations: number;
  readonly qpCount: number;
  readonly txDepth: number;
  /** Receives of each QP, or of the queue that they share. */
  readonly rxDepth: number;
  /** Its receives are of a queue that the QPs of a program share; of XRC they always are. */
  readonly usesSrq?: boolean;
  /** Messages of at most so many bytes go inline. */
  readonly inlineBytes: number;
  /** Sleep until a completion event instead of polling. */
  readonly usesEvents: boolean;
  /** One completion for so many sends of a bandwidth test. */
  readonly cqModeration: number;
  /** Path MTU in bytes; 0 is the port's. */
  readonly mtuBytes: number;
  /** Memory of each side that messages walk through, and how; left out when all have one place. */
  readonly region?: PerfRegion;
  /** The buffer is registered on demand instead of pinned. */
  readonly isOnDemand?: boolean;
  /** Routing of packets, where the workload chooses it. */
  readonly route?: RouteChoice;
  /** Left out for RC. */
  readonly connection?: PerfConnection;
  /** Programs of each side, each on a core of its own, over which the QPs are spread; left out for one. */
  readonly threads?: number;
  /** Which of them this program is. */
  readonly thread?: number;
  /** QPs of all programs of a side; left out where `qpCount` is that. */
  readonly allQpCount?: number;
  /** Requests posted in one call, with one doorbell; left out for one. */
  readonly postList?: number;
  /** Both sides send. */
  readonly isBidirectional?: boolean;
  /** The server answers each message with one like it; a message has completed when its answer has come. */
  readonly isEchoed?: boolean;
  /** Messages of a QP before the measured ones: neither in the result nor in the counters of the row. */
  readonly warmupIterations?: number;
  /** Lengths that are drawn for each message in these proportions; `sizeBytes` is the longest. */
  readonly sizes?: readonly SizeShare[];
  /** Pages in which the buffer is mapped; left out for 4 KiB. */
  readonly pageBytes?: number;
  /** False: short requests are announced by a doorbell, too. */
  readonly usesBlueFlame?: boolean;
  /** One event for so many completions, or after so many microseconds. */
  readonly eventModeration?: { readonly count: number; readonly microseconds: number };
  /** Messages are posted as they arrive; left out where the next one is posted as soon as there is room. */
  readonly load?: LoadPlan;
  /** The store of kv-rpc: `threads` clients ask, `sizeBytes` is a value's, the other verbs' arguments are those of WRITE. */
  readonly kv?: KvPlan;
}

export interface PerfRegion {
  readonly bytes: number;
  readonly pattern: PerfPattern;
  /** From one message to the next; of the pattern `stride`. */
  readonly strideBytes?: number;
  /** Memory regions (keys) that it is registered in; left out for one. */
  readonly keys?: number;
  /** Bytes of memory that repeat under all of its addresses (MapOptions of host/mm); left out where each page is one of its own. */
  readonly stretchBytes?: number;
}

/** A message length, and in how many of the sum of all weights it is drawn. */
export interface SizeShare {
  readonly bytes: number;
  readonly weight: number;
}

/** A latency test's result, in picoseconds: half a round trip of WRITE and SEND, a whole one of READ and atomics. */
export interface LatencyResult {
  readonly iterations: number;
  /** The first message: what first touch costs. */
  readonly firstPs: number;
  /** Registering the client's buffer; not of a result that is only computed from times. */
  readonly registrationPs?: number;
  readonly minPs: number;
  readonly maxPs: number;
  readonly typicalPs: number;
  readonly averagePs: number;
  readonly deviationPs: number;
  readonly p99Ps: number;
  readonly p999Ps: number;
}

/** A bandwidth test's result. */
export interface BandwidthResult {
  readonly iterations: number;
  /** From the first post to the last completion. */
  readonly durationPs: number;
  readonly peakBytesPerSecond: number;
  readonly averageBytesPerSecond: number;
  readonly messagesPerSecond: number;
}

/** A key-value store's result: rates of all clients' requests, and how long one took, in picoseconds. */
export interface KvResult extends BandwidthResult, Omit<LatencyResult, 'firstPs' | 'registrationPs'> {
  readonly getCount: number;
  readonly putCount: number;
}

/** A bandwidth test's result under an offered load: rates, and how long a message took from its arrival on, in picoseconds. */
export interface LoadedResult extends BandwidthResult, Omit<LatencyResult, 'firstPs' | 'registrationPs'> {
  readonly p90Ps: number;
}

/** Interrupts that a host has served in a time, and cycles that its cores were at work. */
export interface HostWork {
  readonly spanPs: number;
  readonly interrupts: number;
  readonly cycles: number;
}

/** Counts of one program of a bandwidth test. */
export interface PerfSide {
  /** Of a side that sends. */
  readonly result?: BandwidthResult;
  /** Messages taken by a side that receives, and those that were sent to it. */
  readonly received?: { readonly count: number; readonly expected: number };
  /** Of a side that sends under an offered load, with the time of each message from its arrival to its completion. */
  readonly load?: LoadCounts & { readonly timesPs: readonly number[] };
  /** Under an offered load: the work of its whole host from the start to the last completion of the client. */
  readonly host?: HostWork;
  /** Of a program of a key-value store. */
  readonly requests?: KvRequests;
  /** Cycles of the program's core by cause while it measured; zeros left out. */
  readonly cycles: Readonly<Record<string, number>>;
}

/** Posts of the client. */
export const verbOf = (test: PerfTestName): PerfVerb =>
  isKvTest(test) ? 'write' : (test.slice(0, test.indexOf('-')) as PerfVerb);
export const isKvTest = (test: PerfTestName): boolean => test === 'kv-rpc';
export const isLatencyTest = (test: PerfTestName): boolean => test.endsWith('-lat');

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

/** Results of the programs of `perf`, and of their tests. */
import type { KvRates } from './kv-plan.ts';
import type { LoadCounts } from './offered-load.ts';

/** A latency test's result, in picoseconds: half a round trip for WRITE and SEND, a whole one for READ and atomics. */
export interface LatencyResult {
  readonly iterations: number;
  /** The first message, including the cost of first touch. */
  readonly firstPs: number;
  /** Time to register the client's buffer; absent in a result that is only computed from times. */
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

/**
 * A result with its peak, if it has one. Several senders together have none, nor do messages of randomly drawn lengths,
 * because the peak counts messages of any length.
 */
export type WithPeakIfAny<Result extends BandwidthResult> = Omit<Result, 'peakBytesPerSecond'> &
  Partial<Pick<Result, 'peakBytesPerSecond'>>;

/** Measurements of a bandwidth test. */
export interface BandwidthRates extends WithPeakIfAny<BandwidthResult> {}

/** A bandwidth test's result under an offered load: rates, and the time of a message from its arrival on, in picoseconds. */
export interface LoadedResult extends BandwidthResult, Omit<LatencyResult, 'firstPs' | 'registrationPs'> {
  readonly p90Ps: number;
}

/** Rates and latencies of a loaded test: all senders together have no peak. */
export interface LoadedRates extends Omit<LoadedResult, 'peakBytesPerSecond'> {}

export type PerfResult = LatencyResult | BandwidthRates | KvRates | LoadedRates;

/** Interrupts that a host has served in a period, and busy cycles of its cores. */
export interface HostWork {
  readonly spanPs: number;
  readonly interrupts: number;
  readonly cycles: number;
}

/** Counts of one program of a bandwidth test; other kinds of tests add theirs. */
export interface PerfSide {
  /** For a sending side. */
  readonly result?: BandwidthResult;
  /** Messages received by a side, and messages sent to it. */
  readonly received?: { readonly count: number; readonly expected: number };
  /** For a sending side under an offered load, with the time of each message from its arrival to its completion. */
  readonly load?: LoadCounts & { readonly timesPs: readonly number[] };
  /** Under an offered load: the work of its whole host from the start to the last completion of the client. */
  readonly host?: HostWork;
  /** Cycles of the program's core by cause during the measurement, without zeros. */
  readonly cycles: Readonly<Record<string, number>>;
}

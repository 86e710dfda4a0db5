/**
 * A kind of test: perftest's tests of verbs are one, the key-value store is another. It declares here what the general
 * code of `perf` asks about its tests, from the fields of a workload to the columns of the result; `test-kinds.ts` has
 * the table of all kinds.
 */
import type { ProgramOptions } from '../../machine/index.ts';
import type { CableFigures } from '../../wire/index.ts';
import type { PerfArgs, PerfConnection, PerfTestName } from './perf-plan.ts';
import type { BandwidthRates, PerfResult, PerfSide } from './perf-result.ts';
import type { Workload } from './workload.ts';
import type { WorkloadFieldName } from './workload-fields.ts';
import type { Rule } from './workload-rules.ts';

export interface TestKind {
  /** Fields that no other kind has; a refusal of them says which `thing` the other kind lacks. */
  readonly own?: { readonly fields: readonly WorkloadFieldName[]; readonly thing: string };
  /** Fields of other kinds that are refused for this one; the refusal says what its tests have `instead`. */
  readonly lacking?: { readonly fields: readonly WorkloadFieldName[]; readonly instead: string };
  /** Valid combinations of the other fields, in the order in which they are checked. */
  readonly rules: readonly Rule[];
  /** Predefined workloads by name. */
  readonly ready: Readonly<Record<string, ReadyWorkload>>;
  /** Arguments that depend on the kind; the others are the workload's fields, or perftest's defaults. */
  presetOf(asked: Workload): Preset;
  /** Why its tests lack an option that expands a workload into several. */
  expansionRefusal(option: 'all' | 'odp', test: PerfTestName): string | undefined;
  /** Whether messages consume receives. */
  receives(test: PerfTestName): boolean;
  /** If iWARP lacks its services or operations: the test, and the accepted ones with the reason. */
  iwarpRefusal(args: PerfArgs, hasAtomics: boolean): readonly [test: PerfTestName, range: string] | undefined;
  /** Programs with a core each at one host, by the field that has their number. */
  programCounts(args: PerfArgs): Partial<Record<WorkloadFieldName, number>>;
  /** Memory of a host that messages need; 0 if it may be swapped out, or is small. */
  memoryBytes(args: PerfArgs): number;
  /** The programs at the sides: 0 is the client's, 1 the server's. */
  programsOf(args: PerfArgs): readonly TestProgram[];
  /** The result of all programs of a test that is no latency test. */
  resultOf(rates: BandwidthRates, sides: readonly PerfSide[]): PerfResult;
  trafficOf(args: PerfArgs): Traffic;
  tableOf(args: PerfArgs): ResultTable;
}

export interface ReadyWorkload extends Workload {
  /** Description of the workload. */
  readonly meaning: string;
}

/** With the plan of a kind that has one. */
export type Preset = Pick<PerfArgs, 'verb' | 'sizeBytes' | 'inlineBytes' | 'cqModeration'> &
  Partial<PerfArgs>;

export interface TestProgram extends Omit<ProgramOptions, 'run'> {
  /** File of this folder, without its ending. */
  readonly module: string;
  readonly exportName: string;
}

/** Options and parameters to increase and to decrease, for more messages per second. */
export interface Advice {
  readonly more: readonly string[];
  readonly less: readonly string[];
}

interface TrafficSide {
  /** Requests that the side posts for this many messages; left out if it posts none. */
  readonly posts?: (messages: number) => readonly Posts[];
  /** Bytes of the address in a WQE: 16 of a remote address, 48 of an address vector. */
  readonly addressBytes: number;
  /** Whether each message consumes a receive. */
  readonly receives: boolean;
  /** For a core that is busy. */
  readonly coreAdvice: Advice;
  /** For more messages in flight; left out for a side that waits for the other one's messages only. */
  readonly flightAdvice?: Advice;
}

/** Requests of one length. */
export interface Posts {
  readonly count: number;
  readonly bytes: number;
}

/** Messages of a test: the basis of the closed forms that find its bottleneck. */
export interface Traffic {
  readonly sides: readonly [client: TrafficSide, server: TrafficSide];
  /** Transport service of the client's requests. */
  readonly service: PerfConnection;
  /** Whether the requests of both sides use this service: otherwise counters of a device mix those of two. */
  readonly hasOneService: boolean;
  /** Whether payload goes in both directions. */
  readonly isBothWays: boolean;
  /** QPs over which the messages of a side are distributed. */
  readonly qpCount: number;
  /** Options that have no effect. */
  readonly idleOptions: readonly string[];
  /** The most payload per second that a cable carries; left out for messages of one verb. */
  readonly linkBound?: (cable: CableFigures) => number;
}

/** A row as the columns of a table show it. */
interface ShownRow {
  readonly args: PerfArgs;
  readonly result: PerfResult;
  /** Delivered to each host. */
  readonly interrupts: readonly number[];
}

export interface ResultTable {
  /** For a terminal. */
  readonly head: string;
  lineOf(row: ShownRow): string;
  /** For a page. */
  readonly title: string;
  readonly heads: readonly string[];
  cellsOf(row: ShownRow): string[];
}

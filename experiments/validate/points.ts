/**
 * What is run for a row of the measurements, as plain data: a workload and a machine. A point that several rows need is run
 * once; what it gives is a handful of figures by name, of which each row takes its own.
 */
import type { ParameterValues } from '../../machine/profile/index.ts';
import type { Workload as PerfWorkload } from '../workloads/index.ts';

export interface PointMachine {
  readonly profile: string;
  readonly set?: ParameterValues;
}

/** perftest's test, in the words of `hca perf`. */
export interface PerfPoint {
  readonly kind: 'perf';
  readonly test: PerfWorkload;
}

/** Threads that each have QPs to the other host and keep them busy. */
export interface StreamPlan {
  readonly transport: 'RC' | 'UC' | 'UD';
  readonly verb: 'write' | 'read' | 'send' | 'atomic';
  readonly sizeBytes: number;
  /** Messages of at most so many bytes go inline. */
  readonly inlineBytes: number;
  /** Threads of a host, each on a core of its own. */
  readonly threads: number;
  readonly qpsPerThread: number;
  /** Messages of one thread. */
  readonly messages: number;
  /** Messages that a thread has in flight, over all of its QPs. */
  readonly window: number;
  /** Whether all of a window complete before the next is posted, or each makes room for one. */
  readonly waits: 'each' | 'all';
  /** A QP asks for one completion for so many messages. */
  readonly signalEvery: number;
  /** Work requests that one call posts. */
  readonly list: number;
  /** The QP of the next message: in turn, or any. */
  readonly order: 'turn' | 'random';
  /** Memory at the responder, of which each message takes a place at random; 0: one place for each QP. */
  readonly regionBytes: number;
  /** Both hosts send, not only host 0. */
  readonly isBothWays: boolean;
  /** The source's library posts single requests by BlueFlame whatever they carry. */
  readonly isBlueFlameForAll: boolean;
}

interface StreamPoint {
  readonly kind: 'stream';
  readonly plan: StreamPlan;
}

/** ibv_reg_mr and ibv_dereg_mr of one buffer. */
export interface RegistrationPoint {
  readonly kind: 'registration';
  readonly pages: number;
}

/** A SEND that waits for the timers of its QP: for a receive that comes too late, or for a responder that never answers. */
export interface TimerPoint {
  readonly kind: 'timer';
  readonly waits: 'receive' | 'responder';
  readonly rnrTimerCode: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
}

/** The measuring device of pcie-bench in the host's slot, which reads and writes memory. */
export interface SlotPoint {
  readonly kind: 'slot';
  /** By commands of its threads, or by its DMA engine. */
  readonly via: 'command' | 'engine';
  readonly access: 'read' | 'write' | 'both' | 'writeThenRead';
  readonly sizeBytes: number;
  /** Accesses in flight: 1 gives latencies, many give bandwidths. */
  readonly window: number;
}

/** Results of the query verbs. */
interface DevicePoint {
  readonly kind: 'device';
}

/** Figures that follow from the configuration and the formats alone. */
interface ConstantPoint {
  readonly kind: 'constant';
}

export type Workload =
  | PerfPoint
  | StreamPoint
  | RegistrationPoint
  | TimerPoint
  | SlotPoint
  | DevicePoint
  | ConstantPoint;

export interface Point {
  readonly machine: PointMachine;
  readonly workload: Workload;
}

/** Figures by name, each in the unit that its name ends with. */
export type Figures = Readonly<Record<string, number>>;

/** Equal for points that are the same. */
export const pointKey = (point: Point): string => JSON.stringify(point);

/**
 * The point that runs for a row of the measurements, as plain data: a workload and a machine. A point that several rows
 * need runs once; it returns a few named figures, from which each row takes its own.
 */
import type { ParameterValues } from '../../machine/profile/index.ts';
import type { FabricArgs, Workload as PerfWorkload } from '../workloads/index.ts';

export interface PointMachine {
  readonly profile: string;
  readonly set?: ParameterValues;
  /** Hosts, switches and cables, by the name of a ready-made fabric; left out: a pair. */
  readonly topology?: string;
}

/** A perftest test, with the options of `hca perf`. */
export interface PerfPoint {
  readonly kind: 'perf';
  readonly test: PerfWorkload;
}

/** Threads with QPs to the other host that keep them busy. */
export interface StreamPlan {
  readonly transport: 'RC' | 'UC' | 'UD';
  readonly verb: 'write' | 'read' | 'send' | 'atomic';
  readonly sizeBytes: number;
  /** Messages up to this many bytes are sent inline. */
  readonly inlineBytes: number;
  /** Threads of a host, each on a core of its own. */
  readonly threads: number;
  /** Whether the threads of a host belong to one process; left out: each has its own. */
  readonly isOneProcess?: boolean;
  readonly qpsPerThread: number;
  /** Messages of one thread. */
  readonly messages: number;
  /** Messages of a thread in flight, over all of its QPs. */
  readonly window: number;
  /** Whether a whole window completes before the next is posted, or each completion makes room for one message. */
  readonly waits: 'each' | 'all';
  /** A QP requests one completion for this many messages. */
  readonly signalEvery: number;
  /** Work requests that one call posts. */
  readonly list: number;
  /** Order of QPs for successive messages: rotation, or random. */
  readonly order: 'turn' | 'random';
  /** Memory at the responder, in which each message uses a random place; 0: one place for each QP. */
  readonly regionBytes: number;
  /** Whether both hosts send, not only host 0. */
  readonly isBothWays: boolean;
  /** Whether the source's library posts single requests by BlueFlame regardless of their contents. */
  readonly isBlueFlameForAll: boolean;
  /** Path MTU; the port's if left out. */
  readonly pathMtuBytes?: number;
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

/** A SEND that waits for the timers of its QP: for a receive posted too late, or for a responder that never answers. */
export interface TimerPoint {
  readonly kind: 'timer';
  readonly waits: 'receive' | 'responder';
  readonly rnrTimerCode: number;
  readonly timeoutCode: number;
  readonly retryCount: number;
}

/** The loop of ibv_rc_pingpong: every SEND requests a completion, and with events each poll follows one. */
export interface PingPongPoint {
  readonly kind: 'pingPong';
  readonly sizeBytes: number;
  readonly inlineBytes: number;
  readonly isByEvents: boolean;
}

/**
 * Memory that accesses reach at random places, and what the host's cache of `cacheBytes` holds of it before the first.
 */
export interface SlotWindow {
  readonly bytes: number;
  readonly cacheBytes: number;
  /** Nothing; what cores touched last; what the device wrote last. */
  readonly cached: 'nothing' | 'byHost' | 'byDevice';
}

/** The measuring device of pcie-bench in the host's slot, which reads and writes memory. */
export interface SlotPoint {
  readonly kind: 'slot';
  /** Whether its threads' commands or its DMA engine access memory. */
  readonly via: 'command' | 'engine';
  readonly access: 'read' | 'write' | 'both' | 'writeThenRead';
  readonly sizeBytes: number;
  /** Accesses in flight: 1 gives latencies, many give bandwidths. */
  readonly window: number;
  /** Left out: a few pages, in turn, all held by a cache. */
  readonly memory?: SlotWindow;
}

/** Traffic of `hca fabric` over all hosts of the machine's topology. */
export interface FabricPoint {
  readonly kind: 'fabric';
  readonly args: Omit<FabricArgs, 'hostCount'>;
}

/** A key-value store: its server on the last host of the machine's topology, its clients on the others in turn. */
export interface StorePoint {
  readonly kind: 'store';
  readonly test: PerfWorkload;
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
  | PingPongPoint
  | SlotPoint
  | FabricPoint
  | StorePoint
  | DevicePoint
  | ConstantPoint;

export interface Point {
  readonly machine: PointMachine;
  readonly workload: Workload;
}

/** Figures by name, each in the unit at the end of its name. */
export type Figures = Readonly<Record<string, number>>;

/** Equal for points that are the same. */
export const pointKey = (point: Point): string => JSON.stringify(point);

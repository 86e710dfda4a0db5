/** A port of an Ethernet switch, what a switch counts there, and the parts of a switch that its steps share. */
import { NEVER, type Picoseconds } from '../../base/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import { CongestionMarker } from './congestion-marker.ts';
import { headerDurationPs } from './cut-through.ts';
import { EgressQueues } from './egress-queues.ts';
import type { EthernetSwitchConfig } from './ethernet-parameters.ts';
import { PauseWatchdog } from './pause-watchdog.ts';
import { PRIORITY_COUNT, type SharedBuffer } from './shared-buffer.ts';
import type { RouteRefusal, StationRoutes } from './station-routes.ts';
import { FrameQueue, type StoredFrame, type StoredFrames } from './stored-frames.ts';
import type { SwitchTap } from './switch-tap.ts';

/** Frames that came by a port and left by none, by reason; a switch that cuts through finds some with a wrong FCS. */
export type InputDrops = Record<RouteRefusal | 'noRoom', number> & { wrongFcs?: number };

export class EthernetSwitchPort {
  /** From 1. */
  readonly number: number;
  readonly port: EthernetPort;
  readonly queues: EgressQueues;
  readonly marker: CongestionMarker;
  readonly watchdog: PauseWatchdog;
  /** Frames that came by it and have not been admitted yet. */
  readonly pipeline = new FrameQueue();
  readonly drops: InputDrops = { noRoute: 0, ownPort: 0, linkLocal: 0, noRoom: 0 };
  /** Least time from a frame's first bit until its addresses and type have come. */
  readonly headerPs: Picoseconds;
  /** Frames that came by it and began to leave before their last bit had come. */
  cutCount = 0;
  /**
   * Frames that came by it and wait, with those in the pipeline, and the most so far; and all that have left by every
   * output.
   */
  waiting = 0;
  waitingMax = 0;
  done = 0;
  /** Copies for this output that its queue had no room for. */
  queueDrops = 0;
  /** The frame that leaves by this output, until when. */
  sending: StoredFrame | undefined;
  sendsUntilPs = NEVER;
  /** Classes of traffic whose sender is stopped: bit n is class n. */
  stopped = 0;

  constructor(
    number: number,
    port: EthernetPort,
    config: EthernetSwitchConfig,
    seed: number,
    stream: string,
  ) {
    this.number = number;
    this.port = port;
    this.queues = new EgressQueues(config.scheduling);
    this.marker = new CongestionMarker(config, seed, stream);
    this.watchdog = new PauseWatchdog(config);
    this.headerPs = headerDurationPs(port.config);
    if (config.forwarding === 'cut-through') this.drops.wrongFcs = 0;
  }
}

/** Parts of a switch that admission and departure of frames share. */
export interface EthernetSwitchParts {
  readonly config: EthernetSwitchConfig;
  readonly latencyPs: Picoseconds;
  readonly cutsThrough: boolean;
  readonly routes: StationRoutes;
  readonly buffer: SharedBuffer;
  readonly frames: StoredFrames;
  /** By port from 1; undefined for a port without a cable. */
  readonly ports: readonly (EthernetSwitchPort | undefined)[];
  /** The ports with a cable: inputs of frames are places among them. */
  readonly used: readonly EthernetSwitchPort[];
  /** Observes frames; undefined: no observer. */
  tap: SwitchTap<StoredFrame> | undefined;
}

/** Number of a queue of an output, from 1. */
export const queueOf = (output: number, priority: number): number => output * PRIORITY_COUNT + priority;

/** Statistics of one port: frames that came by it, and the queues of those that leave by it. */
export interface SwitchPortStatistics {
  readonly drops: Readonly<InputDrops>;
  /**
   * Frames that came by it and wait, those in the pipeline among them, and the most so far; and frames that all outputs
   * have sent.
   */
  readonly waiting: number;
  readonly waitingMax: number;
  readonly inPipeline: number;
  /** Frames that came by it and were cut through; only in a switch that cuts through. */
  readonly cutFrames?: number;
  readonly done: number;
  /** Most bytes of frames that came by it. */
  readonly inputBytesMax: number;
  /** Frames dropped from its queues because a pause did not end. */
  readonly watchdogDrops: number;
  /** Frames in its queues, the longest queue so far, frames that a queue had no room for, and frames marked. */
  readonly queued: number;
  readonly queuedBytes: number;
  readonly queuedBytesMax: number;
  readonly queueDrops: number;
  readonly marked: number;
}

/**
 * An Ethernet switch: frames pass the pipeline, share one buffer, and wait in the queue of their output and priority.
 *
 *     ═▶ port ─▶ pipeline ─▶ routes ─▶ room in the shared buffer? ─▶ queues of the output ─▶ port ═▶
 *          ▲     (latency)                │ no: dropped             │ long: marked   ▲
 *          └── PAUSE or PFC ◀── share of the input is full          └── paused by the far end?
 *
 * Promises:
 * - Store and forward: a frame's first byte leaves `latencyNs` after its last byte has arrived, if the output is free.
 *   Cut-through: `latencyNs` after its first byte, if cut-through.ts permits it; otherwise the switch stores the frame.
 * - Every frame leaves, waits, or is dropped and counted by reason: no route, no room, a full queue, a link that is
 *   down, or a wrong FCS found before the frame began to leave.
 * - Lossless frames are dropped only if their sender does not stop in time, or if a pause does not end.
 * - Frames of one flow keep their order.
 * - A decision depends on earlier instants alone, and on the order of ports: the order of records within an instant has no
 *   effect. A frame that came is admitted later by the latency, all of an instant by one step.
 *
 * Sources: IEEE 802.1Q, clauses 8 and 36; IEEE 802.3-2018, annex 31B and 31D.
 */
import { ConfigurationError, InvariantError, NEVER, nsToPs, type Picoseconds } from '../../base/index.ts';
import type { BlockState, ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import {
  type EthernetConfig,
  EthernetPort,
  ethernetFrameBytesMax,
  type PacketArrival,
  withTag,
} from '../../wire/index.ts';
import { CongestionMarker } from './congestion-marker.ts';
import { headerDurationPs, isFaster, isIdle } from './cut-through.ts';
import { bytesOf, EgressQueues, NO_PRIORITY } from './egress-queues.ts';
import type { EthernetSwitchConfig } from './ethernet-parameters.ts';
import { priorityOf } from './frame-fields.ts';
import { switchHeadroomBytesOf } from './headroom.ts';
import { PauseWatchdog } from './pause-watchdog.ts';
import { checkSharedBuffer, PRIORITY_COUNT, SharedBuffer } from './shared-buffer.ts';
import { type RouteRefusal, StationRoutes } from './station-routes.ts';
import { FrameQueue, type StoredFrame, StoredFrames } from './stored-frames.ts';
import type { SwitchTap } from './switch-tap.ts';

/** The cable in a port of a switch. */
export interface EthernetSwitchCable {
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  /** Its rate, length and frames. */
  readonly ethernet: EthernetConfig;
  /** When frames sent from here arrive: `head` at a cut-through switch; left out: `tail`. */
  readonly sentArrival?: PacketArrival;
}

export interface EthernetSwitchSetup {
  readonly lp: LogicalProcess;
  readonly config: EthernetSwitchConfig;
  /** Rate and frames of all cables. */
  readonly ethernet: EthernetConfig;
  /** Number of the switch: part of the MACs of its ports and of the hash of flows. */
  readonly number: number;
  /** Seed of everything that is drawn at random. */
  readonly seed: number;
  /** The cables, by port from 1; undefined for a port without one. */
  readonly cables: readonly (EthernetSwitchCable | undefined)[];
}

/** Frames that came by a port and left by none, by reason; a switch that cuts through finds some with a wrong FCS. */
export type InputDrops = Record<RouteRefusal | 'noRoom', number> & { wrongFcs?: number };

/** Locally administered MACs of a switch's ports: source of its PAUSE frames. */
const LOCAL_MACS = 0x0200_0000_0000;
const PORTS_PER_SWITCH = 256;

class SwitchPort {
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
  /** Frames that came by it and wait, with those in the pipeline, and the most so far; and all that have left by every output. */
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

export class EthernetSwitch {
  readonly routes: StationRoutes;
  readonly buffer: SharedBuffer;
  /** Copies made for several outputs: frames that leave in addition to those that came. */
  copyCount = 0;
  /** Observes frames; left out: no observer. */
  tap: SwitchTap<StoredFrame> | undefined = undefined;
  readonly #lp: LogicalProcess;
  readonly #config: EthernetSwitchConfig;
  readonly #latencyPs: Picoseconds;
  readonly #cutsThrough: boolean;
  readonly #frames: StoredFrames;
  /** By port from 1; undefined for a port without a cable. */
  readonly #ports: readonly (SwitchPort | undefined)[];
  readonly #used: readonly SwitchPort[];
  readonly #stepEvent: number;
  #stepDuePs = NEVER;

  /** Connects itself to `lp`. Its ports are enabled: links come up when their other ends are enabled, too. */
  constructor(setup: EthernetSwitchSetup) {
    const { lp, config, ethernet, number, cables } = setup;
    this.#lp = lp;
    this.#config = config;
    this.#latencyPs = nsToPs(config.latencyNs);
    this.#cutsThrough = config.forwarding === 'cut-through';
    this.routes = new StationRoutes(config, config.hashSeed + number);
    this.#frames = new StoredFrames(ethernetFrameBytesMax(withTag(ethernet)));
    this.#ports = cables.map((cable, index) => cable && this.#portAt(index, cable, setup));
    this.#used = this.#ports.flatMap((port) => port ?? []);
    this.buffer = new SharedBuffer(
      config,
      this.#used.length,
      switchHeadroomBytesOf(
        cables.flatMap((cable) => cable?.ethernet ?? []),
        config,
      ),
    );
    this.#stepEvent = lp.queue.addHandler(() => this.#stepDue());
    lp.addTimeKeeper(this);
    for (const [input, own] of this.#used.entries()) this.#connect(input, own);
  }

  #portAt(index: number, cable: EthernetSwitchCable, setup: EthernetSwitchSetup): SwitchPort {
    const { lp, config, number, seed } = setup;
    const { writer, reader, ethernet, sentArrival } = cable;
    const stream = `${lp.name}.${index + 1}`;
    const port = new EthernetPort({
      lp,
      // Frames leave the receive fifo at once, and are sent one at a time.
      config: { ...withTag(ethernet), transmitAheadBytes: 0, receiveFifoFrames: 1 },
      writer,
      reader,
      seed,
      stream,
      controlMac: LOCAL_MACS + number * PORTS_PER_SWITCH + index + 1,
      slotCount: 1,
      sentArrival,
    });
    return new SwitchPort(index + 1, port, config, seed, stream);
  }

  #connect(input: number, { port }: SwitchPort): void {
    port.connect({
      receiver: {
        frameArrived: (slot, tailDelayPs, isCorrupted) =>
          this.#frameArrived(input, slot, tailDelayPs, isCorrupted),
      },
      sender: { spaceFreed: () => this.#stepBy(this.#lp.nowPs) },
      // A link that goes down ends the wait for a pause: what waits for it is discarded.
      link: { linkChanged: (_isUp, nowPs) => this.#stepBy(nowPs + 1) },
    });
    const { flowControl, losslessPriorities } = this.#config;
    if (flowControl === 'pause') port.flowControl.set(true, true);
    if (flowControl === 'pfc') port.flowControl.priorities.set(losslessPriorities, losslessPriorities);
    port.setEnabled(true);
  }

  /** The ports by number from 1; undefined for a port without a cable. */
  get ports(): readonly (EthernetPort | undefined)[] {
    return this.#ports.map((own) => own?.port);
  }

  /** Statistics of a port, from 1, with a cable. */
  statisticsOf(number: number): SwitchPortStatistics {
    const own = this.#ports[number - 1]!;
    const { drops, waiting, waitingMax, done, queueDrops, queues, marker } = own;
    const { bytesMax } = this.buffer.heldBy(this.#used.indexOf(own));
    return {
      drops,
      waiting,
      waitingMax,
      done,
      queueDrops,
      watchdogDrops: own.watchdog.dropCount,
      queued: queues.count,
      queuedBytes: queues.bytes,
      queuedBytesMax: queues.bytesMax,
      marked: marker.markedCount,
      inputBytesMax: bytesMax,
      inPipeline: own.pipeline.count,
      ...(this.#cutsThrough ? { cutFrames: own.cutCount } : {}),
    };
  }

  /** Bytes of the frames in the queues and on their way out, counted one by one: for a check of the buffer's own count. */
  countQueuedBytes(): number {
    return [...this.#queuedFrames()].reduce((sum, frame) => sum + bytesOf(frame), 0);
  }

  /** Each frame in the queues and on its way out, once. */
  #queuedFrames(): ReadonlySet<StoredFrame> {
    return new Set(
      this.#used.flatMap(({ queues, sending }) => [...queues.frames(), ...(sending ? [sending] : [])]),
    );
  }

  inspect(): BlockState {
    return {
      routes: this.routes.inspect(),
      buffer: this.buffer.inspect(),
      ports: this.#ports.flatMap((own, index) =>
        own === undefined
          ? []
          : [
              {
                port: index + 1,
                link: own.port.inspect(),
                waiting: own.waiting,
                queues: own.queues.inspect(),
              },
            ],
      ),
    };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.#stepDuePs -= ps;
    this.routes.rebase(ps);
    for (const frame of this.#queuedFrames()) frame.tailPs -= ps;
    for (const own of this.#used) {
      own.pipeline.rebase(ps);
      own.watchdog.rebase(ps);
      own.sendsUntilPs -= ps;
    }
  }

  // ---- inputs ----

  /** Handles a frame: all of it has arrived, or its first bit if `tailDelayPs` is not 0. */
  #frameArrived(input: number, slot: number, tailDelayPs: Picoseconds, isCorrupted: boolean): void {
    const own = this.#used[input]!;
    const { port, pipeline } = own;
    const { nowPs } = this.#lp;
    const readyPs = nowPs + (tailDelayPs === 0 ? this.#latencyPs : Math.max(this.#latencyPs, own.headerPs));
    const frame = this.#frames.store(port.rxBytes, port.frameStart(slot), port.frameBytes(slot), input, {
      readyPs,
      tailPs: nowPs + tailDelayPs,
      isCorrupted,
    });
    pipeline.add(frame);
    this.tap?.arrived(frame, own.number, readyPs);
    port.consume(slot);
    own.waiting++;
    own.waitingMax = Math.max(own.waitingMax, own.waiting);
    this.#stepBy(readyPs);
  }

  // ---- steps ----

  #stepBy(ps: Picoseconds): void {
    if (ps >= this.#stepDuePs) return;
    this.#stepDuePs = ps;
    this.#lp.queue.schedule(ps, this.#stepEvent);
  }

  /** All that is due at this instant: frames that have left make room, then frames are admitted, then outputs send. */
  #stepDue(): void {
    const { nowPs } = this.#lp;
    if (nowPs < this.#stepDuePs) return;
    this.#stepDuePs = NEVER;
    for (const own of this.#used) if (own.sendsUntilPs <= nowPs) this.#hasLeft(own);
    for (const own of this.#used) this.#admitFrom(own, nowPs);
    let nextPs = NEVER;
    for (const own of this.#used) {
      this.#watch(own, nowPs);
      this.#serve(own, nowPs);
      nextPs = Math.min(nextPs, own.sendsUntilPs, own.pipeline.head?.readyPs ?? NEVER);
      if (own.watchdog.duePs > nowPs) nextPs = Math.min(nextPs, own.watchdog.duePs);
    }
    if (this.tap !== undefined) this.#noteWaits(this.tap, nowPs);
    if (nextPs < NEVER) this.#stepBy(nextPs);
  }

  /** Reports for which cause the first frame of each queue waits. */
  #noteWaits(tap: SwitchTap<StoredFrame>, nowPs: Picoseconds): void {
    for (const { number, port, queues, sending } of this.#used) {
      const { flowControl } = port;
      for (let priority = 0; priority < PRIORITY_COUNT; priority++) {
        const isPaused =
          Math.max(flowControl.pausedUntilPs, flowControl.priorities.pausedUntilPs(priority)) > nowPs;
        const cause = sending !== undefined ? 'output' : isPaused ? 'pause' : 'link';
        tap.waits(queueOf(number, priority), queues.has(priority) ? cause : undefined, number);
      }
    }
    tap.settled();
  }

  /** The last byte of a frame has left by this output. */
  #hasLeft(output: SwitchPort): void {
    const frame = output.sending!;
    output.sending = undefined;
    output.sendsUntilPs = NEVER;
    output.queues.left(frame);
    if (--frame.copiesLeft === 0) this.#finish(frame);
  }

  /** All outputs have sent a frame. */
  #finish(frame: StoredFrame): void {
    const { input, priority } = frame;
    const own = this.#used[input]!;
    this.buffer.release(input, priority, bytesOf(frame));
    own.waiting--;
    own.done++;
    this.tap?.released(frame);
    this.#frames.release(frame);
    if (own.stopped !== 0 && this.buffer.isLossless(priority) && this.buffer.mayResume(input, priority))
      this.#stopSender(own, priority, false);
  }

  #admitFrom(own: SwitchPort, nowPs: Picoseconds): void {
    for (let { head } = own.pipeline; head !== undefined && head.readyPs <= nowPs; head = own.pipeline.head) {
      const reason = this.#admit(own, head, nowPs);
      if (reason === 'isStored') return;
      own.pipeline.shift();
      if (reason === undefined) continue;
      own.drops[reason]++;
      own.waiting--;
      this.tap?.dropped(head, reason);
      this.tap?.released(head);
      this.#frames.release(head);
    }
  }

  /**
   * Puts a frame into the queues of its outputs. Returns the reason if it leaves by none, or that it must be stored
   * first.
   */
  #admit(own: SwitchPort, frame: StoredFrame, nowPs: Picoseconds): keyof InputDrops | 'isStored' | undefined {
    const { input, bytes, frameBytes } = frame;
    const ports = frame.outputs ?? this.#routeOf(own, frame, nowPs);
    if (typeof ports === 'string') return ports;
    frame.priority = priorityOf(bytes, frameBytes, this.#config.trust);
    const isCut = this.#cutsThrough && frame.outputs === undefined;
    if (isCut && !this.#canCutThrough(own, frame, ports, nowPs)) return this.#storeWhole(frame, ports);
    if (!isCut && frame.isCorrupted) return 'wrongFcs';
    const limitBytes = this.buffer.queueLimitBytes;
    if (!this.buffer.take(input, frame.priority, bytesOf(frame))) return 'noRoom';
    this.copyCount += ports.length - 1;
    for (const number of ports) this.#enqueue(frame, this.#ports[number - 1]!, limitBytes);
    if (isCut && frame.copiesLeft > 0) own.cutCount++;
    if (frame.copiesLeft === 0) this.#finish(frame);
    else if (this.buffer.isLossless(frame.priority) && this.buffer.mustStop(input, frame.priority))
      this.#stopSender(own, frame.priority, true);
    return undefined;
  }

  /** Outputs of a frame. One whose FCS proves wrong teaches nothing: hardware learns from complete frames. */
  #routeOf(own: SwitchPort, frame: StoredFrame, nowPs: Picoseconds): readonly number[] | RouteRefusal {
    if (!frame.isCorrupted) this.routes.learn(frame, own.number, nowPs);
    return this.routes.portsOf(frame, own.number, nowPs);
  }

  /** Whether a frame may leave by all its outputs while it still arrives. */
  #canCutThrough(
    { port: { config } }: SwitchPort,
    { priority }: StoredFrame,
    ports: readonly number[],
    nowPs: Picoseconds,
  ): boolean {
    return ports.every((number) => {
      const { port, sending, queues } = this.#ports[number - 1]!;
      const hasFrames = sending !== undefined || queues.count > 0;
      return !hasFrames && !isFaster(port.config, config) && isIdle(port, priority, nowPs);
    });
  }

  /** A frame awaits its last bit, then the latency, as in a switch that stores all of them. */
  #storeWhole(frame: StoredFrame, ports: readonly number[]): 'isStored' {
    frame.outputs = ports;
    frame.readyPs = frame.tailPs + this.#latencyPs;
    this.tap?.stores(frame, frame.tailPs, frame.readyPs);
    return 'isStored';
  }

  /** Puts a frame into the queue of one output, or drops that copy if the queue of a lossy priority is too long. */
  #enqueue(frame: StoredFrame, output: SwitchPort, limitBytes: number): void {
    const { bytes, frameBytes, priority } = frame;
    const { queues } = output;
    const queueBytes = queues.bytesOf(priority);
    if (!this.buffer.isLossless(priority) && queueBytes + bytesOf(frame) > limitBytes) {
      output.queueDrops++;
      this.tap?.dropped(frame, 'queueFull', output.number);
      return;
    }
    // A switch that cuts through marks a frame when it leaves: only then the rest of the queue is known.
    if (!this.#cutsThrough) output.marker.passes(bytes, frameBytes, queueBytes);
    frame.copiesLeft++;
    queues.add(frame);
  }

  /** Stops the sender of a class of traffic at an input, or lets it resume. */
  #stopSender(own: SwitchPort, priority: number, isToStop: boolean): void {
    const bit = 1 << this.buffer.classOf(priority);
    if (((own.stopped & bit) !== 0) === isToStop) return;
    own.stopped ^= bit;
    this.tap?.stops(own.number, priority, isToStop);
    const { flowControl } = own.port;
    if (this.#config.flowControl === 'pause') flowControl.stop(isToStop);
    else flowControl.priorities.stop(priority, isToStop);
  }

  /** Drops the queues of an output that wait in a pause for too long. */
  #watch(own: SwitchPort, nowPs: Picoseconds): void {
    const { watchdog, queues, port } = own;
    const { flowControl } = port;
    if (flowControl.anyPausedUntilPs <= nowPs && !watchdog.isWatching) return;
    for (let priority = 0; priority < PRIORITY_COUNT; priority++) {
      const untilPs = Math.max(flowControl.pausedUntilPs, flowControl.priorities.pausedUntilPs(priority));
      if (untilPs <= nowPs) watchdog.resumes(priority);
      else if (!queues.has(priority)) watchdog.goesOn(priority);
      else if (watchdog.waits(priority, nowPs)) this.#dropQueue(own, priority);
    }
  }

  #dropQueue({ number, port, queues, watchdog }: SwitchPort, priority: number): void {
    for (const frame of queues.drop(priority)) {
      watchdog.dropCount++;
      this.tap?.dropped(frame, 'pauseWatchdog', number);
      if (--frame.copiesLeft === 0) this.#finish(frame);
    }
    if (queues.count === 0) port.flowControl.givesUp();
  }

  /** Sends the next frame of an output that is free. */
  #serve(own: SwitchPort, nowPs: Picoseconds): void {
    const { port, queues } = own;
    if (own.sending !== undefined || queues.count === 0) return;
    const priority = queues.next((candidate) => !port.canTransmit(nowPs, candidate));
    if (priority === NO_PRIORITY) return;
    const frame = queues.take(priority);
    own.watchdog.goesOn(priority);
    own.sending = frame;
    if (this.#cutsThrough)
      own.marker.passes(frame.bytes, frame.frameBytes, queues.bytesOf(priority) - bytesOf(frame));
    const reservations = reservationsOf(port);
    port.send(frame.bytes, 0, frame.frameBytes, nowPs, false, frame.isCorrupted);
    // A frame that is discarded, or that a fault holds back, reserves nothing: it may still be arriving when it is
    // released.
    own.sendsUntilPs = Math.max(nowPs + 1, port.isUp ? port.freePs : 0);
    if (reservationsOf(port) > reservations && frame.tailPs > own.sendsUntilPs)
      throw new InvariantError(
        'last bit of a frame',
        frame.tailPs,
        `at most ${own.sendsUntilPs}, when it leaves`,
      );
    this.tap?.leaves(frame, {
      output: own.number,
      queue: queueOf(own.number, priority),
      untilPs: own.sendsUntilPs,
    });
  }
}

/** Frames for which a port reserved its link as soon as it was handed them. */
const reservationsOf = ({ transmitted, rearranged }: EthernetPort): number =>
  transmitted.frames - rearranged.heldBackFrames;

/** Number of a queue of an output, from 1. */
const queueOf = (output: number, priority: number): number => output * PRIORITY_COUNT + priority;

/**
 * Checks the configuration of a switch with these cables.
 * @throws ConfigurationError
 */
export function checkEthernetSwitch(config: EthernetSwitchConfig, cables: readonly EthernetConfig[]): void {
  checkSharedBuffer(config, cables.length, switchHeadroomBytesOf(cables, config));
  if (config.marksCongestion && config.ecnMinBytes > config.ecnMaxBytes)
    throw new ConfigurationError(
      'switch.ethernet.ecnMinBytes',
      config.ecnMinBytes,
      `at most ${config.ecnMaxBytes}, switch.ethernet.ecnMaxBytes`,
    );
}

/** Statistics of one port: frames that came by it, and the queues of those that leave by it. */
export interface SwitchPortStatistics {
  readonly drops: Readonly<InputDrops>;
  /** Frames that came by it and wait, those in the pipeline among them, and the most so far; and frames that all outputs have sent. */
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

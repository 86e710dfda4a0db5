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
import { ConfigurationError, NEVER, nsToPs, type Picoseconds } from '../../base/index.ts';
import type { BlockState, ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import {
  type EthernetConfig,
  EthernetPort,
  ethernetFrameBytesMax,
  type PacketArrival,
  withTag,
} from '../../wire/index.ts';
import { bytesOf } from './egress-queues.ts';
import type { EthernetSwitchConfig } from './ethernet-parameters.ts';
import {
  type EthernetSwitchParts,
  EthernetSwitchPort,
  queueOf,
  type SwitchPortStatistics,
} from './ethernet-switch-port.ts';
import { FrameAdmission } from './frame-admission.ts';
import { FrameDepartures } from './frame-departures.ts';
import { switchHeadroomBytesOf } from './headroom.ts';
import { checkSharedBuffer, PRIORITY_COUNT, SharedBuffer } from './shared-buffer.ts';
import { StationRoutes } from './station-routes.ts';
import { type StoredFrame, StoredFrames } from './stored-frames.ts';
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

/** Locally administered MACs of a switch's ports: source of its PAUSE frames. */
const LOCAL_MACS = 0x0200_0000_0000;
const PORTS_PER_SWITCH = 256;

export class EthernetSwitch {
  readonly routes: StationRoutes;
  readonly buffer: SharedBuffer;
  readonly #lp: LogicalProcess;
  readonly #parts: EthernetSwitchParts;
  readonly #ports: EthernetSwitchParts['ports'];
  readonly #used: EthernetSwitchParts['used'];
  readonly #admission: FrameAdmission;
  readonly #departures: FrameDepartures;
  readonly #stepEvent: number;
  #stepDuePs = NEVER;

  /** Connects itself to `lp`. Its ports are enabled: links come up when their other ends are enabled, too. */
  constructor(setup: EthernetSwitchSetup) {
    const { lp, config, ethernet, number, cables } = setup;
    this.#lp = lp;
    this.#ports = cables.map((cable, index) => cable && this.#portAt(index, cable, setup));
    this.#used = this.#ports.flatMap((port) => port ?? []);
    this.routes = new StationRoutes(config, config.hashSeed + number);
    const fitted = cables.flatMap((cable) => cable?.ethernet ?? []);
    this.buffer = new SharedBuffer(config, this.#used.length, switchHeadroomBytesOf(fitted, config));
    this.#parts = {
      config,
      latencyPs: nsToPs(config.latencyNs),
      cutsThrough: config.forwarding === 'cut-through',
      ...{ routes: this.routes, buffer: this.buffer, ports: this.#ports, used: this.#used },
      frames: new StoredFrames(ethernetFrameBytesMax(withTag(ethernet))),
      tap: undefined,
    };
    this.#departures = new FrameDepartures(this.#parts);
    this.#admission = new FrameAdmission(this.#parts, this.#departures);
    this.#stepEvent = lp.queue.addHandler(() => this.#stepDue());
    lp.addTimeKeeper(this);
    for (const [input, own] of this.#used.entries()) this.#connect(input, own);
  }

  /** Copies made for several outputs: frames that leave in addition to those that came. */
  get copyCount(): number {
    return this.#admission.copyCount;
  }

  /** Observes frames; undefined: no observer. */
  get tap(): SwitchTap<StoredFrame> | undefined {
    return this.#parts.tap;
  }

  set tap(tap: SwitchTap<StoredFrame> | undefined) {
    this.#parts.tap = tap;
  }

  #portAt(index: number, cable: EthernetSwitchCable, setup: EthernetSwitchSetup): EthernetSwitchPort {
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
    return new EthernetSwitchPort(index + 1, port, config, seed, stream);
  }

  #connect(input: number, { port }: EthernetSwitchPort): void {
    port.connect({
      receiver: {
        frameArrived: (slot, tailDelayPs, isCorrupted) =>
          this.#frameArrived(input, slot, tailDelayPs, isCorrupted),
      },
      sender: { spaceFreed: () => this.#stepBy(this.#lp.nowPs) },
      // A link that goes down ends the wait for a pause: what waits for it is discarded.
      link: { linkChanged: (_isUp, nowPs) => this.#stepBy(nowPs + 1) },
    });
    const { flowControl, losslessPriorities } = this.#parts.config;
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
      ...(this.#parts.cutsThrough ? { cutFrames: own.cutCount } : {}),
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
    const readyPs =
      nowPs + (tailDelayPs === 0 ? this.#parts.latencyPs : Math.max(this.#parts.latencyPs, own.headerPs));
    const frame = this.#parts.frames.store(
      port.rxBytes,
      port.frameStart(slot),
      port.frameBytes(slot),
      input,
      {
        readyPs,
        tailPs: nowPs + tailDelayPs,
        isCorrupted,
        isSentAgain: port.isSentAgain(slot),
      },
    );
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
    for (const own of this.#used) if (own.sendsUntilPs <= nowPs) this.#departures.hasLeft(own);
    for (const own of this.#used) this.#admission.admitFrom(own, nowPs);
    let nextPs = NEVER;
    for (const own of this.#used) {
      this.#departures.watch(own, nowPs);
      this.#departures.serve(own, nowPs);
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
}

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

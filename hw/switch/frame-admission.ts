/**
 * Frames that leave the pipeline of an Ethernet switch: outputs, room in the shared buffer, and a queue of each output.
 *
 *     pipeline ─▶ routes ─▶ cut through? ─▶ room in the shared buffer? ─▶ queues of the outputs
 *                               └─ no: stored whole, and admitted later
 */
import type { Picoseconds } from '../../base/index.ts';
import { isFaster, isIdle } from './cut-through.ts';
import { bytesOf } from './egress-queues.ts';
import type { EthernetSwitchParts, EthernetSwitchPort, InputDrops } from './ethernet-switch-port.ts';
import type { FrameDepartures } from './frame-departures.ts';
import { priorityOf } from './frame-fields.ts';
import type { RouteRefusal } from './station-routes.ts';
import type { StoredFrame } from './stored-frames.ts';

type Parts = Omit<EthernetSwitchParts, 'used'>;

export class FrameAdmission {
  /** Copies made for several outputs. */
  copyCount = 0;
  readonly #parts: Parts;
  readonly #departures: FrameDepartures;

  constructor(parts: Parts, departures: FrameDepartures) {
    this.#parts = parts;
    this.#departures = departures;
  }

  /** Admits the frames of an input that are ready, in order, up to the first that must be stored. */
  admitFrom(own: EthernetSwitchPort, nowPs: Picoseconds): void {
    for (let { head } = own.pipeline; head !== undefined && head.readyPs <= nowPs; head = own.pipeline.head) {
      const reason = this.#admit(own, head, nowPs);
      if (reason === 'isStored') return;
      own.pipeline.shift();
      if (reason === undefined) continue;
      own.drops[reason]++;
      own.waiting--;
      this.#parts.tap?.dropped(head, reason);
      this.#parts.tap?.released(head);
      this.#parts.frames.release(head);
    }
  }

  /**
   * Puts a frame into the queues of its outputs. Returns the reason if it leaves by none, or that it must be stored
   * first.
   */
  #admit(
    own: EthernetSwitchPort,
    frame: StoredFrame,
    nowPs: Picoseconds,
  ): keyof InputDrops | 'isStored' | undefined {
    const { input, bytes, frameBytes } = frame;
    const ports = frame.outputs ?? this.#routeOf(own, frame, nowPs);
    if (typeof ports === 'string') return ports;
    frame.priority = priorityOf(bytes, frameBytes, this.#parts.config.trust);
    const isCut = this.#parts.cutsThrough && frame.outputs === undefined;
    if (isCut && !this.#canCutThrough(own, frame, ports, nowPs)) return this.#storeWhole(frame, ports);
    if (!isCut && frame.isCorrupted) return 'wrongFcs';
    const limitBytes = this.#parts.buffer.queueLimitBytes;
    if (!this.#parts.buffer.take(input, frame.priority, bytesOf(frame))) return 'noRoom';
    this.copyCount += ports.length - 1;
    for (const number of ports) this.#enqueue(frame, this.#parts.ports[number - 1]!, limitBytes);
    if (isCut && frame.copiesLeft > 0) own.cutCount++;
    if (frame.copiesLeft === 0) this.#departures.finish(frame);
    else if (
      this.#parts.buffer.isLossless(frame.priority) &&
      this.#parts.buffer.mustStop(input, frame.priority)
    )
      this.#departures.stopSender(own, frame.priority, true);
    return undefined;
  }

  /** Outputs of a frame. One whose FCS proves wrong teaches nothing: hardware learns from complete frames. */
  #routeOf(
    own: EthernetSwitchPort,
    frame: StoredFrame,
    nowPs: Picoseconds,
  ): readonly number[] | RouteRefusal {
    if (!frame.isCorrupted) this.#parts.routes.learn(frame, own.number, nowPs);
    return this.#parts.routes.portsOf(frame, own.number, nowPs);
  }

  /** Whether a frame may leave by all its outputs while it still arrives. */
  #canCutThrough(
    { port: { config } }: EthernetSwitchPort,
    { priority }: StoredFrame,
    ports: readonly number[],
    nowPs: Picoseconds,
  ): boolean {
    return ports.every((number) => {
      const { port, sending, queues } = this.#parts.ports[number - 1]!;
      const hasFrames = sending !== undefined || queues.count > 0;
      return !hasFrames && !isFaster(port.config, config) && isIdle(port, priority, nowPs);
    });
  }

  /** A frame awaits its last bit, then the latency, as in a switch that stores all of them. */
  #storeWhole(frame: StoredFrame, ports: readonly number[]): 'isStored' {
    frame.outputs = ports;
    frame.readyPs = frame.tailPs + this.#parts.latencyPs;
    this.#parts.tap?.stores(frame, frame.tailPs, frame.readyPs);
    return 'isStored';
  }

  /** Puts a frame into the queue of one output, or drops that copy if the queue of a lossy priority is too long. */
  #enqueue(frame: StoredFrame, output: EthernetSwitchPort, limitBytes: number): void {
    const { bytes, frameBytes, priority } = frame;
    const { queues } = output;
    const queueBytes = queues.bytesOf(priority);
    if (!this.#parts.buffer.isLossless(priority) && queueBytes + bytesOf(frame) > limitBytes) {
      output.queueDrops++;
      this.#parts.tap?.dropped(frame, 'queueFull', output.number);
      return;
    }
    // A switch that cuts through marks a frame when it leaves: only then the rest of the queue is known.
    if (!this.#parts.cutsThrough) output.marker.passes(bytes, frameBytes, queueBytes);
    frame.copiesLeft++;
    queues.add(frame);
  }
}

/**
 * Frames that leave an Ethernet switch: the next frame of each output, pauses that do not end, and the room that a
 * frame returns when all of its outputs have sent it.
 *
 *     queues ─▶ serve ─▶ port ═▶ … last byte ─▶ hasLeft ─▶ finish: bytes of the buffer; the sender may resume
 *        └─ watch: paused for too long ─▶ dropped ───────────▲
 */
import { InvariantError, NEVER, type Picoseconds } from '../../base/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import { bytesOf, NO_PRIORITY } from './egress-queues.ts';
import { type EthernetSwitchParts, type EthernetSwitchPort, queueOf } from './ethernet-switch-port.ts';
import { PRIORITY_COUNT } from './shared-buffer.ts';
import type { StoredFrame } from './stored-frames.ts';

type Parts = Pick<EthernetSwitchParts, 'buffer' | 'config' | 'cutsThrough' | 'frames' | 'tap' | 'used'>;

export class FrameDepartures {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The last byte of a frame has left by this output. */
  hasLeft(output: EthernetSwitchPort): void {
    const frame = output.sending!;
    output.sending = undefined;
    output.sendsUntilPs = NEVER;
    output.queues.left(frame);
    if (--frame.copiesLeft === 0) this.finish(frame);
  }

  /** All outputs have sent a frame. */
  finish(frame: StoredFrame): void {
    const { input, priority } = frame;
    const own = this.#parts.used[input]!;
    this.#parts.buffer.release(input, priority, bytesOf(frame));
    own.waiting--;
    own.done++;
    this.#parts.tap?.released(frame);
    this.#parts.frames.release(frame);
    if (
      own.stopped !== 0 &&
      this.#parts.buffer.isLossless(priority) &&
      this.#parts.buffer.mayResume(input, priority)
    )
      this.stopSender(own, priority, false);
  }

  /** Stops the sender of a class of traffic at an input, or lets it resume. */
  stopSender(own: EthernetSwitchPort, priority: number, isToStop: boolean): void {
    const bit = 1 << this.#parts.buffer.classOf(priority);
    if (((own.stopped & bit) !== 0) === isToStop) return;
    own.stopped ^= bit;
    this.#parts.tap?.stops(own.number, priority, isToStop);
    const { flowControl } = own.port;
    if (this.#parts.config.flowControl === 'pause') flowControl.stop(isToStop);
    else flowControl.priorities.stop(priority, isToStop);
  }

  /** Drops the queues of an output that wait in a pause for too long. */
  watch(own: EthernetSwitchPort, nowPs: Picoseconds): void {
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

  #dropQueue({ number, port, queues, watchdog }: EthernetSwitchPort, priority: number): void {
    for (const frame of queues.drop(priority)) {
      watchdog.dropCount++;
      this.#parts.tap?.dropped(frame, 'pauseWatchdog', number);
      if (--frame.copiesLeft === 0) this.finish(frame);
    }
    if (queues.count === 0) port.flowControl.givesUp();
  }

  /** Sends the next frame of an output that is free. */
  serve(own: EthernetSwitchPort, nowPs: Picoseconds): void {
    const { port, queues } = own;
    if (own.sending !== undefined || queues.count === 0) return;
    const priority = queues.next((candidate) => !port.canTransmit(nowPs, candidate));
    if (priority === NO_PRIORITY) return;
    const frame = queues.take(priority);
    own.watchdog.goesOn(priority);
    own.sending = frame;
    if (this.#parts.cutsThrough)
      own.marker.passes(frame.bytes, frame.frameBytes, queues.bytesOf(priority) - bytesOf(frame));
    const reservations = reservationsOf(port);
    port.send(frame.bytes, 0, frame.frameBytes, nowPs, frame.isSentAgain, frame.isCorrupted);
    // A frame that is discarded, or that a fault holds back, reserves nothing: it may still be arriving when it is
    // released.
    own.sendsUntilPs = Math.max(nowPs + 1, port.isUp ? port.freePs : 0);
    if (reservationsOf(port) > reservations && frame.tailPs > own.sendsUntilPs)
      throw new InvariantError(
        'last bit of a frame',
        frame.tailPs,
        `at most ${own.sendsUntilPs}, when it leaves`,
      );
    this.#parts.tap?.leaves(frame, {
      output: own.number,
      queue: queueOf(own.number, priority),
      untilPs: own.sendsUntilPs,
    });
  }
}

/** Frames for which a port reserved its link as soon as it was handed them. */
const reservationsOf = ({ transmitted, rearranged }: EthernetPort): number =>
  transmitted.frames - rearranged.heldBackFrames;

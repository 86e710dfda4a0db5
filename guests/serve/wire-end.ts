/**
 * The far end of an HCA's Ethernet cable where a third-party endpoint is plugged in: a port like any other, whose received
 * frames leave simulated time, and whose sent frames come from outside.
 *
 *     HCA ══cable══ port ──► frame        to the third-party endpoint, at the instant of its last bit
 *                   port ◄── waiting ◄── take      from the third-party endpoint, as soon as the cable is free
 *
 * While no endpoint is connected the link is down. A third-party endpoint whose frames wait must wait itself ({@link
 * WireEnd.hasRoom}).
 */

import { FaultLog, injectFrameFaults } from '../../machine/faults/index.ts';
import { channelKey, type FrameLedger, hcaName, transmittedOf } from '../../machine/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import { ETHERNET_HEADER_BYTES, EthernetPort, withTag } from '../../wire/index.ts';
import { openEndName, type ServedPlan, strangerNode } from './served-plan.ts';

/** Receives a frame that is in `bytes` during the call. */
export type FrameTaken = (bytes: Uint8Array, at: number, lengthBytes: number) => void;

/** Frames of the third-party endpoint that wait for the cable. */
const waitingMax = 64;

export class WireEnd {
  readonly lp: LogicalProcess;
  /** Number of times that each fault of the plan has occurred for frames of the third-party endpoint. */
  readonly faultLog: FaultLog;
  readonly #port: EthernetPort;
  readonly #waiting: Uint8Array[] = [];
  /** Frames of the third-party endpoint that no cable carries: without a whole header, or longer than the MTU and a tag allow. */
  #unfitCount = 0;
  /** Frames that still waited when their third-party endpoint disconnected. */
  #forgottenCount = 0;

  /** @param onFrame receives frames of the HCA */
  constructor({ config, channels, faults }: ServedPlan, node: number, onFrame: FrameTaken) {
    const [own, far] = [openEndName(node), hcaName(node)];
    this.lp = new LogicalProcess(own);
    this.#port = new EthernetPort({
      lp: this.lp,
      config: withTag(config.ethernet),
      writer: new ChannelWriter(channels[channelKey(own, far)]!),
      reader: new ChannelReader(channels[channelKey(far, own)]!),
      seed: config.machine.seed,
    });
    this.faultLog = new FaultLog(faults);
    const end = { node: strangerNode, name: own };
    injectFrameFaults(
      faults,
      end,
      this.#port,
      this.faultLog,
      config.machine.seed,
      config.hca.capability.roce,
    );
    const port = this.#port;
    port.connect({
      receiver: {
        frameArrived: (slot) => {
          onFrame(port.rxBytes, port.frameStart(slot), port.frameBytes(slot));
          port.consume(slot);
        },
      },
      sender: { spaceFreed: () => this.#send() },
      link: { linkChanged: () => {} },
    });
  }

  /** A third-party endpoint has connected or disconnected. Called between two runs, like {@link take}; the runner must be notified. */
  setPlugged(isPlugged: boolean): void {
    this.#forgottenCount += this.#waiting.length;
    this.#waiting.length = 0;
    this.#port.setEnabled(isPlugged);
  }

  /** Whether {@link take} has room. */
  get hasRoom(): boolean {
    return this.#waiting.length < waitingMax;
  }

  /** Accepts a frame of the third-party endpoint; room must be available. */
  take(bytes: Uint8Array, at: number, lengthBytes: number): void {
    if (lengthBytes < ETHERNET_HEADER_BYTES || lengthBytes > this.#port.frameBytesMax) {
      this.#unfitCount++;
      return;
    }
    this.#waiting.push(bytes.slice(at, at + lengthBytes));
    this.#send();
  }

  get unfitCount(): number {
    return this.#unfitCount;
  }

  get forgottenCount(): number {
    return this.#forgottenCount;
  }

  /** Frames of the third-party endpoint that wait for the cable. */
  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Ledger in the report's form for cable ends: frames handed to the third-party endpoint are done. */
  get ledger(): FrameLedger {
    const { received, busyPs, heldFrames } = this.#port;
    return {
      transmitted: transmittedOf(this.#port),
      received: { ...received },
      // The third-party endpoint receives MAC control frames like all others.
      flowControl: {},
      completed: received.deliveredFrames - heldFrames,
      packets: 0,
      dropped: {},
      held: heldFrames,
      busyPs: Math.floor(busyPs),
    };
  }

  #send(): void {
    for (;;) {
      const [frame] = this.#waiting;
      if (frame === undefined || !this.#port.canTransmit()) return;
      this.#waiting.shift();
      this.#port.send(frame, 0, frame.length);
    }
  }
}

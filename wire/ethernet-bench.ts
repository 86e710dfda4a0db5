/** A test bench: two Ethernet ports joined by a cable, each in its own logical process. For specs only. */

import { defaultsOf, type Picoseconds } from '../base/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, SingleRunner } from '../sim/index.ts';
import {
  EthernetRearranged,
  type EthernetReceiveCounters,
  type EthernetTransmitCounters,
  type FlowControlCounters,
} from './ethernet-counters.ts';
import { type EthernetConfig, ethernetParameters } from './ethernet-parameters.ts';
import { EthernetPort } from './ethernet-port.ts';
import { ethernetChannelBytes } from './ethernet-sizing.ts';

export interface FrameArrival {
  readonly timePs: Picoseconds;
  readonly bytes: readonly number[];
}

export class EthernetEnd {
  readonly lp: LogicalProcess;
  readonly port: EthernetPort;
  readonly arrivals: FrameArrival[] = [];
  readonly linkStates: { readonly isUp: boolean; readonly nowPs: Picoseconds }[] = [];
  /** Offsets of frames not yet consumed. */
  readonly held: number[] = [];
  consumesAtOnce = true;
  /** Called when the port may accept a frame again. */
  onSpace: () => void = () => {};
  readonly #actions: (() => void)[] = [];
  readonly #at: number;

  constructor(
    name: string,
    config: EthernetConfig,
    out: SharedArrayBuffer,
    into: SharedArrayBuffer,
    seed: number,
    shuffle?: () => number,
    controlMac?: number,
  ) {
    this.lp = new LogicalProcess(name, shuffle);
    this.port = new EthernetPort({
      lp: this.lp,
      config,
      writer: new ChannelWriter(out),
      reader: new ChannelReader(into),
      seed,
      controlMac,
    });
    this.port.connect({
      receiver: { frameArrived: (slot) => this.#receive(slot) },
      sender: { spaceFreed: () => this.onSpace() },
      link: { linkChanged: (isUp, nowPs) => void this.linkStates.push({ isUp, nowPs }) },
    });
    this.#at = this.lp.queue.addHandler((index) => this.#actions[index]!());
  }

  /** Runs an action at an instant. */
  at(timePs: Picoseconds, action: () => void): void {
    this.#actions.push(action);
    this.lp.queue.schedule(timePs, this.#at, this.#actions.length - 1);
  }

  /** Sends a frame of this many bytes now, which count up from `first`. */
  send(lengthBytes: number, first = 0): void {
    this.port.send(frameOf(lengthBytes, first), 0, lengthBytes);
  }

  /** Sends `count` frames one after another, as fast as the port accepts them; forming each takes `formingPs`. */
  sendAll(count: number, lengthBytes: number, formingPs = 0): void {
    let sent = 0;
    const sendSome = (): void => {
      while (sent < count && this.port.canTransmit(this.lp.nowPs + formingPs)) this.send(lengthBytes, sent++);
    };
    this.onSpace = sendSome;
    sendSome();
  }

  /** Bytes of the frame in a slot of the receive fifo. */
  bytesOf(slot: number): number[] {
    const start = this.port.frameStart(slot);
    return [...this.port.rxBytes.subarray(start, start + this.port.frameBytes(slot))];
  }

  #receive(slot: number): void {
    this.arrivals.push({ timePs: this.lp.nowPs, bytes: this.bytesOf(slot) });
    if (this.consumesAtOnce) this.port.consume(slot);
    else this.held.push(slot);
  }
}

export const frameOf = (lengthBytes: number, first: number): Uint8Array =>
  Uint8Array.from({ length: lengthBytes }, (_, index) => (first + index) & 0xff);

export class EthernetBench {
  readonly config: EthernetConfig;
  readonly a: EthernetEnd;
  readonly b: EthernetEnd;
  readonly #runner: SingleRunner;

  /**
   * @param shuffle reorders the events of one instant
   * @param controlMacs MACs of the two ends, if they have a MAC control sublayer; then both send and obey PAUSE frames
   */
  constructor(
    changes: Partial<EthernetConfig> = {},
    seed = 1,
    shuffle?: () => number,
    controlMacs: readonly (number | undefined)[] = [],
  ) {
    this.config = { ...defaultsOf(ethernetParameters), ...changes };
    const bytes = ethernetChannelBytes(this.config);
    const [out, back] = [new SharedArrayBuffer(bytes), new SharedArrayBuffer(bytes)];
    this.a = new EthernetEnd('a', this.config, out, back, seed, shuffle, controlMacs[0]);
    this.b = new EthernetEnd('b', this.config, back, out, seed, shuffle, controlMacs[1]);
    if (controlMacs.length > 0) for (const { port } of [this.a, this.b]) port.flowControl.set(true, true);
    this.#runner = new SingleRunner([this.a.lp, this.b.lp]);
  }

  async runTo(limitPs: Picoseconds): Promise<void> {
    await this.#runner.runTo(limitPs);
  }

  /** Begins a new epoch, between two runs. */
  beginEpoch(ps: Picoseconds): void {
    this.#runner.rebase(ps);
  }

  /** Enables both ends and runs until the link is up; returns the instant reached. */
  async bringUp(): Promise<number> {
    this.a.port.setEnabled(true);
    this.b.port.setEnabled(true);
    const upPs = 20_000_000 + this.config.trainingUs * 1_000_000;
    await this.runTo(upPs);
    return upPs;
  }
}

/**
 * Difference between the statistics of two ends, in frames and bytes: zero when nothing is in flight.
 * @param controlled flow control of the sender, and of the receiver
 */
export function ethernetImbalance(
  sent: EthernetTransmitCounters,
  received: EthernetReceiveCounters,
  { copiedFrames, copiedBytes } = new EthernetRearranged(),
  [near, far]: readonly FlowControlCounters[] = [],
): { readonly frames: number; readonly bytes: number } {
  return {
    frames:
      sent.frames +
      copiedFrames +
      (near?.sentFrames ?? 0) -
      (far?.receivedFrames ?? 0) -
      sent.lostFrames -
      received.deliveredFrames -
      received.corruptedFrames -
      received.fifoDrops -
      received.linkDownDrops,
    bytes:
      sent.bytes +
      copiedBytes +
      (near?.sentBytes ?? 0) -
      (far?.receivedBytes ?? 0) -
      sent.lostBytes -
      received.deliveredBytes -
      received.corruptedBytes -
      received.droppedBytes,
  };
}

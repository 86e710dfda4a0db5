/** A test bench: two wire ports joined by a cable, each in its own logical process. For specs only. */

import { defaultsOf, type Picoseconds } from '../base/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, SingleRunner } from '../sim/index.ts';
import { operandBytes } from './opcodes.ts';
import { PACKET_PAYLOAD_OFFSET, WORD_OPCODE, WORD_PAYLOAD_BYTES, WORD_PSN } from './packet.ts';
import { type WireConfig, wireParameters } from './parameters.ts';
import type { RecordReferences } from './referenced-records.ts';
import { WirePort } from './wire-port.ts';
import { wireChannelBytes } from './wire-sizing.ts';

/** A packet as received by an end. */
export interface Arrival {
  readonly timePs: Picoseconds;
  readonly opcode: number;
  readonly psn: number;
  readonly payload: readonly number[];
}

export class WireEnd {
  readonly lp: LogicalProcess;
  readonly port: WirePort;
  readonly arrivals: Arrival[] = [];
  readonly linkStates: { isUp: boolean; nowPs: Picoseconds }[] = [];
  /** Offsets of packets not yet consumed. */
  readonly held: number[] = [];
  /** Whether packets are consumed as they arrive, or held. */
  consumesAtOnce = true;
  /** Called when the port may accept a packet again. */
  onSpace: () => void = () => {};
  #at: number;

  constructor(
    name: string,
    config: WireConfig,
    out: SharedArrayBuffer,
    into: SharedArrayBuffer,
    shuffle?: () => number,
    references?: RecordReferences,
  ) {
    this.lp = new LogicalProcess(name, shuffle);
    const lp = this.lp;
    this.port = new WirePort({
      lp,
      config,
      writer: new ChannelWriter(out),
      reader: new ChannelReader(into),
      references,
    });
    this.port.connect({
      receiver: { packetArrived: (offset) => this.#receive(offset) },
      sender: { spaceFreed: () => this.onSpace() },
      link: { linkChanged: (isUp, nowPs) => void this.linkStates.push({ isUp, nowPs }) },
    });
    this.#at = lp.queue.addHandler((index) => this.#actions[index]!());
  }

  readonly #actions: (() => void)[] = [];

  /** Runs an action at an instant. */
  at(timePs: Picoseconds, action: () => void): void {
    this.#actions.push(action);
    this.lp.queue.schedule(timePs, this.#at, this.#actions.length - 1);
  }

  /** Sends a packet now, filled with bytes that count up from its PSN. */
  send(opcode: number, payloadBytes: number, psn = 0, flags = 0, virtualLane = 0): void {
    const { port } = this;
    const offset = port.beginPacket(opcode, payloadBytes, flags, this.lp.nowPs, virtualLane);
    port.txWords[(offset >> 2) + WORD_PSN] = psn;
    const start = offset + PACKET_PAYLOAD_OFFSET;
    const bytes = payloadBytes + operandBytes(opcode);
    for (let index = 0; index < bytes; index++) port.txBytes[start + index] = (psn + index) & 0xff;
    port.packetFilled(offset);
  }

  consumeAll(): void {
    for (const offset of this.held.splice(0)) this.port.consume(offset);
  }

  #receive(offset: number): void {
    const { port } = this;
    const word = offset >> 2;
    const opcode = port.rxWords[word + WORD_OPCODE]!;
    const bytes = port.rxWords[word + WORD_PAYLOAD_BYTES]! + operandBytes(opcode);
    const start = offset + PACKET_PAYLOAD_OFFSET;
    const payload = [...port.rxBytes.subarray(start, start + bytes)];
    this.arrivals.push({ timePs: this.lp.nowPs, opcode, psn: port.rxWords[word + WORD_PSN]!, payload });
    this.held.push(offset);
    if (this.consumesAtOnce) this.consumeAll();
  }
}

export class WireBench {
  readonly config: WireConfig;
  readonly a: WireEnd;
  readonly b: WireEnd;
  readonly #runner: SingleRunner;

  /**
   * @param shuffle reorders the events of one instant
   * @param references to zero-copy payload received by the second end
   */
  constructor(changes: Partial<WireConfig> = {}, shuffle?: () => number, references?: RecordReferences) {
    this.config = { ...defaultsOf(wireParameters), ...changes };
    const bytes = wireChannelBytes(this.config);
    const [out, back] = [new SharedArrayBuffer(bytes), new SharedArrayBuffer(bytes)];
    this.a = new WireEnd('a', this.config, out, back, shuffle);
    this.b = new WireEnd('b', this.config, back, out, shuffle, references);
    this.#runner = new SingleRunner([this.a.lp, this.b.lp]);
  }

  /** Runs everything due before `limitPs`. */
  async runTo(limitPs: Picoseconds): Promise<void> {
    await this.#runner.runTo(limitPs);
  }

  /** Enables both ends and runs until the link has been up for a while; returns the instant reached. */
  async bringUp(): Promise<number> {
    this.a.port.setEnabled(true);
    this.b.port.setEnabled(true);
    const upPs = 20_000_000 + this.config.trainingUs * 1_000_000;
    await this.runTo(upPs);
    return upPs;
  }
}

/**
 * What happens inside one end of a PCIe link, and when: TLPs in, records in, credits and Acks back.
 *
 * Everything that reaches a port at one instant (TLPs handed over, records delivered, records consumed) commutes:
 * what it causes inside the port happens a picosecond later, and the port runs what is due inside before it lets
 * anything in. So a TLP handed over at the instant at which credits arrive never uses them at that instant,
 * whichever came first. TLPs handed over at one instant keep their order: they come from the stages of one clock
 * domain.
 *
 * An event is scheduled only for what others wait for: credits to return, and TLPs that wait in the fifos. The rest
 * (an Ack's time on the lanes, limits that nobody waits for) is caught up with when the port is next called.
 */
import { InvariantError } from '../../base/assert.ts';
import type { ChannelReader, ChannelWriter } from '../../sim/channel.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import { checkLinkConfig, type LinkConfig, type LinkEndConfig } from './link-parameters.ts';
import { LinkReceiver, type TrafficCount } from './link-receiver.ts';
import { LinkTransmitter } from './link-transmitter.ts';
import * as tlp from './tlp.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { COMPLETION_DATA, FLOW_COUNT, MEMORY_WRITE, SIDEBAND_BASE, UPDATE_FC } = tlp;
const { WORD_FC_DATA, WORD_FC_FLOW, WORD_FC_HEADERS } = tlp;

/** Receives a record at its time. It is the receiver's until {@link LinkEngine.consume}. */
export type TlpListener = (offset: number, kind: number) => void;

export interface LinkPortOptions {
  readonly lp: LogicalProcess;
  readonly link: LinkConfig;
  /** This end: its fifos, and the credits it advertises. */
  readonly end: LinkEndConfig;
  /** The other end: the credits it advertises. */
  readonly peer: LinkEndConfig;
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  readonly trafficClassCount: number;
}

const NEVER = Number.POSITIVE_INFINITY;

export class LinkEngine {
  readonly link: LinkConfig;
  /** Views into received records. */
  readonly reader: ChannelReader;
  readonly transmitter: LinkTransmitter;
  readonly receiver: LinkReceiver;

  readonly #lp: LogicalProcess;
  readonly #trafficClassCount: number;
  readonly #eventHandler: number;
  #listener: TlpListener = () => {};
  /** Earliest instant at which something is due inside; and the parts it is the minimum of. */
  #dueInsidePs = NEVER;
  #updateFcDuePs = NEVER;
  #updateFcFlows = 0;
  #limitsDuePs = NEVER;
  #limitsFlows = 0;
  readonly #headerLimits = new Int32Array(FLOW_COUNT);
  readonly #dataLimits = new Int32Array(FLOW_COUNT);
  #scheduledPs = NEVER;

  /** Connects itself to `lp` as reader of `reader` and writer of `writer`. */
  constructor(options: LinkPortOptions) {
    const { lp, link, end, peer, writer, reader, trafficClassCount } = options;
    checkLinkConfig(link, end);
    checkLinkConfig(link, peer);
    this.#lp = lp;
    this.link = link;
    this.reader = reader;
    this.#trafficClassCount = trafficClassCount;
    this.transmitter = new LinkTransmitter(link, end, peer, writer);
    this.receiver = new LinkReceiver(link, end, reader, trafficClassCount);
    this.#eventHandler = lp.queue.addHandler(() => this.#runEvent());
    lp.addInbound(reader, link.latencyPs, (offset) => this.#deliver(offset));
    lp.addOutbound(writer);
  }

  /** Sets who is handed received TLPs and sideband records. */
  onReceive(listener: TlpListener): void {
    this.#listener = listener;
  }

  /** Calls `listener` whenever a full fifo of the flow has drained below its capacity. */
  onSendSpace(flow: number, listener: () => void): void {
    this.transmitter.onSpace(flow, listener);
  }

  /** Whether the flow's transmit fifo has room for one TLP more. */
  canSend(flow: number): boolean {
    const nowPs = this.#lp.nowPs;
    if (this.#dueInsidePs <= nowPs) this.#catchUp(nowPs);
    const fifo = this.transmitter.fifos[flow]!;
    return fifo.count < fifo.capacity;
  }

  /** Raises a wire beside the lanes, such as reset: no TLP, no credits. */
  sendSideband(kind: number, data: number): void {
    const nowPs = this.#lp.nowPs;
    if (this.#dueInsidePs <= nowPs) this.#catchUp(nowPs);
    this.transmitter.sendSideband(nowPs, kind, data);
  }

  /** Ends a {@link placeCompletionData}. */
  commit(): void {
    if (this.transmitter.waitingCount === 0) return;
    this.transmitter.pump(this.#lp.nowPs);
    this.#findDue();
    this.#arm();
  }

  /** The receiver has done with a record: its room and its credits go back. */
  consume(offset: number): void {
    this.returnCredits(this.receiver.release(offset));
  }

  /**
   * The receiver has copied what it needs of a record, but still holds the TLP's place in its buffers. What this
   * returns goes to {@link returnCredits} later. For TLPs that may be held for long: a record holds up the channel.
   */
  release(offset: number): number {
    return this.receiver.release(offset);
  }

  /** The receiver's buffers have room again for a TLP that was {@link release}d. */
  returnCredits(credits: number): void {
    const nowPs = this.#lp.nowPs;
    if (this.#dueInsidePs <= nowPs) this.#catchUp(nowPs);
    const flow = this.receiver.returnCredits(credits);
    if (flow < 0) return;
    this.#updateFcFlows |= 1 << flow;
    this.#updateFcDuePs = nowPs + 1;
    this.#findDue();
    this.#arm();
  }

  /** Brings books up to `nowPs`, the end of a run. */
  closeAccounts(nowPs: number): void {
    if (this.#dueInsidePs <= nowPs) this.#catchUp(nowPs);
    this.transmitter.closeAccount(nowPs);
  }

  /** See {@link LinkReceiver.drainUndelivered}. */
  drainUndelivered(): TrafficCount {
    return this.receiver.drainUndelivered(this.#trafficClassCount);
  }

  /** Lets what is due happen, then hands a TLP to the transmitter. {@link commit} follows, after the payload. */
  protected place(
    kind: number,
    flags: number,
    trafficClass: number,
    tag: number,
    requesterId: number,
    address: number,
    lengthBytes: number,
    byteCount: number,
    data: number,
    aux: number,
  ): void {
    if (lengthBytes > this.link.maxPayloadBytes && (kind === MEMORY_WRITE || kind === COMPLETION_DATA)) {
      throw new InvariantError(
        'TLP payload bytes',
        lengthBytes,
        `at most ${this.link.maxPayloadBytes} (MPS)`,
      );
    }
    const nowPs = this.#lp.nowPs;
    if (this.#dueInsidePs <= nowPs) this.#catchUp(nowPs);
    this.transmitter.place(
      nowPs,
      kind,
      flags,
      trafficClass,
      tag,
      requesterId,
      address,
      lengthBytes,
      byteCount,
      data,
      aux,
    );
  }

  #deliver(offset: number): void {
    const nowPs = this.#lp.nowPs;
    if (this.#dueInsidePs <= nowPs) this.#catchUp(nowPs);
    const kind = this.reader.kindAt(offset);
    if (kind === UPDATE_FC) {
      this.#noteLimits(nowPs, offset);
      return;
    }
    if (kind < SIDEBAND_BASE) {
      this.receiver.receive(nowPs, offset, kind);
      if (this.receiver.ackDuePs < this.#dueInsidePs) this.#dueInsidePs = this.receiver.ackDuePs;
    }
    this.#listener(offset, kind);
  }

  #noteLimits(nowPs: number, offset: number): void {
    const words = this.reader.words;
    const word = offset >> 2;
    const flow = words[word + WORD_FC_FLOW]!;
    this.#headerLimits[flow] = words[word + WORD_FC_HEADERS]!;
    this.#dataLimits[flow] = words[word + WORD_FC_DATA]!;
    this.#limitsFlows |= 1 << flow;
    this.#limitsDuePs = nowPs + 1;
    this.reader.release(offset);
    this.#findDue();
    this.#arm();
  }

  /** Runs what is due inside up to `nowPs`, in the order of its instants. */
  #catchUp(nowPs: number): void {
    const { transmitter, receiver } = this;
    while (this.#dueInsidePs <= nowPs) {
      const atPs = this.#dueInsidePs;
      if (receiver.ackDuePs === atPs) {
        receiver.acknowledge();
        transmitter.sendAck(atPs);
      }
      if (this.#updateFcDuePs === atPs) this.#sendLimits(atPs);
      const canMove = this.#limitsDuePs === atPs || transmitter.resumePs === atPs;
      if (this.#limitsDuePs === atPs) this.#applyLimits();
      if (canMove) transmitter.pump(atPs);
      this.#findDue();
    }
    this.#arm();
  }

  #sendLimits(atPs: number): void {
    const { credits } = this.receiver;
    for (let flow = 0; flow < FLOW_COUNT; flow++) {
      if ((this.#updateFcFlows & (1 << flow)) === 0) continue;
      credits.allocateFreed(flow);
      this.transmitter.sendUpdateFc(
        atPs,
        flow,
        credits.allocated[flow * 2]!,
        credits.allocated[flow * 2 + 1]!,
      );
    }
    this.#updateFcFlows = 0;
    this.#updateFcDuePs = NEVER;
  }

  #applyLimits(): void {
    for (let flow = 0; flow < FLOW_COUNT; flow++) {
      if ((this.#limitsFlows & (1 << flow)) === 0) continue;
      this.transmitter.credits.update(flow, this.#headerLimits[flow]!, this.#dataLimits[flow]!);
    }
    this.#limitsFlows = 0;
    this.#limitsDuePs = NEVER;
  }

  #findDue(): void {
    let duePs = this.receiver.ackDuePs;
    if (this.#updateFcDuePs < duePs) duePs = this.#updateFcDuePs;
    if (this.#limitsDuePs < duePs) duePs = this.#limitsDuePs;
    if (this.transmitter.resumePs < duePs) duePs = this.transmitter.resumePs;
    this.#dueInsidePs = duePs;
  }

  /** Sees to it that what others wait for happens at its instant. The rest is caught up with when next called. */
  #arm(): void {
    let duePs = this.#updateFcDuePs;
    if (this.transmitter.waitingCount > 0) {
      duePs = Math.min(duePs, this.#limitsDuePs, this.transmitter.resumePs);
    }
    if (duePs >= this.#scheduledPs) return;
    this.#scheduledPs = duePs;
    this.#lp.queue.schedule(duePs, this.#eventHandler);
  }

  #runEvent(): void {
    const nowPs = this.#lp.nowPs;
    if (this.#scheduledPs <= nowPs) this.#scheduledPs = NEVER;
    if (this.#dueInsidePs <= nowPs) this.#catchUp(nowPs);
    else this.#arm();
  }
}

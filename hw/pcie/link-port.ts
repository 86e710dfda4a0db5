/**
 * One end of a PCIe link: what an endpoint or a root complex sends TLPs through and gets them from.
 *
 *     sendMemoryWrite … ──► LinkTransmitter ──► channel ══► other end
 *     onReceive ◄────────── LinkReceiver ◄───── channel ◄══ other end
 *                  consume ──► UpdateFC, Ack ──► the transmitter's lanes
 *
 * Everything that reaches a port at one instant (TLPs handed over, records delivered, records consumed) commutes:
 * what it causes inside the port happens a picosecond later, and {@link #catchUp} runs what is due inside
 * before it lets anything in. So a TLP handed over at the instant at which credits arrive never uses them at
 * that instant, whichever came first. TLPs handed over at one instant keep their order: they come from the
 * stages of one clock domain.
 *
 * Listeners of {@link onSendSpace} may be called from within any call of this port: they only wake stages at an
 * edge after the current instant.
 */
import { InvariantError } from '../../base/assert.ts';
import type { ChannelReader, ChannelWriter } from '../../sim/channel.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import { checkLinkConfig, type LinkConfig, type LinkEndConfig } from './link-parameters.ts';
import { LinkReceiver, type TrafficCount } from './link-receiver.ts';
import { LinkTransmitter } from './link-transmitter.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  FLAG_POISONED,
  FLAG_STATUS_SHIFT,
  FLOW_COUNT,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  SIDEBAND_BASE,
  UPDATE_FC,
  WORD_FC_DATA,
  WORD_FC_FLOW,
  WORD_FC_HEADERS,
} from './tlp.ts';

/** Receives a record at its time. It is the receiver's until {@link PcieLinkPort.consume}. */
export type TlpListener = (offset: number, kind: number) => void;

/** Which events of a kind, counted from 1: one, several, or none (0). */
export type Nth = number | readonly number[];

/** Whether the event with this count is among `nth`. */
export const isNth = (nth: Nth, count: number): boolean =>
  typeof nth === 'number' ? nth === count : nth.includes(count);

/** Faults to inject into the completions that this end sends. */
export interface CompletionFaults {
  /** These completions are never sent: their requesters run into the completion timeout. */
  readonly dropNth: Nth;
  /** These completions with data carry the poisoned bit. */
  readonly poisonNth: Nth;
}

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

export class PcieLinkPort {
  readonly link: LinkConfig;
  /** Views into received records. */
  readonly reader: ChannelReader;
  readonly transmitter: LinkTransmitter;
  readonly receiver: LinkReceiver;
  /** Bus, device and function that completions from here carry as completer. */
  completerId = 0;
  /** Faults to inject; undefined is none. */
  faults: CompletionFaults | undefined;
  /** Completions handed over and swallowed by a fault. */
  droppedCompletionCount = 0;

  readonly #lp: LogicalProcess;
  readonly #trafficClassCount: number;
  readonly #eventHandler: number;
  #listener: TlpListener = () => {};
  #completionCount = 0;
  #dataCompletionCount = 0;
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

  /** Writes `lengthBytes` (1 to MPS, not across 4 KiB) at `address`. */
  sendMemoryWrite(
    address: number,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    flags = 0,
  ): void {
    this.#place(MEMORY_WRITE, flags, trafficClass, 0, 0, address, lengthBytes, 0, 0, 0);
    this.transmitter.payloadTarget.copy(source, sourceOffset, this.transmitter.payloadOffset, lengthBytes);
    this.commit();
  }

  /** Requests `lengthBytes` (not across 4 KiB) at `address`. */
  sendMemoryRead(
    address: number,
    trafficClass: number,
    lengthBytes: number,
    tag: number,
    requesterId: number,
    flags = 0,
  ): void {
    this.#place(MEMORY_READ, flags, trafficClass, tag, requesterId, address, lengthBytes, 0, 0, 0);
    this.commit();
  }

  /**
   * Answers a request with data.
   * @param byteCount bytes of the request still to come, these included
   * @param address of the first byte; the completion carries its low 7 bits
   */
  sendCompletionData(
    tag: number,
    requesterId: number,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    byteCount: number,
    address: number,
    flags = 0,
  ): void {
    if (!this.placeCompletionData(tag, requesterId, trafficClass, lengthBytes, byteCount, address, flags))
      return;
    this.transmitter.payloadTarget.copy(source, sourceOffset, this.transmitter.payloadOffset, lengthBytes);
    this.commit();
  }

  /**
   * Like {@link sendCompletionData} for a sender that fetches the data itself: when it returns true, the caller
   * at once puts them at `transmitter.payloadTarget.target[transmitter.payloadOffset …]` and calls {@link commit}.
   */
  placeCompletionData(
    tag: number,
    requesterId: number,
    trafficClass: number,
    lengthBytes: number,
    byteCount: number,
    address: number,
    flags = 0,
  ): boolean {
    let sentFlags = flags;
    if (this.faults !== undefined) {
      if (this.#isDropped()) return false;
      if (isNth(this.faults.poisonNth, ++this.#dataCompletionCount)) sentFlags |= FLAG_POISONED;
    }
    const lower = address % 128;
    const id = this.completerId;
    this.#place(
      COMPLETION_DATA,
      sentFlags,
      trafficClass,
      tag,
      requesterId,
      lower,
      lengthBytes,
      byteCount,
      0,
      id,
    );
    return true;
  }

  /** Answers a request without data: a configuration write, or any request with a status other than success. */
  sendCompletion(
    tag: number,
    requesterId: number,
    trafficClass: number,
    status: number,
    byteCount = 4,
    address = 0,
    flags = 0,
  ): void {
    if (this.faults !== undefined && this.#isDropped()) return;
    const sentFlags = flags | (status << FLAG_STATUS_SHIFT);
    const lower = address % 128;
    this.#place(
      COMPLETION,
      sentFlags,
      trafficClass,
      tag,
      requesterId,
      lower,
      0,
      byteCount,
      0,
      this.completerId,
    );
    this.commit();
  }

  /** Reads 1 to 4 bytes of the target function's configuration space, within one dword. */
  sendConfigRead(
    targetId: number,
    register: number,
    lengthBytes: number,
    trafficClass: number,
    tag: number,
    requesterId: number,
  ): void {
    this.#place(CONFIG_READ, 0, trafficClass, tag, requesterId, register, lengthBytes, 0, 0, targetId);
    this.commit();
  }

  /** Writes 1 to 4 bytes, within one dword; `value` has the byte for `register` in its lowest bits. */
  sendConfigWrite(
    targetId: number,
    register: number,
    lengthBytes: number,
    value: number,
    trafficClass: number,
    tag: number,
    requesterId: number,
  ): void {
    this.#place(CONFIG_WRITE, 0, trafficClass, tag, requesterId, register, lengthBytes, 0, value, targetId);
    this.commit();
  }

  /** Sends a message without data, such as Assert_INTA. */
  sendMessage(messageCode: number, trafficClass: number, requesterId: number, data = 0): void {
    this.#place(MESSAGE, 0, trafficClass, 0, requesterId, 0, 0, 0, data, messageCode);
    this.commit();
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
    const nowPs = this.#lp.nowPs;
    if (this.#dueInsidePs <= nowPs) this.#catchUp(nowPs);
    const flow = this.receiver.consume(offset);
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

  #place(
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

  #isDropped(): boolean {
    if (!isNth(this.faults!.dropNth, ++this.#completionCount)) return false;
    this.droppedCompletionCount++;
    return true;
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
      if (this.#updateFcDuePs === atPs) this.#returnCredits(atPs);
      const canMove = this.#limitsDuePs === atPs || transmitter.resumePs === atPs;
      if (this.#limitsDuePs === atPs) this.#applyLimits();
      if (canMove) transmitter.pump(atPs);
      this.#findDue();
    }
    this.#arm();
  }

  #returnCredits(atPs: number): void {
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

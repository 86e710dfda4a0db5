/**
 * One end of an InfiniBand cable: takes packets from the HCA, serialises them, and delivers those of the other end.
 *
 *     canTransmit, beginPacket ──▶ serializer ──▶ channel ═══▶ onPacket … consume
 *          ▲ onSpace              ▲ blocks of credit ◀═══ flow control packets ◀──┘
 *
 * Promises:
 * - A packet's arrival is known as soon as it is sent: its last byte leaves when all bytes before it have, at the
 *   exact rate of the link, and arrives the channel's latency later. No event is spent on it.
 * - Nothing is sent on lane 0 without credit, so the receive buffer never overruns; the receiver checks that too.
 * - With the link down packets are discarded and counted, as a real port does; the caller need not ask.
 * - Calls made at one instant commute with records arriving at that instant: credits count from the next
 *   picosecond on, and what a call causes inside the port happens one picosecond later.
 *
 * Listeners only leave work for later instants. Source: InfiniBand Architecture Specification, volume 1, chapter 7.
 */
import type { ChannelReader, ChannelWriter } from '../sim/channel.ts';
import type { EventRef } from '../sim/event-queue.ts';
import type { LogicalProcess } from '../sim/logical-process.ts';
import * as headers from './headers.ts';
import { blocksOf, CreditSender } from './link-credits.ts';
import { byteTimeOf, Serializer, wireLatencyPs } from './link-rate.ts';
import { LinkTraining } from './link-training.ts';
import { operandBytes, packetBytesOf, padBytes } from './opcodes.ts';
import * as packetConstants from './packet.ts';
import { packetBytesIn } from './packet.ts';
import { ReceiveCounters, TransmitCounters } from './packet-counters.ts';
import type { WireConfig } from './parameters.ts';
import { ReceiveBuffers } from './receive-buffers.ts';
import * as sendWait from './send-wait.ts';
import { SendWait } from './send-wait.ts';
import { WireFaults } from './wire-faults.ts';
import { checkConfig } from './wire-sizing.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { FLOW_CONTROL_PACKET_BYTES } = headers;
const { DISCARDED, FLAG_CORRUPTED, FLAG_GRH, FLAG_RETRANSMISSION, FLOW_CONTROL } = packetConstants;
const { GRH_ROOM_BYTES, LINK_TRAINING, MANAGEMENT_LANE, PACKET, PACKET_BYTES_SHIFT } = packetConstants;
const { PAD_SHIFT, VIRTUAL_LANE_SHIFT, WORD_FC_CREDIT_LIMIT, WORD_FC_TOTAL_BLOCKS_SENT } = packetConstants;
const { WORD_FC_VIRTUAL_LANE, WORD_LIDS, WORD_OPCODE, WORD_PACKET_FLAGS } = packetConstants;
const { WORD_PAYLOAD_BYTES, WORD_TRAINING_STEP } = packetConstants;
const { NOT_WAITING, WAITING_FOR_CREDITS, WAITING_FOR_SERIALIZER } = sendWait;

const NEVER = Number.POSITIVE_INFINITY;

export interface WirePortOptions {
  readonly lp: LogicalProcess;
  readonly config: WireConfig;
  /** Channels of {@link wireChannelBytes} to and from the other end. */
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  /** The two are one channel, private to this port: see {@link loopbackPlug}. */
  readonly isLoopbackPlug?: boolean;
}

export class WirePort {
  readonly config: WireConfig;
  /** Records being sent, and records received. */
  readonly txBytes: Uint8Array;
  readonly txWords: Int32Array;
  readonly txFloats: Float64Array;
  readonly rxBytes: Uint8Array;
  readonly rxWords: Int32Array;
  readonly rxFloats: Float64Array;
  readonly transmitted = new TransmitCounters();
  readonly received = new ReceiveCounters();
  readonly faults = new WireFaults();
  /** Local identifier, as the subnet manager set it. */
  lid = 0;

  readonly #lp: LogicalProcess;
  readonly #writer: ChannelWriter;
  readonly #reader: ChannelReader;
  readonly #latencyPs: number;
  readonly #aheadPs: number;
  readonly #serializer: Serializer;
  readonly #training: LinkTraining;
  readonly #sender = new CreditSender();
  readonly #buffers: ReceiveBuffers;
  readonly #wait = new SendWait(this.transmitted);
  readonly #insideEvent: number;
  readonly #spaceEvent: number;
  readonly #trainedEvent: number;
  readonly #isLoopbackPlug: boolean;
  readonly #plugEvent: number;
  #packetListener: ((offset: number) => void) | undefined;
  #spaceListener: () => void = () => {};
  #stateListeners: ((isUp: boolean, nowPs: number) => void)[] = [];
  #trainedRef: EventRef = 0;
  /** The link's state, and the instant of its last change: the change counts from the next one on. */
  #isLinkUp = false;
  #changedPs = -1;
  #flowControlDuePs = NEVER;
  #spaceDuePs = NEVER;

  /** Connects itself to `lp` as reader of `reader` and writer of `writer`. Starts disabled. */
  constructor(options: WirePortOptions) {
    const { lp, config, reader, writer } = options;
    checkConfig(config);
    this.config = config;
    this.#lp = lp;
    this.#writer = writer;
    this.#reader = reader;
    this.txBytes = writer.bytes;
    this.txWords = writer.words;
    this.txFloats = writer.floats;
    this.rxBytes = reader.bytes;
    this.rxWords = reader.words;
    this.rxFloats = reader.floats;
    this.#latencyPs = wireLatencyPs(config);
    this.#serializer = new Serializer(byteTimeOf(config));
    this.#aheadPs = this.#serializer.durationPs(config.transmitAheadBytes);
    this.#buffers = new ReceiveBuffers(config, this.received);
    this.#training = new LinkTraining({
      sendStep: (step) => this.#sendStep(step),
      startTimer: () => this.#startTraining(),
      stopTimer: () => lp.queue.cancel(this.#trainedRef),
      linkChanged: (isUp) => this.#linkChanged(isUp),
    });
    this.#insideEvent = lp.queue.addHandler(() => this.#catchUp(lp.nowPs));
    this.#spaceEvent = lp.queue.addHandler(() => this.#spaceDue());
    this.#trainedEvent = lp.queue.addHandler(() => this.#training.complete());
    this.#isLoopbackPlug = options.isLoopbackPlug === true;
    this.#plugEvent = lp.queue.addHandler(() => this.#plugDue());
    if (this.#isLoopbackPlug) return;
    lp.addInbound(reader, this.#latencyPs, (offset) => this.#deliver(offset));
    lp.addOutbound(writer);
  }

  // ---- link state ----

  /** Enables or disables this end: the link comes up some time after both are enabled. */
  setEnabled(isEnabled: boolean): void {
    this.#training.setEnabled(isEnabled);
  }

  get isEnabled(): boolean {
    return this.#training.isEnabled;
  }

  /** PortPhysicalState of PortInfo. */
  get physicalState(): number {
    return this.#training.physicalState;
  }

  /** True when the link has been trained, from that very instant on. */
  get isLinkUp(): boolean {
    return this.#isLinkUp;
  }

  /** True when packets sent now go on the wire: a change of the link counts from the next picosecond on. */
  get isUp(): boolean {
    return this.#isLinkUp === this.#lp.nowPs > this.#changedPs;
  }

  /** Adds a listener for the link coming up and going down. */
  onLinkState(listener: (isUp: boolean, nowPs: number) => void): void {
    this.#stateListeners.push(listener);
  }

  // ---- transmit ----

  /**
   * Whether a packet can be sent now: the serializer has little booked, and lane 0 has credit. After a refusal the
   * space listener is called when it is worth asking again.
   */
  canTransmit(opcode: number, payloadBytes: number, flags = 0, virtualLane = 0): boolean {
    const nowPs = this.#lp.nowPs;
    if (this.#flowControlDuePs <= nowPs) this.#catchUp(nowPs);
    if (!this.isUp) return true;
    const readyPs = this.#serializer.freePs - this.#aheadPs;
    if (readyPs > nowPs) {
      this.#wait.begin(WAITING_FOR_SERIALIZER, nowPs);
      this.#wakeSenderAt(readyPs);
      return false;
    }
    if (virtualLane === MANAGEMENT_LANE) return true;
    const blocks = blocksOf(packetBytesOf(opcode, payloadBytes, (flags & FLAG_GRH) !== 0));
    if (this.#sender.canSend(blocks, nowPs)) return true;
    this.#wait.begin(WAITING_FOR_CREDITS, nowPs);
    if (this.#sender.newLimitPs === nowPs) this.#wakeSenderAt(nowPs + 1);
    return false;
  }

  /** `listener` is called when a packet that was refused may be worth another try. */
  onSpace(listener: () => void): void {
    this.#spaceListener = listener;
  }

  /**
   * Sends a packet at `nowPs` or when the link is free, and returns the offset of its record. Opcode, flags, payload
   * bytes and source LID are set, the other header words are zero; the caller fills in words (not the flags), operands
   * and payload at once. With the link down the record is discarded: filling it in does no harm.
   * @param flags FLAG_ bits
   */
  beginPacket(
    opcode: number,
    payloadBytes: number,
    flags: number,
    nowPs: number = this.#lp.nowPs,
    virtualLane = 0,
  ): number {
    const instantPs = this.#lp.nowPs;
    if (this.#flowControlDuePs <= instantPs) this.#catchUp(instantPs);
    if (this.#wait.reason !== NOT_WAITING) this.#wait.end(instantPs);
    const packetBytes = packetBytesOf(opcode, payloadBytes, (flags & FLAG_GRH) !== 0);
    const isSent = this.isUp;
    const sentFlags = isSent
      ? flags | this.#countSent(opcode, packetBytes, payloadBytes, flags, nowPs)
      : flags;
    const endPs = isSent
      ? this.#serializer.occupy(nowPs, packetBytes + this.config.framingBytes)
      : Math.max(this.#serializer.freePs, instantPs);
    if (!isSent) this.transmitted.discardedCount++;
    else if (virtualLane !== MANAGEMENT_LANE) this.#sender.sent(blocksOf(packetBytes));
    const kind = isSent ? PACKET : DISCARDED;
    const headerBytes = operandBytes(opcode) + ((flags & FLAG_GRH) !== 0 ? GRH_ROOM_BYTES : 0);
    const offset = this.#append(endPs + this.#latencyPs, kind, payloadBytes + headerBytes);
    const words = this.#writer.words;
    const word = offset >> 2;
    for (let index = WORD_OPCODE + 1; index < WORD_PAYLOAD_BYTES; index++) words[word + index] = 0;
    words[word + WORD_OPCODE] = opcode;
    words[word + WORD_PACKET_FLAGS] =
      sentFlags |
      (padBytes(payloadBytes) << PAD_SHIFT) |
      (virtualLane << VIRTUAL_LANE_SHIFT) |
      (packetBytes << PACKET_BYTES_SHIFT);
    words[word + WORD_PAYLOAD_BYTES] = payloadBytes;
    words[word + WORD_LIDS] = this.lid << 16;
    return offset;
  }

  /** The LIDs word of a packet to `destinationLid` from this port, with the low bits that an LMC leaves to the path. */
  lids(destinationLid: number, sourcePathBits: number): number {
    return ((this.lid | sourcePathBits) << 16) | destinationLid;
  }

  // ---- receive ----

  /** `listener` is handed every packet that arrives whole; it must be given back by {@link consume}. */
  onPacket(listener: (offset: number) => void): void {
    this.#packetListener = listener;
  }

  /** Gives a received packet's buffer back. */
  consume(offset: number): void {
    const flags = this.rxWords[(offset >> 2) + WORD_PACKET_FLAGS]!;
    this.#reader.release(offset);
    const nowPs = this.#lp.nowPs;
    if (this.#flowControlDuePs <= nowPs) this.#catchUp(nowPs);
    if (this.#buffers.free(flags)) this.#scheduleFlowControl(nowPs);
  }

  /** Most packets that can be received and not yet consumed. */
  get receivePacketsMax(): number {
    return this.#buffers.packetsMax;
  }

  // ---- reports ----

  /** Bytes of lane 0 held in the receive buffer now, and at most so far; whole blocks. */
  get receiveBufferedBytes(): number {
    return this.#buffers.bufferedBytes;
  }

  get receiveBufferHighWaterBytes(): number {
    return this.#buffers.highWaterBytes;
  }

  /** Picoseconds the link has been occupied by what this end sent. */
  get busyPs(): number {
    return this.#serializer.busyPs;
  }

  /** Bytes this end has put on the link: packets, flow control and framing. */
  get linkBytes(): number {
    const { packetCount, packetBytes, flowControlCount } = this.transmitted;
    const { framingBytes } = this.config;
    return (
      packetBytes + packetCount * framingBytes + flowControlCount * (FLOW_CONTROL_PACKET_BYTES + framingBytes)
    );
  }

  // ---- inside ----

  #append(timePs: number, kind: number, payloadBytes: number): number {
    if (this.#isLoopbackPlug) this.#lp.queue.schedule(timePs, this.#plugEvent);
    return this.#writer.append(timePs, kind, payloadBytes);
  }

  /** What went through the plug is back. */
  #plugDue(): void {
    this.#writer.flush();
    this.#reader.refreshRecords();
    while (this.#reader.nextPs <= this.#lp.nowPs) this.#deliver(this.#reader.take());
  }

  #deliver(offset: number): void {
    const nowPs = this.#lp.nowPs;
    if (this.#flowControlDuePs <= nowPs) this.#catchUp(nowPs);
    const kind = this.#reader.kindAt(offset);
    if (kind === PACKET) {
      this.#receivePacket(offset);
      return;
    }
    if (kind === FLOW_CONTROL) this.#receiveFlowControl(offset >> 2, nowPs);
    const step = this.rxWords[(offset >> 2) + WORD_TRAINING_STEP]!;
    this.#reader.release(offset);
    if (kind === LINK_TRAINING) this.#training.stepReceived(step);
  }

  #receivePacket(offset: number): void {
    const word = offset >> 2;
    const words = this.rxWords;
    const counters = this.received;
    if (!this.isUp) {
      counters.linkDownDrops++;
      this.#reader.release(offset);
      return;
    }
    const flags = words[word + WORD_PACKET_FLAGS]!;
    const packetBytes = packetBytesIn(flags);
    if (!this.#buffers.take(flags)) {
      this.#reader.release(offset);
      return;
    }
    const isCorrupted = (flags & FLAG_CORRUPTED) !== 0;
    const books = isCorrupted ? counters.corrupted : counters.delivered;
    books.count(words[word + WORD_OPCODE]!, packetBytes, words[word + WORD_PAYLOAD_BYTES]!);
    if (isCorrupted || this.#packetListener === undefined) this.consume(offset);
    else this.#packetListener(offset);
  }

  #scheduleFlowControl(nowPs: number): void {
    if (this.#flowControlDuePs !== NEVER) return;
    this.#flowControlDuePs = nowPs + 1;
    this.#lp.queue.schedule(nowPs + 1, this.#insideEvent);
  }

  /** Does what became due inside the port before this instant or at it. */
  #catchUp(nowPs: number): void {
    const duePs = this.#flowControlDuePs;
    if (duePs > nowPs) return;
    this.#flowControlDuePs = NEVER;
    if (!this.#isLinkUp) return;
    this.transmitted.flowControlCount++;
    const endPs = this.#serializer.occupy(duePs, FLOW_CONTROL_PACKET_BYTES + this.config.framingBytes);
    const word = this.#append(endPs + this.#latencyPs, FLOW_CONTROL, 0) >> 2;
    const words = this.#writer.words;
    words[word + WORD_FC_VIRTUAL_LANE] = 0;
    words[word + WORD_FC_TOTAL_BLOCKS_SENT] = this.#sender.totalBlocksSent;
    words[word + WORD_FC_CREDIT_LIMIT] = this.#buffers.credits.takeCreditLimit();
  }

  #receiveFlowControl(word: number, nowPs: number): void {
    if (!this.isUp) return;
    this.received.flowControlCount++;
    if (!this.#buffers.credits.synchronize(this.rxWords[word + WORD_FC_TOTAL_BLOCKS_SENT]!)) {
      this.received.creditResynchronizations++;
    }
    this.#sender.limitReceived(this.rxWords[word + WORD_FC_CREDIT_LIMIT]!, nowPs);
    if (this.#wait.reason === WAITING_FOR_CREDITS) this.#spaceListener();
  }

  /** Books a packet that goes on the wire; returns the flags that faults add. */
  #countSent(
    opcode: number,
    packetBytes: number,
    payloadBytes: number,
    flags: number,
    nowPs: number,
  ): number {
    const counters = this.transmitted;
    counters.packetCount++;
    counters.packetBytes += packetBytes;
    const books = (flags & FLAG_RETRANSMISSION) === 0 ? counters.first : counters.retransmitted;
    books.count(opcode, packetBytes, payloadBytes);
    return counters.packetCount === this.faults.nextPacket ? this.#applyFaults(nowPs) : 0;
  }

  #applyFaults(nowPs: number): number {
    const packet = this.transmitted.packetCount;
    const delayPs = this.faults.delayPs(packet);
    if (delayPs > 0) {
      this.transmitted.delayedCount++;
      this.#serializer.hold(nowPs, delayPs);
    }
    const isCorrupted = this.faults.isCorrupted(packet);
    if (isCorrupted) this.transmitted.corruptedCount++;
    this.faults.passed(packet);
    return isCorrupted ? FLAG_CORRUPTED : 0;
  }

  #wakeSenderAt(atPs: number): void {
    if (this.#spaceDuePs <= atPs) return;
    this.#spaceDuePs = atPs;
    this.#lp.queue.schedule(atPs, this.#spaceEvent);
  }

  #spaceDue(): void {
    if (this.#lp.nowPs < this.#spaceDuePs) return;
    this.#spaceDuePs = NEVER;
    if (this.#wait.reason !== NOT_WAITING) this.#spaceListener();
  }

  #sendStep(step: number): void {
    const atPs = Math.max(this.#lp.nowPs, this.#serializer.freePs) + this.#latencyPs;
    const offset = this.#append(atPs, LINK_TRAINING, 0);
    this.#writer.words[(offset >> 2) + WORD_TRAINING_STEP] = step;
  }

  #startTraining(): void {
    const trainedPs = this.#lp.nowPs + this.config.trainingUs * 1_000_000;
    this.#trainedRef = this.#lp.queue.schedule(trainedPs, this.#trainedEvent);
  }

  #linkChanged(isUp: boolean): void {
    const nowPs = this.#lp.nowPs;
    this.#isLinkUp = isUp;
    this.#changedPs = nowPs;
    if (isUp) {
      this.#sender.reset();
      this.#buffers.credits.reset();
      this.#scheduleFlowControl(nowPs);
    } else if (this.#wait.reason !== NOT_WAITING) {
      this.#wakeSenderAt(nowPs + 1);
    }
    for (const listener of this.#stateListeners) listener(isUp, nowPs);
  }
}

/**
 * One end of an InfiniBand cable: accepts packets from the HCA, serialises them, and delivers those of the other end.
 *
 *     sendPacket ──▶ credits, serializer ──▶ channel ═══▶ receiver … consume
 *          ▲ spaceFreed  ▲ blocks of credit ◀═══ flow control packets ◀──┘
 *
 * Promises:
 * - A packet's arrival is known as soon as it is sent: its last byte leaves when all bytes before it have, at the exact rate of
 *   the link, and arrives the channel's latency later. This costs no event.
 * - Nothing is sent on a data lane without its credit, so the receive buffer never overruns; the receiver checks that, too.
 * - With the link down packets are discarded and counted, as a real port does; the caller need not check.
 * - Calls made at one instant commute with records arriving at that instant: credits count from the next picosecond on, and a
 *   call's effects inside the port occur one picosecond later: with that instant, even if the port processes them later in the
 *   process's turn.
 *
 * What is connected only leaves work for later instants. Source: InfiniBand Architecture Specification, volume 1, chapter 7.
 */
import { NEVER, type Picoseconds } from '../base/index.ts';
import {
  type BlockState,
  type ChannelReader,
  type ChannelWriter,
  connectBlocks,
  type LateSender,
  type LogicalProcess,
} from '../sim/index.ts';
import { FLOW_CONTROL_PACKET_BYTES } from './headers.ts';
import { LaneRecords } from './lane-records.ts';
import { type PacketArrival, tailDelayOf, wireLatencyPs } from './link-rate.ts';
import type { LinkTraining } from './link-training.ts';
import {
  FLOW_CONTROL,
  isDamagedInside,
  LINK_TRAINING,
  MANAGEMENT_LANE,
  PACKET,
  packetBytesIn,
  WORD_FC_CREDIT_LIMIT,
  WORD_FC_TOTAL_BLOCKS_SENT,
  WORD_FC_VIRTUAL_LANE,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
  WORD_TRAINING_STEP,
} from './packet.ts';
import { ReceiveCounters, type TransmitCounters } from './packet-counters.ts';
import type { WireConfig } from './parameters.ts';
import { ReceiveBuffers } from './receive-buffers.ts';
import { ICRC_WRONG, PACKET_MALFORMED, PACKET_RIGHT } from './record-bytes.ts';
import { type RecordReferences, ReferencedRecords } from './referenced-records.ts';
import type { WireFaults } from './wire-faults.ts';
import { PacketObserver, verdictOf, type WireTap } from './wire-observer.ts';
import { makeWireBlocks, type WireBlocks, wirePortWires } from './wire-port-blocks.ts';
import type { PacketHeaders, WireSender, WireSenderPorts } from './wire-sender.ts';
import { checkConfig, dataLanesOf, takenBytesMax } from './wire-sizing.ts';

export interface WirePortOptions {
  readonly lp: LogicalProcess;
  readonly config: WireConfig;
  /** Channels of {@link wireChannelBytes} bytes to and from the other end. */
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  /** Both are one channel, private to this port: see {@link loopbackPlug}. */
  readonly isLoopbackPlug?: boolean;
  /** When packets sent from here arrive: `head` towards a switch; default `tail`. */
  readonly sentArrival?: PacketArrival | undefined;
  /** When received packets arrive here: `head` at a switch; default `tail`. */
  readonly receivedArrival?: PacketArrival | undefined;
  /** A switch's port: delivers packets whose ICRC alone is wrong, which a switch does not check (IBTA volume 1, 7.8). */
  readonly isSwitchPort?: boolean;
  /** References to payload of received packets: it stays in {@link WirePort.rxBytes} until they are released, even after its packet was consumed. */
  readonly references?: RecordReferences | undefined;
}

/** Receiver of packets. */
export interface PacketReceiver {
  /** A packet has arrived completely: its buffer must be released ({@link WirePort.consume}). */
  packetArrived(offset: number, payloadBytes: number): void;
}

/** Figures of one data lane. */
export interface LaneFigures {
  /** Packets put on the link, and packets that found room in the receive buffer. */
  readonly sent: LaneTotals;
  readonly received: LaneTotals;
  /** Picoseconds for which its packets waited for credits. */
  readonly creditWaitPs: number;
  /** Most bytes held in the receive buffer at once; whole blocks. */
  readonly bufferedBytesMax: number;
}

interface LaneTotals {
  readonly packets: number;
  /** LRH to VCRC. */
  readonly bytes: number;
}

/** Neighbours of a port. */
export interface WirePortPorts {
  readonly receiver: PacketReceiver;
  readonly sender: WireSenderPorts['sender'];
  readonly link: {
    /** Notes that the link came up or went down. */
    linkChanged(isUp: boolean, nowPs: Picoseconds): void;
  };
}

export class WirePort implements LateSender {
  readonly config: WireConfig;
  /** Records being sent, and records received. */
  readonly txBytes: Uint8Array;
  readonly txWords: Int32Array;
  readonly txFloats: Float64Array;
  readonly rxBytes: Uint8Array;
  readonly rxWords: Int32Array;
  readonly rxFloats: Float64Array;
  readonly transmitted: TransmitCounters;
  readonly received = new ReceiveCounters();
  readonly faults: WireFaults;
  /** Requests of fault rules for the packet about to be sent: set before {@link sendPacket}. */
  readonly outboundHeaders: PacketHeaders;
  /** A link of InfiniBand holds packets back by credits alone, which make the cable busy: for no other reason. */
  readonly holdReasons: readonly string[] = [];
  readonly holdReason = -1;
  /** Local identifier, as the subnet manager set it. */
  lid = 0;
  readonly blocks: WireBlocks;

  readonly #lp: LogicalProcess;
  readonly #writer: ChannelWriter;
  readonly #reader: ChannelReader;
  readonly #sender: WireSender;
  readonly #training: LinkTraining;
  readonly #buffers: ReceiveBuffers;
  readonly #observer: PacketObserver;
  readonly #referenced: ReferencedRecords | undefined;
  /** Memory of received packets, with several data lanes; otherwise they stay in the channel. */
  readonly #records: LaneRecords | undefined;
  /** Whether packets of the data lanes may leave: the port is in the state Active. Otherwise they are discarded (IBTA vol 1, 7.2). */
  isOpen = true;
  readonly #isPlugged: boolean;
  readonly #isSwitchPort: boolean;
  readonly #insideEvent: number;
  #receiver!: PacketReceiver;
  #link!: WirePortPorts['link'];
  /** The link's state; and whether packets are put on the wire, which follows one instant later. */
  #isLinkUp = false;
  #isOnWire = false;
  /** When a change of the link takes effect, and when a flow control packet must be sent; the earliest due instant. */
  #changeDuePs = NEVER;
  #flowControlDuePs = NEVER;
  /** When held-back packets must be checked. */
  #heldDuePs = NEVER;
  #insideDuePs = NEVER;

  /** Packets of the data path discarded because the link was down. */
  get discardedCount(): number {
    return this.transmitted.discardedCount;
  }

  /** Connects itself to `lp` as reader of `reader` and writer of `writer`. Starts disabled. */
  constructor(options: WirePortOptions) {
    const { lp, config, reader, writer, references } = options;
    checkConfig(config);
    this.config = config;
    this.#lp = lp;
    this.#writer = writer;
    this.#reader = reader;
    this.txBytes = writer.bytes;
    this.txWords = writer.words;
    this.txFloats = writer.floats;
    this.#records = dataLanesOf(config) === 1 ? undefined : new LaneRecords(config);
    const received = this.#records ?? reader;
    this.rxBytes = received.bytes;
    this.rxWords = received.words;
    this.rxFloats = received.floats;
    this.blocks = makeWireBlocks(lp, config, writer, options.sentArrival ?? 'tail');
    this.#sender = this.blocks.wireSender;
    this.#training = this.blocks.training;
    this.transmitted = this.#sender.counters;
    this.faults = this.#sender.faults;
    this.outboundHeaders = this.#sender.headers;
    this.#referenced =
      references === undefined
        ? undefined
        : new ReferencedRecords(reader, references, takenBytesMax(config, reader.bytes.length));
    this.#buffers = new ReceiveBuffers(config, this.received);
    this.#observer = new PacketObserver(
      reader,
      config,
      0,
      tailDelayOf(config, options.receivedArrival ?? 'tail'),
    );
    this.#insideEvent = lp.queue.addHandler(() => this.#catchUp(lp.nowPs));
    this.#isPlugged = options.isLoopbackPlug === true;
    this.#isSwitchPort = options.isSwitchPort === true;
    lp.addTimeKeeper(this);
    if (this.#isPlugged) {
      this.#sender.attachPlug(lp.queue.addHandler(() => this.#plugDue()));
      return;
    }
    lp.addInbound(reader, wireLatencyPs(config), this);
    lp.addOutbound(writer);
    lp.addLateSender(this);
  }

  connect({ receiver, sender, link }: WirePortPorts): void {
    this.#receiver = receiver;
    this.#link = link;
    connectBlocks(this.blocks, wirePortWires({ ...this.blocks, sender, port: this }));
  }

  /** Its state, without the channels' contents and deferred work, whose instant differs between partitions. */
  inspect(): BlockState {
    return {
      physicalState: this.#training.physicalState,
      isLinkUp: this.#isLinkUp,
      sender: this.#sender.inspect(),
      buffers: this.#buffers.inspect(),
    };
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

  /** True from the very instant at which the link has been trained. */
  get isLinkUp(): boolean {
    return this.#isLinkUp;
  }

  /** True if packets sent now are put on the wire: a change of the link counts from the next picosecond on. */
  get isUp(): boolean {
    return this.#lp.nowPs < this.#changeDuePs ? this.#isOnWire : this.#isLinkUp;
  }

  // ---- transmit ----

  /**
   * Whether a packet can be sent now: the serializer has little reserved, and its lane has credit. After a refusal, the sender is
   * called when it may ask again.
   */
  canTransmit(opcode: number, payloadBytes: number, flags = 0, virtualLane = 0): boolean {
    const nowPs = this.#lp.nowPs;
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    return !this.#isOnWire || this.#sender.canSend(opcode, payloadBytes, flags, virtualLane);
  }

  /** Sends a packet like {@link beginPacket}, or returns NOT_SENT if {@link canTransmit} refuses: both in one call. */
  sendPacket(
    opcode: number,
    payloadBytes: number,
    flags: number,
    atPs: Picoseconds,
    virtualLane = 0,
  ): number {
    const nowPs = this.#lp.nowPs;
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    return this.#isOnWire && (this.isOpen || virtualLane === MANAGEMENT_LANE)
      ? this.#sender.send(opcode, payloadBytes, flags, atPs, virtualLane)
      : this.#sender.discard(opcode, payloadBytes, flags, virtualLane);
  }

  /** Discards a packet that no lane carries, as if the link were down, and returns the offset of its record. */
  discardPacket(opcode: number, payloadBytes: number, flags: number): number {
    const { nowPs } = this.#lp;
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    return this.#sender.discardUnasked(opcode, payloadBytes, flags, 0);
  }

  /** Instant by which all reservations have left. */
  get freePs(): Picoseconds {
    return this.#sender.serializer.freePs;
  }

  /** Whether the other end has granted room for that many credit blocks of a data lane. */
  hasCreditsFor(blocks: number, virtualLane: number): boolean {
    return this.#sender.hasCreditsFor(blocks, virtualLane);
  }

  /** Whether a refused packet waits for credits of the other end. */
  get waitsForCredits(): boolean {
    return this.#sender.waitsForCredits;
  }

  /** The packet that was refused will not be sent: nothing waits any longer. */
  stopWaiting(): void {
    this.#sender.stopWaiting();
  }

  /** Ends the waits of refused packets in other lanes than these, as bits. */
  waitOnlyFor(lanes: number): void {
    this.#sender.waitOnlyFor(lanes);
  }

  /**
   * Announces a packet to send from `fromPs` on, now or later, whose forming takes `formingPs`. For a caller that does not
   * retry before it can be sent.
   * @returns the instant from which the serializer has little reserved, 0 with the link down; if that is later, the packet waits
   *   from `fromPs` on, and the sender is called for it only if the link goes down
   */
  expectPacket(fromPs: Picoseconds, formingPs: Picoseconds): number {
    const { nowPs } = this.#lp;
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    return this.#isOnWire ? this.#sender.expectPacket(fromPs, formingPs) : 0;
  }

  /**
   * Sends a packet at `atPs` or when the link is free, and returns the offset of its record. Opcode, flags and payload bytes
   * are set; the caller fills in the other words, operands and payload at once: fields left out hold leftovers. With the link
   * down the record is discarded; the caller may fill it in all the same.
   * @param flags FLAG_ bits
   */
  beginPacket(
    opcode: number,
    payloadBytes: number,
    flags: number,
    atPs: Picoseconds,
    virtualLane = 0,
  ): number {
    const nowPs = this.#lp.nowPs;
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    return this.#isOnWire
      ? this.#sender.begin(opcode, payloadBytes, flags, atPs, virtualLane)
      : this.#sender.discard(opcode, payloadBytes, flags, virtualLane);
  }

  /** The packet opened last was filled in: its record is complete. */
  packetFilled(offset: number): void {
    this.#sender.filled(offset);
  }

  /** Observes all packets at this end of the cable from now on, leaving and arriving. */
  set tap(tap: WireTap) {
    this.#sender.tap = tap;
    this.#observer.tap = tap;
  }

  // ---- receive ----

  /** Releases a received packet's buffer. */
  consume(offset: number): void {
    const flags = this.rxWords[(offset >> 2) + WORD_PACKET_FLAGS]!;
    if (this.#records !== undefined) this.#records.release(offset);
    else if (this.#referenced === undefined) this.#reader.release(offset);
    else this.#referenced.release(offset);
    this.#free(flags);
  }

  /** Limit of received packets that were not consumed yet. */
  get receivePacketsMax(): number {
    return this.#buffers.packetsMax;
  }

  // ---- reports ----

  /** Figures of each data lane, if there are several; otherwise empty. */
  get laneFigures(): readonly LaneFigures[] {
    const { lanes } = this.#sender;
    const { taken, laneHighWaterBytes } = this.#buffers;
    return (lanes?.sent ?? []).map(({ packets, bytes }, lane) => ({
      sent: { packets, bytes },
      received: { packets: taken[lane]!.packets, bytes: taken[lane]!.bytes },
      creditWaitPs: lanes!.waitedPs[lane]!,
      bufferedBytesMax: laneHighWaterBytes[lane]!,
    }));
  }

  /** Bytes of data lanes held in the receive buffer now, and the maximum so far; whole blocks. */
  get receiveBufferedBytes(): number {
    return this.#buffers.bufferedBytes;
  }

  get receiveBufferHighWaterBytes(): number {
    return this.#buffers.highWaterBytes;
  }

  /** Picoseconds for which this end has occupied the link. */
  get busyPs(): Picoseconds {
    return this.#sender.serializer.busyPs;
  }

  /** Bytes this end has put on the link: packets, flow control and framing. */
  get linkBytes(): number {
    const { packetCount, packetBytes, flowControlCount, copied, heldBack, letGo } = this.transmitted;
    const { framingBytes } = this.config;
    const packets = packetCount + copied.packetTotal + letGo.packetTotal - heldBack.packetTotal;
    const bytes = packetBytes + copied.byteTotal + letGo.byteTotal - heldBack.byteTotal;
    return bytes + packets * framingBytes + flowControlCount * (FLOW_CONTROL_PACKET_BYTES + framingBytes);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#sender.rebase(ps);
    this.#changeDuePs -= ps;
    this.#flowControlDuePs -= ps;
    this.#heldDuePs -= ps;
    this.#insideDuePs -= ps;
    if (!this.#isPlugged) return;
    this.#writer.flush();
    this.#writer.rebase(ps);
    this.#reader.rebase(ps);
  }

  // ---- inside ----

  /** A packet that passed through the plug has returned. */
  #plugDue(): void {
    this.#writer.flush();
    this.#reader.refreshRecords();
    while (this.#reader.nextPs <= this.#lp.nowPs) this.deliver(this.#reader.take());
  }

  /** Called by a record, at its time. */
  deliver(offset: number): void {
    const nowPs = this.#lp.nowPs;
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    const kind = this.#reader.takenKind;
    if (this.#referenced !== undefined) this.#referenced.makeRoom();
    if (kind === PACKET) {
      this.#receivePacket(offset);
      return;
    }
    if (kind === FLOW_CONTROL) this.#receiveFlowControl(offset >> 2);
    const step = this.#reader.words[(offset >> 2) + WORD_TRAINING_STEP]!;
    this.#reader.release(offset);
    if (kind === LINK_TRAINING) this.#training.stepReceived(step);
  }

  #receivePacket(offset: number): void {
    const { words } = this.#reader;
    const word = offset >> 2;
    const flags = words[word + WORD_PACKET_FLAGS]!;
    const opcode = words[word + WORD_OPCODE]!;
    const payloadBytes = words[word + WORD_PAYLOAD_BYTES]!;
    const counters = this.received;
    if (!this.#isOnWire) {
      counters.linkDownDrops++;
      this.#reader.release(offset);
      return;
    }
    if (!this.#buffers.take(flags)) {
      this.#reader.release(offset);
      return;
    }
    const verdict = this.#observer.isIdle ? verdictOf(flags) : this.#observer.received(offset);
    const isRelayable = this.#isSwitchPort && verdict === ICRC_WRONG && isDamagedInside(flags);
    if (verdict === PACKET_RIGHT || isRelayable) {
      if (isRelayable) counters.relayedDamageCount++;
      // If the cable carries bytes, they alone determine the packet.
      const arrivedBytes = words[word + WORD_PAYLOAD_BYTES]!;
      counters.delivered.count(words[word + WORD_OPCODE]!, packetBytesIn(flags), arrivedBytes);
      this.#receiver.packetArrived(this.#records === undefined ? offset : this.#keep(offset), arrivedBytes);
      return;
    }
    if (verdict === ICRC_WRONG) counters.invariantCrcErrors++;
    else if (verdict === PACKET_MALFORMED) counters.malformedPackets++;
    counters.corrupted.count(opcode, packetBytesIn(flags), payloadBytes);
    if (this.#records === undefined) this.consume(offset);
    else {
      this.#reader.release(offset);
      this.#free(flags);
    }
  }

  /** Copies a received packet out of the channel. @returns the offset of its record */
  #keep(offset: number): number {
    const place = this.#records!.keep(this.#reader, offset);
    this.#reader.release(offset);
    return place;
  }

  /** The room of a packet in its lane's buffer is free. */
  #free(flags: number): void {
    const nowPs = this.#lp.nowPs;
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    if (this.#buffers.free(flags)) this.#scheduleFlowControl(nowPs);
  }

  #scheduleFlowControl(nowPs: Picoseconds): void {
    if (this.#flowControlDuePs <= nowPs + 1) return;
    this.#flowControlDuePs = nowPs + 1;
    this.#insideDuePs = Math.min(this.#insideDuePs, nowPs + 1);
    // Packets through a plug return to this same process, which must be notified in time.
    if (this.#isPlugged) this.#lp.queue.schedule(nowPs + 1, this.#insideEvent);
    else this.#lp.sendBy(nowPs + 1);
  }

  /** Sends the due flow control packet. */
  sendDue(): void {
    const { nowPs } = this.#lp;
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    this.#lp.sendBy(this.#flowControlDuePs);
  }

  /** Does the port's internal work due before or at this instant. */
  #catchUp(nowPs: Picoseconds): void {
    if (this.#changeDuePs <= nowPs) {
      this.#changeDuePs = NEVER;
      this.#isOnWire = this.#isLinkUp;
    }
    const atPs = this.#flowControlDuePs;
    if (atPs <= nowPs) {
      this.#flowControlDuePs = NEVER;
      this.#sendFlowControl(atPs);
    }
    if (this.#heldDuePs <= nowPs) {
      this.#heldDuePs = NEVER;
      this.#sender.sendHeld(this.#isOnWire);
    }
    this.#insideDuePs = Math.min(this.#changeDuePs, this.#flowControlDuePs, this.#heldDuePs);
  }

  /** Sends a flow control packet of each data lane that has one due. */
  #sendFlowControl(atPs: Picoseconds): void {
    const buffers = this.#buffers;
    for (let lane = 0, due = buffers.takeDueLanes(); due !== 0; lane++, due >>= 1)
      if ((due & 1) !== 0 && this.#isLinkUp)
        this.#sender.sendFlowControl(atPs, lane, buffers.lanes[lane]!.takeCreditLimit());
  }

  /** {@link WireSender.sendHeld} must be called at this instant. */
  heldDue(atPs: Picoseconds): void {
    if (this.#heldDuePs <= atPs) return;
    this.#heldDuePs = atPs;
    this.#insideDuePs = Math.min(this.#insideDuePs, atPs);
    this.#lp.queue.schedule(atPs, this.#insideEvent);
  }

  /** The other end, which has not seen all sent records, must be notified by then. */
  packetLost(atPs: Picoseconds, virtualLane: number): void {
    this.#buffers.flowControlDue(virtualLane);
    if (this.#flowControlDuePs <= atPs) return;
    this.#flowControlDuePs = atPs;
    this.#insideDuePs = Math.min(this.#insideDuePs, atPs);
    this.#lp.queue.schedule(atPs, this.#insideEvent);
  }

  #receiveFlowControl(word: number): void {
    if (!this.#isOnWire) return;
    this.received.flowControlCount++;
    const { words } = this.#reader;
    const lane = words[word + WORD_FC_VIRTUAL_LANE]!;
    if (!this.#buffers.lanes[lane]!.synchronize(words[word + WORD_FC_TOTAL_BLOCKS_SENT]!)) {
      this.received.creditResynchronizations++;
      this.#buffers.flowControlDue(lane);
      this.#scheduleFlowControl(this.#lp.nowPs);
    }
    this.#sender.limitReceived(lane, words[word + WORD_FC_CREDIT_LIMIT]!);
  }

  /** The training has brought the link up, or down. */
  linkChanged(isUp: boolean): void {
    const nowPs = this.#lp.nowPs;
    // Work that was due under the old state of the link.
    if (this.#insideDuePs <= nowPs) this.#catchUp(nowPs);
    this.#isLinkUp = isUp;
    this.#isOnWire = !isUp;
    this.#changeDuePs = nowPs + 1;
    this.#insideDuePs = Math.min(this.#insideDuePs, nowPs + 1);
    if (isUp) {
      this.#sender.linkUp();
      this.#buffers.linkUp();
      this.#scheduleFlowControl(nowPs);
    } else {
      this.#sender.linkDown();
    }
    this.#link.linkChanged(isUp, nowPs);
  }
}

/**
 * One end of a PCIe link, through which an endpoint or a root complex sends and receives TLPs.
 *
 *     sendMemoryWrite … ──► LinkTransmitter ──► channel ══► other end
 *     ports.receiver ◄───── LinkReceiver ◄───── channel ◄══ other end
 *                  consume ──► UpdateFC, Ack ──► the transmitter's lanes
 *
 * All inputs of a port at one instant (TLPs handed over, records delivered, records consumed) commute: their effects inside the
 * port occur a picosecond later, and the port does its due work before it accepts an input. So a TLP handed over at the instant
 * when credits arrive never uses them at that instant, in either order. TLPs handed over at one instant keep their order: they
 * are sent by the stages of one clock domain.
 *
 * An event is scheduled only for TLPs that wait in this end's fifos. Other work (an Ack's time on the lanes, limits that no
 * sender waits for) is done when the port is next called; credits are returned at the end of the process's turn at the latest.
 */

import { type BusAddress, InvariantError, NEVER, type Picoseconds } from '../../../base/index.ts';
import type {
  BlockState,
  ChannelReader,
  ChannelWriter,
  LateSender,
  LogicalProcess,
  RecordReceiver,
} from '../../../sim/index.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  COMPLETION_FLOW,
  CONFIG_READ,
  CONFIG_WRITE,
  CompletionFields,
  carriedBytesOf,
  dataDwordsOf,
  descriptorOf,
  FLAG_STATUS_SHIFT,
  FLOW_COUNT,
  headerBytesOf,
  LOWER_ADDRESS_MASK,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  MemoryReadFields,
  MemoryWriteFields,
  PAYLOAD_OFFSET,
  payloadBytesOf,
  SIDEBAND_BASE,
  SIDEBAND_MONITOR,
  SIDEBAND_MONITOR_END,
  type TrafficCount,
  UPDATE_FC,
  WORD_AUX,
  WORD_BYTE_COUNT,
  WORD_DATA,
  WORD_FC_FLOW,
  WORD_FC_LIMIT,
} from '../tlp/index.ts';
import { dataOf, headersOf } from './flow-control.ts';
import { checkLinkConfig, type LinkConfig, type LinkEndConfig } from './link-parameters.ts';
import { LinkReceiver } from './link-receiver.ts';
import { LinkTransmitter } from './link-transmitter.ts';
import type { PayloadCopier } from './payload-copier.ts';
import type { LinkSender, TransmitFlow } from './transmit-flow.ts';

/** Receiver of TLPs and sideband records. An object, not a function: see build/README.md. */
export interface TlpReceiver {
  /** Receives a record at its time. The receiver owns it until {@link PcieLinkPort.consume}. */
  receiveTlp(offset: number, kind: number): void;
}

/** Optional receiver of completions with data, called before they are counted. */
export interface CompletionRunReceiver {
  /** Takes the completion at `offset`, which has just arrived, and as many later ones as it can. Returns false if it has taken none. */
  receiveCompletionRun(offset: number): boolean;
}

/** A configuration request: for 1 to 4 bytes of the target function's configuration space, within one dword. */
export interface ConfigRequest {
  /** Bus, device and function. */
  readonly targetId: number;
  readonly register: number;
  readonly lengthBytes: number;
  readonly trafficClass: number;
  readonly tag: number;
  readonly requesterId: number;
}

export interface ConfigWriteRequest extends ConfigRequest {
  /** Has the byte for `register` in its lowest bits. */
  readonly value: number;
  /** Left out: none. */
  readonly flags?: number;
}

/** The blocks connected to the port. */
export interface LinkPortPorts {
  /** Receives TLPs and sideband records. */
  readonly receiver: TlpReceiver;
  /** May take completions with data, also before their calls, that the receiver need not see; left out: none is taken this way. */
  readonly completionRuns?: CompletionRunReceiver | undefined;
  /** Blocks that wait while the transmit fifo of a flow is full, by flow. */
  readonly posted: readonly LinkSender[];
  readonly nonPosted: readonly LinkSender[];
  readonly completion: readonly LinkSender[];
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

const NO_RECEIVER: TlpReceiver = { receiveTlp: () => {} };
const NO_RUNS: CompletionRunReceiver = { receiveCompletionRun: () => false };
/** Names by flow. */
const FLOW_NAMES = ['posted', 'nonPosted', 'completion'] as const;

export class PcieLinkPort implements RecordReceiver, LateSender {
  readonly link: LinkConfig;
  /** Views into received records. */
  readonly reader: ChannelReader;
  readonly transmitter: LinkTransmitter;
  readonly receiver: LinkReceiver;
  /** Whether consuming a completion returns credits: not if they are infinite. */
  readonly returnsCompletionCredits: boolean;
  /** Bus, device and function in completions of this end, as completer. */
  completerId = 0;
  /** The requests that {@link sendMemoryRead} and {@link sendMemoryWrite} send. */
  readonly read = new MemoryReadFields();
  readonly write = new MemoryWriteFields();
  /** The completion that {@link sendCompletion} sends. */
  readonly completion = new CompletionFields();
  /** Offset of the payload of the completion just placed. */
  payloadOffset = 0;

  readonly #lp: LogicalProcess;
  readonly #trafficClassCount: number;
  readonly #maxPayloadBytes: number;
  readonly #eventHandler: number;
  #tlpReceiver = NO_RECEIVER;
  #runReceiver = NO_RUNS;
  /** Earliest instant at which something is due inside: an Ack, or a move of credits or waiting TLPs. */
  #duePs = NEVER;
  #moveDuePs = NEVER;
  /** The instants of which it is the minimum: credits to return, arrived limits, and the transmitter's resumePs. */
  #updateFcDuePs = NEVER;
  #updateFcFlows = 0;
  #limitsDuePs = NEVER;
  #limitsFlows = 0;
  readonly #limits = new Int32Array(FLOW_COUNT);
  #scheduledPs = NEVER;

  /** Connects itself to `lp` as reader of `reader` and writer of `writer`. */
  constructor(options: LinkPortOptions) {
    const { lp, link, end, peer, writer, reader, trafficClassCount } = options;
    checkLinkConfig(link, end);
    checkLinkConfig(link, peer);
    this.#lp = lp;
    this.link = link;
    this.#maxPayloadBytes = link.maxPayloadBytes;
    this.reader = reader;
    this.#trafficClassCount = trafficClassCount;
    this.transmitter = new LinkTransmitter(lp, link, end, peer, writer);
    this.receiver = new LinkReceiver(lp, link, end, reader, trafficClassCount);
    this.returnsCompletionCredits = end.completionHeaders > 0 || end.completionData > 0;
    this.#eventHandler = lp.queue.addHandler(() => this.#runEvent());
    lp.addInbound(reader, link.latencyPs, this);
    lp.addOutbound(writer);
    lp.addLateSender(this);
    lp.addTimeKeeper(this);
  }

  /** See Block.connect; before time starts. */
  connect(ports: LinkPortPorts): void {
    this.#tlpReceiver = ports.receiver;
    this.#runReceiver = ports.completionRuns ?? NO_RUNS;
    const { posted, nonPosted, completion } = this.transmitter;
    posted.connect({ senders: ports.posted });
    nonPosted.connect({ senders: ports.nonPosted });
    completion.connect({ senders: ports.completion });
  }

  /** Whether the flow's transmit fifo has room for one more TLP. */
  canSend(flow: number): boolean {
    return (this.transmitter.fullFlows & (1 << flow)) === 0 || this.#hasDrained(flow);
  }

  /** Whether the fifo, full at the last check, has room by now. Separate from {@link canSend}, to keep that small enough to be inlined. */
  #hasDrained(flow: number): boolean {
    if (this.#duePs <= this.#lp.nowPs) this.#catchUp();
    return (this.transmitter.fullFlows & (1 << flow)) === 0;
  }

  // ---- send ----

  /** Sends the memory write in {@link write}, which the caller begins again for the next one. */
  sendMemoryWrite(): void {
    const { source, sourceOffset, lengthBytes } = this.write;
    const offset = this.placeMemoryWrite();
    this.transmitter.target.fill(offset, source, sourceOffset, lengthBytes);
    this.commit();
  }

  /**
   * Like {@link sendMemoryWrite} for a sender that stores the payload itself: the caller at once puts it into the record in the
   * transmitter's target, at the returned offset, and calls {@link commit}.
   */
  placeMemoryWrite(): number {
    const { address, trafficClass, lengthBytes, flags } = this.write;
    this.#checkPayload(lengthBytes);
    const descriptor = descriptorOf(0, 0, trafficClass);
    return this.#place(this.transmitter.posted, MEMORY_WRITE, address, lengthBytes, flags, descriptor);
  }

  /** Sends the memory read in {@link read}, which the caller begins again for the next one. */
  sendMemoryRead(): void {
    const { address, trafficClass, lengthBytes, tag, requesterId, flags } = this.read;
    const descriptor = descriptorOf(requesterId, tag, trafficClass);
    this.#place(this.transmitter.nonPosted, MEMORY_READ, address, lengthBytes, flags, descriptor);
    this.commit();
  }

  /** Answers a request with {@link completion}, which the caller begins again for the next one. */
  sendCompletion(): void {
    const { descriptor, status, source, sourceOffset, lengthBytes, byteCount, address, flags } =
      this.completion;
    if (lengthBytes > 0) {
      this.placeCompletionData(descriptor, lengthBytes, byteCount, address, flags);
      this.payloadTarget.copy(source, sourceOffset, this.payloadOffset, lengthBytes);
    } else {
      const { transmitter, completerId } = this;
      const sentFlags = flags | (status << FLAG_STATUS_SHIFT);
      const lower = address & LOWER_ADDRESS_MASK;
      const offset = this.#place(transmitter.completion, COMPLETION, lower, 0, sentFlags, descriptor);
      transmitter.target.set(offset, WORD_BYTE_COUNT, byteCount);
      transmitter.target.set(offset, WORD_AUX, completerId);
    }
    this.commit();
  }

  /**
   * The same with data, for a sender that fetches them itself: the caller at once stores them at
   * `payloadTarget.target[payloadOffset …]`, or with FLAG_PLACED_EARLY at the read's destination, and calls {@link commit}.
   */
  placeCompletionData(
    descriptor: number,
    lengthBytes: number,
    byteCount: number,
    address: BusAddress,
    flags = 0,
  ): void {
    this.#checkPayload(lengthBytes);
    const { transmitter } = this;
    const lower = address & LOWER_ADDRESS_MASK;
    const offset = this.#place(
      transmitter.completion,
      COMPLETION_DATA,
      lower,
      lengthBytes,
      flags,
      descriptor,
    );
    transmitter.target.set(offset, WORD_BYTE_COUNT, byteCount);
    transmitter.target.set(offset, WORD_AUX, this.completerId);
    this.payloadOffset = offset + PAYLOAD_OFFSET;
  }

  /** Destination of the payload of the completion just placed. */
  get payloadTarget(): PayloadCopier {
    return this.transmitter.target.copier;
  }

  /** Reads configuration space. */
  sendConfigRead(request: ConfigRequest): void {
    this.#placeConfig(CONFIG_READ, request, 0);
    this.commit();
  }

  /** Writes configuration space. */
  sendConfigWrite(request: ConfigWriteRequest): void {
    const offset = this.#placeConfig(CONFIG_WRITE, request, request.flags ?? 0);
    this.transmitter.target.set(offset, WORD_DATA, request.value);
    this.commit();
  }

  #placeConfig(kind: number, request: ConfigRequest, flags: number): number {
    const { targetId, register, lengthBytes, trafficClass, tag, requesterId } = request;
    const { transmitter } = this;
    const descriptor = descriptorOf(requesterId, tag, trafficClass);
    const offset = this.#place(transmitter.nonPosted, kind, register, lengthBytes, flags, descriptor);
    transmitter.target.set(offset, WORD_AUX, targetId);
    return offset;
  }

  /** Sends a message without data, such as Assert_INTA. */
  sendMessage(messageCode: number, trafficClass: number, requesterId: number, data = 0): void {
    const { transmitter } = this;
    const offset = this.#place(
      transmitter.posted,
      MESSAGE,
      0,
      0,
      0,
      descriptorOf(requesterId, 0, trafficClass),
    );
    transmitter.target.set(offset, WORD_DATA, data);
    transmitter.target.set(offset, WORD_AUX, messageCode);
    this.commit();
  }

  /** Raises a wire next to the lanes, such as reset: no TLP, no credits. */
  sendSideband(kind: number, data: number, aux = 0, address: BusAddress = 0): void {
    const nowPs = this.#lp.nowPs;
    if (this.#duePs <= nowPs) this.#catchUp();
    this.transmitter.lanes.sendSideband(nowPs, kind, data, aux, address);
  }

  /** Requests a report when the dword at `address` differs from `word`: see WordMonitor. It replaces the monitor of the same number. */
  monitor(number: number, address: BusAddress, word: number): void {
    this.sendSideband(SIDEBAND_MONITOR, word, number, address);
  }

  /** Ends a monitor; a report may be in flight. */
  endMonitor(number: number): void {
    this.sendSideband(SIDEBAND_MONITOR_END, 0, number);
  }

  /** The TLP just placed is complete: if it waits, it leaves when it may. */
  commit(): void {
    if (this.transmitter.waitingCount === 0) return;
    this.transmitter.pump(this.#lp.nowPs);
    this.#planMoves();
  }

  /**
   * Processes due work, then hands a TLP to the transmitter. Returns the offset of its record in the transmitter's target,
   * where the sender fills in the fields that only TLPs of its kind have; {@link commit} follows.
   */
  #place(
    flow: TransmitFlow,
    kind: number,
    address: BusAddress,
    lengthBytes: number,
    flags: number,
    descriptor: number,
  ): number {
    const { transmitter } = this;
    if (this.#duePs <= this.#lp.nowPs) this.#catchUp();
    const payloadBytes = payloadBytesOf(kind, lengthBytes);
    const offset = transmitter.place(
      flow,
      kind,
      headerBytesOf(kind, address),
      dataDwordsOf(kind, address, lengthBytes),
      payloadBytes,
      carriedBytesOf(flags, payloadBytes),
    );
    transmitter.target.describe(offset, address, lengthBytes, flags, descriptor);
    return offset;
  }

  /**
   * Hands over, at `nowPs`, a TLP that leaves at once, with a short header and whole dwords of payload that are not in its
   * record: like {@link #place} and {@link commit} then. Its statistics follow, for several at once ({@link
   * LinkTransmitter.countAll}). Returns the offset of its record in the channel, or -1: it would wait.
   */
  placeAt(nowPs: Picoseconds, flow: TransmitFlow, kind: number, lengthBytes: number): number {
    if (this.#duePs <= nowPs) this.#catchUpTo(nowPs);
    return this.transmitter.placeAt(nowPs, flow, kind, lengthBytes >> 2);
  }

  /** Rejects a payload larger than either end may send. */
  #checkPayload(lengthBytes: number): void {
    if (lengthBytes <= this.#maxPayloadBytes) return;
    throw new InvariantError('TLP payload bytes', lengthBytes, `at most ${this.#maxPayloadBytes} (MPS)`);
  }

  // ---- receive ----

  /** The receiver is done with a record: its room and credits return. */
  consume(offset: number): void {
    this.returnCredits(this.receiver.release(offset));
  }

  /**
   * The receiver has copied what it needs of a record, but still holds the TLP's place in its buffers. The result is passed to
   * {@link returnCredits} later. For TLPs that may be held for long, since a held record blocks the channel.
   */
  release(offset: number): number {
    return this.receiver.release(offset);
  }

  /** The receiver's buffers have room again for a TLP that was {@link release}d. */
  returnCredits(credits: number): void {
    const nowPs = this.#lp.nowPs;
    if (this.#updateFcDuePs <= nowPs) this.#catchUp();
    const flow = this.receiver.returnCredits(credits);
    if (flow < 0) return;
    this.#updateFcFlows |= 1 << flow;
    this.#updateFcDuePs = nowPs + 1;
    this.#planMoves();
  }

  /**
   * A completion at `offset` that returns no credits was processed on arrival, or before its call (RunAhead.quiescentUntilPs,
   * takeRecord). {@link countCompletions} follows.
   */
  passCompletion(offset: number): void {
    const { receiver } = this;
    this.reader.release(offset);
    if (this.#duePs <= this.#lp.nowPs) this.#catchUp();
    receiver.countToAck();
    if (receiver.ackDuePs < this.#duePs) this.#duePs = receiver.ackDuePs;
  }

  /**
   * Takes the next record if it carries new limits and arrives before `beforePs`. The caller has just passed a completion, so
   * earlier limits are in force. Returns false if nothing has happened.
   */
  passLimits(beforePs: Picoseconds): boolean {
    const { reader } = this;
    if (reader.nextPs >= beforePs) return false;
    const offset = this.#lp.runAhead.takeRecordOf(reader, UPDATE_FC);
    if (offset < 0) return false;
    this.#noteLimits(this.#lp.nowPs, offset);
    return true;
  }

  /** Adds completions taken by {@link passCompletion} to the statistics: dwords of data, and the valid bytes among them. */
  countCompletions(trafficClass: number, count: number, dataDwords: number, payloadBytes: number): void {
    this.receiver.countAll(trafficClass, count, dataDwords, payloadBytes);
  }

  // ---- statistics ----

  /** Brings statistics up to `nowPs`, the end of a run. */
  closeAccounts(nowPs: Picoseconds): void {
    if (this.#duePs <= nowPs) this.#catchUp();
    this.transmitter.closeAccount(nowPs);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.transmitter.rebase(ps);
    this.receiver.ackDuePs -= ps;
    this.#duePs -= ps;
    this.#moveDuePs -= ps;
    this.#updateFcDuePs -= ps;
    this.#limitsDuePs -= ps;
    this.#scheduledPs -= ps;
  }

  /** See {@link LinkReceiver.drainUndelivered}. */
  drainUndelivered(): TrafficCount {
    return this.receiver.drainUndelivered(this.#trafficClassCount);
  }

  /**
   * See Block.inspect. Shows credits as they are after all arrivals and releases count, independent of the port's last call.
   * Does not show TLPs whose flow returns no credits.
   */
  inspect(): BlockState {
    const { flows } = this.transmitter;
    return Object.fromEntries(flows.map((flow, index) => [FLOW_NAMES[index], this.#inspectFlow(flow)]));
  }

  #inspectFlow({ flow, fifo, credits }: TransmitFlow): BlockState {
    const limit = (this.#limitsFlows & (1 << flow)) === 0 ? credits.limit : this.#limits[flow]!;
    const givesCredits = flow !== COMPLETION_FLOW || this.returnsCompletionCredits;
    return {
      waiting: fifo.count,
      waitsFor: this.transmitter.stallReasonOf(flow) ?? 'nothing',
      consumed: [headersOf(credits.consumed), dataOf(credits.consumed)],
      limit: [headersOf(limit), dataOf(limit)],
      received: givesCredits ? this.receiver.creditsOf(flow).heldCount : 0,
    };
  }

  // ---- inside ----

  /** Called by a record, at its time. */
  deliver(offset: number): void {
    const nowPs = this.#lp.nowPs;
    if (this.#duePs <= nowPs) this.#catchUp();
    const kind = this.reader.takenKind;
    if (kind === UPDATE_FC) {
      this.#noteLimits(nowPs, offset);
      return;
    }
    if (kind === COMPLETION_DATA && this.#runReceiver.receiveCompletionRun(offset)) return;
    if (kind < SIDEBAND_BASE) {
      const { receiver } = this;
      receiver.receive(offset, kind);
      if (receiver.ackDuePs < this.#duePs) this.#duePs = receiver.ackDuePs;
    }
    this.#tlpReceiver.receiveTlp(offset, kind);
  }

  #noteLimits(nowPs: Picoseconds, offset: number): void {
    const words = this.reader.words;
    const word = offset >> 2;
    const flow = words[word + WORD_FC_FLOW]!;
    this.#limits[flow] = words[word + WORD_FC_LIMIT]!;
    this.#limitsFlows |= 1 << flow;
    this.#limitsDuePs = nowPs + 1;
    this.reader.release(offset);
    this.#planMoves();
  }

  /** {@link #catchUp} for an instant that the process has not reached yet, but before which it has no other work. */
  #catchUpTo(instantPs: Picoseconds): void {
    const lp = this.#lp;
    const { nowPs } = lp;
    lp.nowPs = instantPs;
    this.#catchUp();
    lp.nowPs = nowPs;
  }

  /** Runs the work due inside up to now, in the order of its instants. */
  #catchUp(): void {
    const { transmitter, receiver } = this;
    const { nowPs } = this.#lp;
    while (this.#duePs <= nowPs) {
      const atPs = this.#duePs;
      if (receiver.ackDuePs === atPs) {
        receiver.acknowledge();
        transmitter.lanes.sendAck(atPs);
      }
      if (this.#moveDuePs === atPs) this.#move(atPs);
      else this.#duePs = receiver.ackDuePs < this.#moveDuePs ? receiver.ackDuePs : this.#moveDuePs;
    }
  }

  /** Returns credits, applies limits, and lets TLPs leave that wait for either or for room. */
  #move(atPs: Picoseconds): void {
    const { transmitter } = this;
    if (this.#updateFcDuePs === atPs) this.#sendLimits(atPs);
    const canLeave = this.#limitsDuePs === atPs || transmitter.resumePs === atPs;
    if (this.#limitsDuePs === atPs) this.#applyLimits();
    if (canLeave) transmitter.pump(atPs);
    this.#planMoves();
  }

  #sendLimits(atPs: Picoseconds): void {
    for (let flow = 0; flow < FLOW_COUNT; flow++) {
      if ((this.#updateFcFlows & (1 << flow)) === 0) continue;
      const credits = this.receiver.creditsOf(flow);
      credits.allocateFreed();
      this.transmitter.lanes.sendUpdateFc(atPs, flow, credits.allocated);
    }
    this.#updateFcFlows = 0;
    this.#updateFcDuePs = NEVER;
  }

  #applyLimits(): void {
    for (let flow = 0; flow < FLOW_COUNT; flow++) {
      if ((this.#limitsFlows & (1 << flow)) === 0) continue;
      this.transmitter.flows[flow]!.credits.limit = this.#limits[flow]!;
    }
    this.#limitsFlows = 0;
    this.#limitsDuePs = NEVER;
  }

  /** Finds the next due work, and schedules what others wait for. */
  #planMoves(): void {
    const { receiver, transmitter } = this;
    let duePs = this.#updateFcDuePs;
    if (this.#limitsDuePs < duePs) duePs = this.#limitsDuePs;
    if (transmitter.resumePs < duePs) duePs = transmitter.resumePs;
    this.#moveDuePs = duePs;
    this.#duePs = receiver.ackDuePs < duePs ? receiver.ackDuePs : duePs;
    if (transmitter.waitingCount === 0) this.#lp.sendBy(this.#updateFcDuePs);
    else if (duePs < this.#scheduledPs) this.#schedule();
  }

  #schedule(): void {
    this.#scheduledPs = this.#moveDuePs;
    this.#lp.queue.schedule(this.#moveDuePs, this.#eventHandler);
  }

  /** Returns credits that are due. */
  sendDue(): void {
    if (this.#duePs <= this.#lp.nowPs) this.#catchUp();
    this.#lp.sendBy(this.#updateFcDuePs);
  }

  #runEvent(): void {
    const nowPs = this.#lp.nowPs;
    if (this.#scheduledPs <= nowPs) this.#scheduledPs = NEVER;
    if (this.#duePs <= nowPs) this.#catchUp();
    this.#planMoves();
  }
}

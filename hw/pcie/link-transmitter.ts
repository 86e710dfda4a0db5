/**
 * The transmitting half of a link port: three bounded fifos, the ordering rules, credits, and the lanes.
 *
 *     place ──► posted     ──┐
 *     place ──► non-posted ──┼─► oldest that may go and has credits ─► transmit buffer ─► lanes ─► channel
 *     place ──► completion ──┘
 *
 * A TLP that finds the fifos empty, its credits there and room in the transmit buffer is booked on the lanes at
 * once: its arrival is known and its record appended without any event. The transmit buffer bounds how far
 * ahead TLPs are booked; when it is full, or credits lack, TLPs wait in the fifos and leave in {@link pump}.
 *
 * The replay buffer that a real port keeps until the Ack is taken to be large enough never to throttle it.
 */
import { InvariantError } from '../../base/assert.ts';
import type { ChannelWriter } from '../../sim/channel.ts';
import { CREDITS_LACK_DATA, CREDITS_READY, TransmitCredits } from './credits.ts';
import { DLLP_LINK_BYTES } from './dllp.ts';
import { PayloadCopier } from './link-copy.ts';
import { TransmitFifo } from './link-fifo.ts';
import { mayPass } from './link-ordering.ts';
import { advertisedCredits, type LinkConfig, type LinkEndConfig } from './link-parameters.ts';
import { LinkSerializer, linkRateOf } from './link-rate.ts';
import {
  COMPLETION_DATA,
  COMPLETION_FLOW,
  dataCreditsOf,
  dataDwordsOf,
  FLOAT_ADDRESS,
  FLOAT_ISSUED,
  FLOW_COUNT,
  flowOf,
  headerBytesOf,
  MEMORY_WRITE,
  NON_POSTED,
  PAYLOAD_OFFSET,
  POSTED,
  tlpFramingOf,
  totalFramingBytes,
  UPDATE_FC,
  WORD_AUX,
  WORD_BYTE_COUNT,
  WORD_DATA,
  WORD_FC_DATA,
  WORD_FC_FLOW,
  WORD_FC_HEADERS,
  WORD_FLAGS,
  WORD_LENGTH,
  WORD_REQUESTER_ID,
  WORD_TAG,
  WORD_TRAFFIC_CLASS,
} from './tlp.ts';

/** Why the oldest TLP of a flow waits. */
export const STALL_REASONS = ['serializer', 'headerCredits', 'dataCredits', 'ordering'] as const;
const STALL_SERIALIZER = 0;
const STALL_HEADER_CREDITS = 1;
const STALL_DATA_CREDITS = 2;
const STALL_ORDERING = 3;
const STALL_COUNT = STALL_REASONS.length;
const NOT_STALLED = -1;
const NEVER = Number.POSITIVE_INFINITY;

export class LinkTransmitter {
  readonly credits = new TransmitCredits();
  readonly fifos: readonly [TransmitFifo, TransmitFifo, TransmitFifo];
  /** TLPs in all fifos. */
  waitingCount = 0;
  /** Instant at which the full transmit buffer has room again and TLPs wait for it. */
  resumePs = NEVER;
  /** Where the payload of the TLP just placed goes. */
  payloadTarget: PayloadCopier;
  payloadOffset = 0;

  readonly tlpCount = new Float64Array(FLOW_COUNT);
  /** Link bytes of TLPs by flow, framing included. */
  readonly tlpLinkBytes = new Float64Array(FLOW_COUNT);
  readonly payloadBytes = new Float64Array(FLOW_COUNT);
  ackCount = 0;
  updateFcCount = 0;
  /** Picoseconds that the oldest TLP of flow f waited for reason r, at f × 4 + r. */
  readonly stallPs = new Float64Array(FLOW_COUNT * STALL_COUNT);

  readonly #serializer: LinkSerializer;
  readonly #psPerByte: number;
  readonly #latencyPs: number;
  readonly #framingBytes: number;
  readonly #writer: ChannelWriter;
  readonly #channelPayload: PayloadCopier;
  readonly #bufferEnds: Float64Array;
  #bufferHead = 0;
  #bufferCount = 0;
  #sequence = 0;
  readonly #stallReason = new Int8Array(FLOW_COUNT).fill(NOT_STALLED);
  readonly #stallSincePs = new Float64Array(FLOW_COUNT);
  readonly #onSpace: (() => void)[][] = [[], [], []];

  constructor(link: LinkConfig, end: LinkEndConfig, peer: LinkEndConfig, writer: ChannelWriter) {
    const rate = linkRateOf(link);
    this.#serializer = new LinkSerializer(rate, link.packetAlignmentBytes, DLLP_LINK_BYTES);
    this.#psPerByte = rate.numeratorPs / rate.denominatorBytes;
    this.#latencyPs = link.latencyPs;
    this.#framingBytes = totalFramingBytes(tlpFramingOf(link.generation));
    this.#writer = writer;
    this.#channelPayload = new PayloadCopier(writer.bytes);
    this.payloadTarget = this.#channelPayload;
    this.#bufferEnds = new Float64Array(end.transmitBufferTlps);
    this.fifos = [
      new TransmitFifo(end.postedFifoTlps, link.maxPayloadBytes),
      new TransmitFifo(end.nonPostedFifoTlps, 0),
      new TransmitFifo(end.completionFifoTlps, link.maxPayloadBytes),
    ];
    for (const flow of [POSTED, NON_POSTED, COMPLETION_FLOW]) {
      const [headers, data] = advertisedCredits(peer, flow);
      this.credits.initialise(flow, headers, data);
    }
  }

  /** Calls `listener` whenever a full fifo of this flow has room again. */
  onSpace(flow: number, listener: () => void): void {
    this.#onSpace[flow]!.push(listener);
  }

  /** Hands over a TLP. Its payload, if it has one, is then copied to {@link payloadTarget} at {@link payloadOffset}. */
  place(
    nowPs: number,
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
    const flow = flowOf(kind);
    if (this.waitingCount === 0 && this.#hasBufferRoom(nowPs)) {
      const dwords = dataDwordsOf(kind, address, lengthBytes);
      const dataCredits = dataCreditsOf(dwords);
      if (this.credits.check(flow, dataCredits) === CREDITS_READY) {
        this.credits.consume(flow, dataCredits);
        const offset = this.#book(nowPs, flow, kind, address, lengthBytes, dwords);
        this.#fill(
          offset,
          flags,
          trafficClass,
          tag,
          requesterId,
          address,
          lengthBytes,
          byteCount,
          data,
          aux,
          nowPs,
        );
        this.payloadTarget = this.#channelPayload;
        this.payloadOffset = offset + PAYLOAD_OFFSET;
        return;
      }
    }
    const fifo = this.fifos[flow]!;
    if (fifo.count === fifo.capacity) {
      throw new InvariantError('pcie transmit fifo', 'full', 'a sender that asks canSend first');
    }
    const slot = fifo.take();
    this.waitingCount++;
    fifo.sequence[slot] = this.#sequence++;
    fifo.kind[slot] = kind;
    fifo.flags[slot] = flags;
    fifo.trafficClass[slot] = trafficClass;
    fifo.tag[slot] = tag;
    fifo.requesterId[slot] = requesterId;
    fifo.address[slot] = address;
    fifo.lengthBytes[slot] = lengthBytes;
    fifo.byteCount[slot] = byteCount;
    fifo.data[slot] = data;
    fifo.aux[slot] = aux;
    fifo.issuedPs[slot] = nowPs;
    this.payloadTarget = fifo.payloads;
    this.payloadOffset = slot * fifo.slotBytes;
  }

  /** Books every waiting TLP that may leave at `nowPs`. */
  pump(nowPs: number): void {
    this.resumePs = NEVER;
    while (this.waitingCount > 0) {
      if (!this.#hasBufferRoom(nowPs)) {
        for (let flow = 0; flow < FLOW_COUNT; flow++) {
          if (this.fifos[flow]!.count > 0) this.#stall(flow, STALL_SERIALIZER, nowPs);
        }
        this.resumePs = this.#bufferEnds[this.#bufferHead]!;
        return;
      }
      const flow = this.#choose(nowPs);
      if (flow === FLOW_COUNT) return;
      this.#leave(flow, nowPs);
    }
  }

  /** Sends a flow's limits to the other end. */
  sendUpdateFc(nowPs: number, flow: number, headerLimit: number, dataLimit: number): void {
    this.updateFcCount++;
    const offset = this.#writer.append(this.#serializer.sendDllp(nowPs) + this.#latencyPs, UPDATE_FC, 0);
    const words = this.#writer.words;
    words[(offset >> 2) + WORD_FC_FLOW] = flow;
    words[(offset >> 2) + WORD_FC_HEADERS] = headerLimit;
    words[(offset >> 2) + WORD_FC_DATA] = dataLimit;
  }

  /** Sends an Ack: it takes its time on the lanes and has no effect in a link that loses nothing. */
  sendAck(nowPs: number): void {
    this.ackCount++;
    this.#serializer.sendDllp(nowPs);
  }

  /** Raises a wire beside the lanes, seen by the other end behind everything booked. */
  sendSideband(nowPs: number, kind: number, data: number): void {
    const atPs = Math.max(nowPs, this.#serializer.freePs) + this.#latencyPs;
    const offset = this.#writer.append(atPs, kind, 0);
    this.#writer.words[(offset >> 2) + WORD_DATA] = data;
  }

  /** Link bytes so far: TLPs with framing, DLLPs and padding. */
  get linkBytes(): number {
    const dllpBytes = (this.ackCount + this.updateFcCount) * DLLP_LINK_BYTES;
    return (
      this.tlpLinkBytes[0]! + this.tlpLinkBytes[1]! + this.tlpLinkBytes[2]! + dllpBytes + this.paddingBytes
    );
  }

  get paddingBytes(): number {
    return this.#serializer.paddingBytes;
  }

  /** Picoseconds for which the lanes were taken, rounded down. */
  get busyPs(): number {
    return Math.floor(this.linkBytes * this.#psPerByte);
  }

  /** Brings the stall times up to `nowPs`. */
  closeAccount(nowPs: number): void {
    for (let flow = 0; flow < FLOW_COUNT; flow++) this.#stall(flow, this.#stallReason[flow]!, nowPs);
  }

  #hasBufferRoom(nowPs: number): boolean {
    const ends = this.#bufferEnds;
    while (this.#bufferCount > 0 && ends[this.#bufferHead]! <= nowPs) {
      this.#bufferHead = this.#bufferHead + 1 === ends.length ? 0 : this.#bufferHead + 1;
      this.#bufferCount--;
    }
    return this.#bufferCount < ends.length;
  }

  /** Puts a TLP on the lanes and appends its record, whose words are still to be filled. */
  #book(
    nowPs: number,
    flow: number,
    kind: number,
    address: number,
    lengthBytes: number,
    dwords: number,
  ): number {
    const linkBytes = headerBytesOf(kind, address) + dwords * 4 + this.#framingBytes;
    const payloadBytes = kind === MEMORY_WRITE || kind === COMPLETION_DATA ? lengthBytes : 0;
    this.tlpCount[flow] = this.tlpCount[flow]! + 1;
    this.tlpLinkBytes[flow] = this.tlpLinkBytes[flow]! + linkBytes;
    this.payloadBytes[flow] = this.payloadBytes[flow]! + payloadBytes;
    const endPs = this.#serializer.sendTlp(nowPs, linkBytes);
    let tail = this.#bufferHead + this.#bufferCount;
    if (tail >= this.#bufferEnds.length) tail -= this.#bufferEnds.length;
    this.#bufferEnds[tail] = endPs;
    this.#bufferCount++;
    return this.#writer.append(endPs + this.#latencyPs, kind, payloadBytes);
  }

  #fill(
    offset: number,
    flags: number,
    trafficClass: number,
    tag: number,
    requesterId: number,
    address: number,
    lengthBytes: number,
    byteCount: number,
    data: number,
    aux: number,
    issuedPs: number,
  ): void {
    const word = offset >> 2;
    const { words, floats } = this.#writer;
    words[word + WORD_FLAGS] = flags;
    words[word + WORD_TRAFFIC_CLASS] = trafficClass;
    words[word + WORD_TAG] = tag;
    words[word + WORD_REQUESTER_ID] = requesterId;
    floats[(offset >> 3) + FLOAT_ADDRESS] = address;
    words[word + WORD_LENGTH] = lengthBytes;
    words[word + WORD_BYTE_COUNT] = byteCount;
    words[word + WORD_DATA] = data;
    words[word + WORD_AUX] = aux;
    floats[(offset >> 3) + FLOAT_ISSUED] = issuedPs;
  }

  /** The oldest head that has its credits and may pass every older one that waits; FLOW_COUNT when none does. */
  #choose(nowPs: number): number {
    let chosen: number = FLOW_COUNT;
    let chosenSequence = NEVER;
    for (let flow = 0; flow < FLOW_COUNT; flow++) {
      const fifo = this.fifos[flow]!;
      if (fifo.count === 0) continue;
      const reason = this.#whyHeadWaits(flow);
      if (reason !== NOT_STALLED) {
        this.#stall(flow, reason, nowPs);
        continue;
      }
      const sequence = fifo.sequence[fifo.head]!;
      if (sequence >= chosenSequence) continue;
      chosen = flow;
      chosenSequence = sequence;
    }
    return chosen;
  }

  #whyHeadWaits(flow: number): number {
    const fifo = this.fifos[flow]!;
    const slot = fifo.head;
    const kind = fifo.kind[slot]!;
    const sequence = fifo.sequence[slot]!;
    for (let other = 0; other < FLOW_COUNT; other++) {
      const olderFifo = this.fifos[other]!;
      if (other === flow || olderFifo.count === 0 || olderFifo.sequence[olderFifo.head]! > sequence) continue;
      if (!mayPass(kind, fifo.flags[slot]!, olderFifo.kind[olderFifo.head]!)) return STALL_ORDERING;
    }
    const dwords = dataDwordsOf(kind, fifo.address[slot]!, fifo.lengthBytes[slot]!);
    const lack = this.credits.check(flow, dataCreditsOf(dwords));
    if (lack === CREDITS_READY) return NOT_STALLED;
    return lack === CREDITS_LACK_DATA ? STALL_DATA_CREDITS : STALL_HEADER_CREDITS;
  }

  /** The head of a fifo goes to the lanes. */
  #leave(flow: number, nowPs: number): void {
    this.#stall(flow, NOT_STALLED, nowPs);
    const fifo = this.fifos[flow]!;
    const slot = fifo.head;
    const kind = fifo.kind[slot]!;
    const address = fifo.address[slot]!;
    const lengthBytes = fifo.lengthBytes[slot]!;
    const dwords = dataDwordsOf(kind, address, lengthBytes);
    this.credits.consume(flow, dataCreditsOf(dwords));
    const offset = this.#book(nowPs, flow, kind, address, lengthBytes, dwords);
    this.#fill(
      offset,
      fifo.flags[slot]!,
      fifo.trafficClass[slot]!,
      fifo.tag[slot]!,
      fifo.requesterId[slot]!,
      address,
      lengthBytes,
      fifo.byteCount[slot]!,
      fifo.data[slot]!,
      fifo.aux[slot]!,
      fifo.issuedPs[slot]!,
    );
    if (kind === MEMORY_WRITE || kind === COMPLETION_DATA) {
      this.#channelPayload.copy(
        fifo.payloads.target,
        slot * fifo.slotBytes,
        offset + PAYLOAD_OFFSET,
        lengthBytes,
      );
    }
    const wasFull = fifo.count === fifo.capacity;
    fifo.drop();
    this.waitingCount--;
    if (wasFull) for (const listener of this.#onSpace[flow]!) listener();
  }

  #stall(flow: number, reason: number, nowPs: number): void {
    const old = this.#stallReason[flow]!;
    if (old !== NOT_STALLED) {
      const account = flow * STALL_COUNT + old;
      this.stallPs[account] = this.stallPs[account]! + nowPs - this.#stallSincePs[flow]!;
    }
    this.#stallReason[flow] = reason;
    this.#stallSincePs[flow] = nowPs;
  }
}

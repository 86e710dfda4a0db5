/**
 * The transmitting half of a link port: three bounded fifos, the ordering rules, credits, and the lanes.
 *
 *     place ──► posted     ──┐
 *     place ──► non-posted ──┼─► oldest that may leave and has credits ─► transmit buffer ─► lanes ─► channel
 *     place ──► completion ──┘
 *
 * A TLP is placed on the lanes at once if the fifos are empty, its credits are available and the transmit buffer has room: its
 * arrival is known and its record appended without any event. The transmit buffer limits how far ahead TLPs are placed. If it
 * is full, or credits are missing, TLPs wait in the fifos and leave in {@link pump}.
 *
 * A real port keeps TLPs in a replay buffer until the Ack; it is assumed to be large enough never to throttle the port.
 */

import { InvariantError, NEVER, type Picoseconds } from '../../../base/index.ts';
import { type ChannelWriter, type LogicalProcess, NOT_STALLED } from '../../../sim/index.ts';
import {
  COMPLETION_FLOW,
  carriedBytesOf,
  DWORD_BYTES,
  dataCreditsOf,
  dataDwordsOf,
  FLOAT_ADDRESS,
  headerBytesOf,
  NON_POSTED,
  POSTED,
  payloadBytesOf,
  SHORT_HEADER_BYTES,
  WORD_FLAGS,
  WORD_KIND,
  WORD_LENGTH,
} from '../tlp/index.ts';
import { headersOf, tlpCredits } from './flow-control.ts';
import { LinkLanes } from './link-lanes.ts';
import { mayPass } from './link-ordering.ts';
import type { LinkConfig, LinkEndConfig } from './link-parameters.ts';
import {
  STALL_DATA_CREDITS,
  STALL_HEADER_CREDITS,
  STALL_ORDERING,
  STALL_SERIALIZER,
  StallAccount,
} from './link-stall.ts';
import { RecordMemory } from './record-memory.ts';
import { TransmitFlow } from './transmit-flow.ts';

export class LinkTransmitter {
  readonly lanes: LinkLanes;
  readonly posted: TransmitFlow;
  readonly nonPosted: TransmitFlow;
  readonly completion: TransmitFlow;
  readonly flows: readonly [posted: TransmitFlow, nonPosted: TransmitFlow, completion: TransmitFlow];
  /** TLPs in all fifos. */
  waitingCount = 0;
  /** Flows whose fifo is full: bit n for flow n. */
  fullFlows = 0;
  /** Instant at which the full transmit buffer has room again while TLPs wait for it. */
  resumePs = NEVER;
  /**
   * Memory into which the sender writes the TLP just placed: the channel, except between a waiting {@link place} and
   * the following {@link pump}.
   */
  target: RecordMemory;

  readonly #lp: LogicalProcess;
  readonly #channel: RecordMemory;
  readonly #stalls = new StallAccount();
  #sequence = 0;

  constructor(
    lp: LogicalProcess,
    link: LinkConfig,
    end: LinkEndConfig,
    peer: LinkEndConfig,
    writer: ChannelWriter,
  ) {
    this.lanes = new LinkLanes(link, end.transmitBufferTlps, writer);
    this.#lp = lp;
    this.#channel = new RecordMemory(writer.bytes);
    this.target = this.#channel;
    this.posted = new TransmitFlow(POSTED, peer, end.postedFifoTlps, link.maxPayloadBytes);
    this.nonPosted = new TransmitFlow(NON_POSTED, peer, end.nonPostedFifoTlps, 0);
    this.completion = new TransmitFlow(COMPLETION_FLOW, peer, end.completionFifoTlps, link.maxPayloadBytes);
    this.flows = [this.posted, this.nonPosted, this.completion];
  }

  /**
   * Accepts a TLP: it leaves at once, or waits. Returns the offset in {@link target} at which the sender fills in its record,
   * before {@link pump}.
   */
  place(
    flow: TransmitFlow,
    kind: number,
    headerBytes: number,
    dataDwords: number,
    payloadBytes: number,
    carriedBytes: number,
  ): number {
    const { nowPs } = this.#lp;
    const credits = tlpCredits(dataCreditsOf(dataDwords));
    const mayLeave =
      this.waitingCount === 0 && this.lanes.roomPs <= nowPs && flow.credits.deficit(credits) === 0;
    if (!mayLeave) return this.#wait(flow, kind);
    flow.credits.consume(credits);
    const tlpBytes = headerBytes + dataDwords * DWORD_BYTES;
    return this.lanes.reserve(nowPs, flow, kind, tlpBytes, payloadBytes, carriedBytes);
  }

  /**
   * Accepts, at `nowPs`, a TLP with a short header that leaves at once: {@link countAll} adds it to the statistics. Returns the
   * offset of its record in the channel, or -1: nothing has happened.
   */
  placeAt(nowPs: Picoseconds, flow: TransmitFlow, kind: number, dataDwords: number): number {
    const credits = tlpCredits(dataCreditsOf(dataDwords));
    if (this.waitingCount > 0 || this.lanes.roomPs > nowPs || flow.credits.deficit(credits) !== 0) return -1;
    flow.credits.consume(credits);
    const { lanes } = this;
    return lanes.carry(nowPs, kind, SHORT_HEADER_BYTES + dataDwords * DWORD_BYTES + lanes.framingBytes, 0);
  }

  /** Adds TLPs with short headers and whole dwords of payload to the statistics. */
  countAll(flow: TransmitFlow, tlps: number, payloadBytes: number): void {
    const overheadBytes = SHORT_HEADER_BYTES + this.lanes.framingBytes;
    flow.sent.addAll(tlps, payloadBytes + tlps * overheadBytes, payloadBytes);
  }

  /** Puts every waiting TLP that may leave at `nowPs` on the lanes. */
  pump(nowPs: Picoseconds): void {
    this.target = this.#channel;
    this.resumePs = NEVER;
    while (this.waitingCount > 0) {
      const { roomPs } = this.lanes;
      if (roomPs > nowPs) {
        for (const { flow, fifo } of this.flows) {
          if (fifo.count > 0) this.#stalls.note(flow, STALL_SERIALIZER, nowPs);
        }
        this.resumePs = roomPs;
        return;
      }
      const flow = this.#choose(nowPs);
      if (flow === undefined) return;
      this.#leaveFifo(flow, nowPs);
    }
  }

  /** Picoseconds for which the oldest TLP of flow f waited for reason r, at f × {@link STALL_REASONS}.length + r. */
  get stallPs(): Float64Array {
    return this.#stalls.stallPs;
  }

  /** TLPs put on the lanes, by flow. */
  get tlpCount(): Float64Array {
    return Float64Array.from(this.flows, ({ sent }) => sent.tlps);
  }

  /** Link bytes of TLPs by flow, framing included. */
  get tlpLinkBytes(): Float64Array {
    return Float64Array.from(this.flows, ({ sent }) => sent.linkBytes);
  }

  get payloadBytes(): Float64Array {
    return Float64Array.from(this.flows, ({ sent }) => sent.payloadBytes);
  }

  /** Link bytes so far: TLPs with framing, DLLPs and padding. */
  get linkBytes(): number {
    const { dllpBytes, paddingBytes } = this.lanes;
    return this.flows.reduce((sum, { sent }) => sum + sent.linkBytes, dllpBytes + paddingBytes);
  }

  /** Picoseconds for which the lanes were occupied, rounded down. */
  get busyPs(): Picoseconds {
    return this.lanes.durationPs(this.linkBytes);
  }

  /** Why the oldest waiting TLP of a flow's fifo waits; undefined if none does. */
  stallReasonOf(flow: number): string | undefined {
    return this.#stalls.reasonOf(flow);
  }

  /** Brings the stall times up to `nowPs`. */
  closeAccount(nowPs: Picoseconds): void {
    this.#stalls.close(nowPs);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.lanes.rebase(ps);
    this.resumePs -= ps;
    this.#stalls.rebase(ps);
  }

  /** A TLP occupies a slot of its flow's fifo. Returns its record's offset there. */
  #wait(flow: TransmitFlow, kind: number): number {
    const { fifo } = flow;
    if (fifo.count === fifo.capacity) {
      throw new InvariantError('pcie transmit fifo', 'full', 'a sender that asks canSend first');
    }
    this.waitingCount++;
    const offset = fifo.take(this.#sequence++);
    if (fifo.count === fifo.capacity) this.fullFlows |= 1 << flow.flow;
    fifo.memory.words[(offset >> 2) + WORD_KIND] = kind;
    this.target = fifo.memory;
    return offset;
  }

  /** The oldest head that has its credits and may pass every older waiting one, if any. */
  #choose(nowPs: Picoseconds): TransmitFlow | undefined {
    let chosen: TransmitFlow | undefined;
    for (const flow of this.flows) {
      if (flow.fifo.count === 0) continue;
      const reason = this.#headStallReason(flow);
      if (reason !== NOT_STALLED) this.#stalls.note(flow.flow, reason, nowPs);
      else if (chosen === undefined || flow.fifo.headSequence < chosen.fifo.headSequence) chosen = flow;
    }
    return chosen;
  }

  #headStallReason({ fifo, credits }: TransmitFlow): number {
    const { words, floats } = fifo.memory;
    const word = fifo.headOffset >> 2;
    const kind = words[word + WORD_KIND]!;
    for (const { fifo: other } of this.flows) {
      if (other === fifo || other.count === 0 || other.headSequence > fifo.headSequence) continue;
      const olderKind = other.memory.words[(other.headOffset >> 2) + WORD_KIND]!;
      if (!mayPass(kind, words[word + WORD_FLAGS]!, olderKind)) return STALL_ORDERING;
    }
    const dataDwords = dataDwordsOf(kind, floats[(word >> 1) + FLOAT_ADDRESS]!, words[word + WORD_LENGTH]!);
    const deficit = credits.deficit(tlpCredits(dataCreditsOf(dataDwords)));
    if (deficit === 0) return NOT_STALLED;
    return headersOf(deficit) === 0 ? STALL_DATA_CREDITS : STALL_HEADER_CREDITS;
  }

  /** The head of a fifo is put on the lanes. */
  #leaveFifo(flow: TransmitFlow, nowPs: Picoseconds): void {
    this.#stalls.note(flow.flow, NOT_STALLED, nowPs);
    const { fifo } = flow;
    const { words, floats } = fifo.memory;
    const from = fifo.headOffset;
    const kind = words[(from >> 2) + WORD_KIND]!;
    const lengthBytes = words[(from >> 2) + WORD_LENGTH]!;
    const address = floats[(from >> 3) + FLOAT_ADDRESS]!;
    const dataDwords = dataDwordsOf(kind, address, lengthBytes);
    const payloadBytes = payloadBytesOf(kind, lengthBytes);
    flow.credits.consume(tlpCredits(dataCreditsOf(dataDwords)));
    const tlpBytes = headerBytesOf(kind, address) + dataDwords * DWORD_BYTES;
    const carriedBytes = carriedBytesOf(words[(from >> 2) + WORD_FLAGS]!, payloadBytes);
    const to = this.lanes.reserve(nowPs, flow, kind, tlpBytes, payloadBytes, carriedBytes);
    this.#channel.move(fifo.memory, from, to, carriedBytes);
    const wasFull = fifo.count === fifo.capacity;
    fifo.drop();
    this.waitingCount--;
    if (!wasFull) return;
    this.fullFlows &= ~(1 << flow.flow);
    for (const sender of flow.senders) sender.linkSpace();
  }
}

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
import * as credit from './credits.ts';
import { TransmitCredits } from './credits.ts';
import { PayloadCopier } from './link-copy.ts';
import { TransmitFifo } from './link-fifo.ts';
import { LinkLanes } from './link-lanes.ts';
import { mayPass } from './link-ordering.ts';
import { advertisedCredits, type LinkConfig, type LinkEndConfig } from './link-parameters.ts';
import {
  NOT_STALLED,
  STALL_DATA_CREDITS,
  STALL_HEADER_CREDITS,
  STALL_ORDERING,
  STALL_SERIALIZER,
  StallAccount,
} from './link-stall.ts';
import * as tlp from './tlp.ts';
import { dataCreditsOf, dataDwordsOf, flowOf } from './tlp.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { CREDITS_LACK_DATA, CREDITS_READY } = credit;
const { COMPLETION_DATA, COMPLETION_FLOW, FLOW_COUNT, MEMORY_WRITE, NON_POSTED, PAYLOAD_OFFSET, POSTED } =
  tlp;

const NEVER = Number.POSITIVE_INFINITY;

export class LinkTransmitter extends LinkLanes {
  readonly credits = new TransmitCredits();
  readonly fifos: readonly [TransmitFifo, TransmitFifo, TransmitFifo];
  /** TLPs in all fifos. */
  waitingCount = 0;
  /** Instant at which the full transmit buffer has room again and TLPs wait for it. */
  resumePs = NEVER;
  /** Where the payload of the TLP just placed goes. */
  payloadTarget: PayloadCopier;
  payloadOffset = 0;

  readonly #stalls = new StallAccount();

  readonly #channelPayload: PayloadCopier;
  #sequence = 0;
  readonly #onSpace: (() => void)[][] = [[], [], []];

  constructor(link: LinkConfig, end: LinkEndConfig, peer: LinkEndConfig, writer: ChannelWriter) {
    super(link, end.transmitBufferTlps, writer);
    this.#channelPayload = new PayloadCopier(writer.bytes);
    this.payloadTarget = this.#channelPayload;
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
    if (this.waitingCount === 0 && this.hasRoom(nowPs)) {
      const dwords = dataDwordsOf(kind, address, lengthBytes);
      const dataCredits = dataCreditsOf(dwords);
      if (this.credits.check(flow, dataCredits) === CREDITS_READY) {
        this.credits.consume(flow, dataCredits);
        const offset = this.book(
          nowPs,
          flow,
          dwords,
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
          nowPs,
        );
        this.payloadTarget = this.#channelPayload;
        this.payloadOffset = offset + PAYLOAD_OFFSET;
        return;
      }
    }
    this.#wait(
      nowPs,
      flow,
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

  #wait(
    nowPs: number,
    flow: number,
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
      if (!this.hasRoom(nowPs)) {
        for (let flow = 0; flow < FLOW_COUNT; flow++) {
          if (this.fifos[flow]!.count > 0) this.#stalls.note(flow, STALL_SERIALIZER, nowPs);
        }
        this.resumePs = this.roomPs;
        return;
      }
      const flow = this.#choose(nowPs);
      if (flow === FLOW_COUNT) return;
      this.#leave(flow, nowPs);
    }
  }

  /** Picoseconds that the oldest TLP of flow f waited for reason r, at f × {@link STALL_REASONS}.length + r. */
  get stallPs(): Float64Array {
    return this.#stalls.stallPs;
  }

  /** Brings the stall times up to `nowPs`. */
  closeAccount(nowPs: number): void {
    this.#stalls.close(nowPs);
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
        this.#stalls.note(flow, reason, nowPs);
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
    this.#stalls.note(flow, NOT_STALLED, nowPs);
    const fifo = this.fifos[flow]!;
    const slot = fifo.head;
    const kind = fifo.kind[slot]!;
    const address = fifo.address[slot]!;
    const lengthBytes = fifo.lengthBytes[slot]!;
    const dwords = dataDwordsOf(kind, address, lengthBytes);
    this.credits.consume(flow, dataCreditsOf(dwords));
    const offset = this.book(
      nowPs,
      flow,
      dwords,
      kind,
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
}

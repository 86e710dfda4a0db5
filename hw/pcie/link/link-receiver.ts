/**
 * The receiving half of a link port: statistics of what arrived, credits to return, Acks to send.
 *
 * It only determines when something is due; the port sends it.
 */

import { assertInvariant, NEVER, type Picoseconds } from '../../../base/index.ts';
import type { ChannelReader, LogicalProcess } from '../../../sim/index.ts';
import {
  COMPLETION_FLOW,
  DWORD_BYTES,
  dataCreditsOf,
  dataDwordsOf,
  FLAG_POISONED,
  FLOAT_ADDRESS,
  flowOf,
  HELD_CREDITS_SHIFT,
  headerBytesOf,
  isTlp,
  NON_POSTED,
  POSTED,
  payloadBytesOf,
  SHORT_HEADER_BYTES,
  TRAFFIC_CLASS_COUNT_MAX,
  TrafficCount,
  tlpBytesOf,
  trafficClassOf,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_LENGTH,
} from '../tlp/index.ts';
import { ReceiveCredits, tlpCredits } from './flow-control.ts';
import { framingOf } from './link-framings.ts';
import {
  advertisedCredits,
  type LinkConfig,
  type LinkEndConfig,
  largestTlpCredits,
} from './link-parameters.ts';

/** Credits that a TLP holds, as one number: its flow + 1 in the low bits, its data credits above; 0 is none. */
const CREDITS_FLOW_BITS = 2;
const CREDITS_FLOW_MASK = 3;

export class LinkReceiver {
  readonly posted: ReceiveCredits;
  readonly nonPosted: ReceiveCredits;
  readonly completion: ReceiveCredits;
  readonly received: TrafficCount;
  /** TLPs for which the transmitter had no credits: a fault of the other end. */
  overflowCount = 0;
  poisonedCount = 0;
  /** Instant at which an Ack falls due, or Infinity. */
  ackDuePs = NEVER;

  readonly #lp: LogicalProcess;
  readonly #reader: ChannelReader;
  readonly #framingBytes: number;
  readonly #ackEveryTlps: number;
  readonly #ackLatencyPs: Picoseconds;
  /** TLPs still to arrive before an Ack is due. */
  #tlpsToAck: number;

  constructor(
    lp: LogicalProcess,
    link: LinkConfig,
    end: LinkEndConfig,
    reader: ChannelReader,
    trafficClassCount: number,
  ) {
    assertInvariant(
      trafficClassCount <= TRAFFIC_CLASS_COUNT_MAX,
      'a descriptor has room for the traffic class',
    );
    this.#lp = lp;
    this.#reader = reader;
    this.received = new TrafficCount(trafficClassCount);
    this.#framingBytes = framingOf(link.generation).tlpBytes;
    this.#ackEveryTlps = link.ackEveryTlps;
    this.#tlpsToAck = link.ackEveryTlps;
    this.#ackLatencyPs = link.ackLatencyPs;
    const creditsOf = (flow: number): ReceiveCredits => {
      const [headers, data] = advertisedCredits(end, flow);
      const largest = flow === NON_POSTED ? 1 : largestTlpCredits(link);
      return new ReceiveCredits(headers, data, link.updateFcPercent, largest);
    };
    this.posted = creditsOf(POSTED);
    this.nonPosted = creditsOf(NON_POSTED);
    this.completion = creditsOf(COMPLETION_FLOW);
  }

  creditsOf(flow: number): ReceiveCredits {
    return flow === POSTED ? this.posted : flow === NON_POSTED ? this.nonPosted : this.completion;
  }

  /** Delivered TLPs whose credits were not returned yet. */
  get heldCount(): number {
    return this.posted.heldCount + this.nonPosted.heldCount + this.completion.heldCount;
  }

  /** Counts an arrived TLP, and writes its credits into its record. */
  receive(offset: number, kind: number): void {
    const { words, floats } = this.#reader;
    const word = offset >> 2;
    const flags = words[word + WORD_FLAGS]!;
    const lengthBytes = words[word + WORD_LENGTH]!;
    const address = floats[(word >> 1) + FLOAT_ADDRESS]!;
    const dwords = dataDwordsOf(kind, address, lengthBytes);
    const dataCredits = dataCreditsOf(dwords);
    const flow = flowOf(kind);
    const heldCredits = (dataCredits << CREDITS_FLOW_BITS) | (flow + 1);
    words[word + WORD_FLAGS] = flags | (heldCredits << HELD_CREDITS_SHIFT);
    if ((flags & FLAG_POISONED) !== 0) this.poisonedCount++;
    const linkBytes = headerBytesOf(kind, address) + dwords * 4 + this.#framingBytes;
    this.received.add(
      trafficClassOf(words[word + WORD_DESCRIPTOR]!),
      linkBytes,
      payloadBytesOf(kind, lengthBytes),
    );
    if (!this.creditsOf(flow).receive(tlpCredits(dataCredits))) this.overflowCount++;
    this.countToAck();
  }

  /** Counts arrived TLPs with short headers that hold no credits; {@link countToAck} does so for each. */
  countAll(trafficClass: number, tlps: number, dataDwords: number, payloadBytes: number): void {
    const linkBytes = dataDwords * DWORD_BYTES + tlps * (SHORT_HEADER_BYTES + this.#framingBytes);
    this.received.addAll(trafficClass, tlps, linkBytes, payloadBytes);
  }

  /** A TLP that must be acknowledged has arrived. */
  countToAck(): void {
    const tlpsToAck = this.#tlpsToAck - 1;
    this.#tlpsToAck = tlpsToAck;
    if (tlpsToAck === 0 || this.ackDuePs === NEVER) this.#planAck(tlpsToAck === 0);
  }

  #planAck(isEnough: boolean): void {
    const { nowPs } = this.#lp;
    // The ACK is never later than the deadline set by the first of these TLPs.
    if (isEnough && nowPs + 1 < this.ackDuePs) this.ackDuePs = nowPs + 1;
    else if (this.ackDuePs === NEVER) this.ackDuePs = nowPs + this.#ackLatencyPs;
  }

  acknowledge(): void {
    this.#tlpsToAck = this.#ackEveryTlps;
    this.ackDuePs = NEVER;
  }

  /** Releases a record. Returns the credits that its TLP still holds, for {@link returnCredits}; 0 is none. */
  release(offset: number): number {
    const heldCredits = this.heldCredits(offset);
    this.#reader.release(offset);
    return heldCredits;
  }

  /** The credits that the TLP at `offset` holds, for {@link returnCredits}; 0 is none. */
  heldCredits(offset: number): number {
    return this.#reader.words[(offset >> 2) + WORD_FLAGS]! >>> HELD_CREDITS_SHIFT;
  }

  /** The room of a released TLP is free. Returns its flow if credits are now due to be returned, else -1. */
  returnCredits(credits: number): number {
    if (credits === 0) return -1;
    const flow = (credits & CREDITS_FLOW_MASK) - 1;
    return this.creditsOf(flow).free(tlpCredits(credits >> CREDITS_FLOW_BITS)) ? flow : -1;
  }

  /**
   * At the end of a run, counts the TLPs sent to this end that have not arrived: the sender has counted them, but no receiver
   * has. Removes them from the channel, so the machine cannot continue.
   */
  drainUndelivered(trafficClassCount: number): TrafficCount {
    const undelivered = new TrafficCount(trafficClassCount);
    const reader = this.#reader;
    reader.refresh();
    while (reader.nextPs !== NEVER) {
      const offset = reader.take();
      const kind = reader.kindAt(offset);
      if (isTlp(kind)) this.#count(undelivered, offset, kind, reader.words[(offset >> 2) + WORD_LENGTH]!);
      reader.release(offset);
    }
    return undelivered;
  }

  #count(into: TrafficCount, offset: number, kind: number, lengthBytes: number): void {
    const address = this.#reader.floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const linkBytes = tlpBytesOf(kind, address, lengthBytes) + this.#framingBytes;
    const trafficClass = trafficClassOf(this.#reader.words[(offset >> 2) + WORD_DESCRIPTOR]!);
    into.add(trafficClass, linkBytes, payloadBytesOf(kind, lengthBytes));
  }
}

/**
 * The receiving half of a link port: books of what arrived, credits to give back, Acks to send.
 *
 * It only says when something falls due; the port sends it.
 */
import type { ChannelReader } from '../../sim/channel.ts';
import { ReceiveCredits } from './credits.ts';
import {
  advertisedCredits,
  type LinkConfig,
  type LinkEndConfig,
  largestTlpCredits,
} from './link-parameters.ts';
import {
  COMPLETION_DATA,
  COMPLETION_FLOW,
  dataCreditsOf,
  dataDwordsOf,
  FLAG_POISONED,
  FLOAT_ADDRESS,
  FLOW_COUNT,
  flowOf,
  isTlp,
  MEMORY_WRITE,
  NON_POSTED,
  POSTED,
  tlpBytesOf,
  tlpFramingOf,
  totalFramingBytes,
  WORD_FLAGS,
  WORD_KIND,
  WORD_LENGTH,
  WORD_TRAFFIC_CLASS,
} from './tlp.ts';

const NEVER = Number.POSITIVE_INFINITY;
/** Credits that a TLP holds, as one number: its flow + 1 in the low bits, its data credits above. */
const CREDITS_FLOW_BITS = 2;
const CREDITS_FLOW_MASK = 3;

/** TLPs and bytes by traffic class. Link bytes include header and framing. */
export class TrafficCount {
  readonly tlps: Float64Array;
  readonly linkBytes: Float64Array;
  readonly payloadBytes: Float64Array;

  constructor(trafficClassCount: number) {
    this.tlps = new Float64Array(trafficClassCount);
    this.linkBytes = new Float64Array(trafficClassCount);
    this.payloadBytes = new Float64Array(trafficClassCount);
  }

  add(trafficClass: number, linkBytes: number, payloadBytes: number): void {
    this.tlps[trafficClass] = this.tlps[trafficClass]! + 1;
    this.linkBytes[trafficClass] = this.linkBytes[trafficClass]! + linkBytes;
    this.payloadBytes[trafficClass] = this.payloadBytes[trafficClass]! + payloadBytes;
  }
}

export class LinkReceiver {
  readonly credits = new ReceiveCredits();
  readonly received: TrafficCount;
  /** TLPs by flow. */
  readonly tlpCount = new Float64Array(FLOW_COUNT);
  /** TLPs for which the transmitter had no credits: a fault of the other end. */
  overflowCount = 0;
  poisonedCount = 0;
  /** Instant at which an Ack falls due, or Infinity. */
  ackDuePs = NEVER;
  /** TLPs delivered whose credits have not come back. */
  heldCount = 0;

  readonly #reader: ChannelReader;
  readonly #framingBytes: number;
  readonly #ackEveryTlps: number;
  readonly #ackLatencyPs: number;
  #unacknowledgedCount = 0;

  constructor(link: LinkConfig, end: LinkEndConfig, reader: ChannelReader, trafficClassCount: number) {
    this.#reader = reader;
    this.received = new TrafficCount(trafficClassCount);
    this.#framingBytes = totalFramingBytes(tlpFramingOf(link.generation));
    this.#ackEveryTlps = link.ackEveryTlps;
    this.#ackLatencyPs = link.ackLatencyPs;
    for (const flow of [POSTED, NON_POSTED, COMPLETION_FLOW]) {
      const [headers, data] = advertisedCredits(end, flow);
      const largest = flow === NON_POSTED ? 1 : largestTlpCredits(link);
      this.credits.initialise(flow, headers, data, link.updateFcPercent, largest);
    }
  }

  /** Books a TLP that has arrived. */
  receive(nowPs: number, offset: number, kind: number): void {
    const words = this.#reader.words;
    const word = offset >> 2;
    const flow = flowOf(kind);
    const lengthBytes = words[word + WORD_LENGTH]!;
    const dwords = this.#dataDwords(offset, kind);
    this.tlpCount[flow] = this.tlpCount[flow]! + 1;
    this.heldCount++;
    this.#count(this.received, offset, kind, lengthBytes);
    if (!this.credits.receive(flow, dataCreditsOf(dwords))) this.overflowCount++;
    if ((words[word + WORD_FLAGS]! & FLAG_POISONED) !== 0) this.poisonedCount++;
    this.#unacknowledgedCount++;
    if (this.#unacknowledgedCount === 1) this.ackDuePs = nowPs + this.#ackLatencyPs;
    if (this.#unacknowledgedCount >= this.#ackEveryTlps) this.ackDuePs = Math.min(this.ackDuePs, nowPs + 1);
  }

  acknowledge(): void {
    this.#unacknowledgedCount = 0;
    this.ackDuePs = NEVER;
  }

  /** Releases a record. Returns the credits that its TLP still holds, for {@link returnCredits}; 0 is none. */
  release(offset: number): number {
    const kind = this.#reader.words[(offset >> 2) + WORD_KIND]!;
    const credits = isTlp(kind)
      ? flowOf(kind) + 1 + (dataCreditsOf(this.#dataDwords(offset, kind)) << CREDITS_FLOW_BITS)
      : 0;
    this.#reader.release(offset);
    return credits;
  }

  /** The room of a released TLP is free. Returns its flow when credits are now due to be returned, else -1. */
  returnCredits(credits: number): number {
    if (credits === 0) return -1;
    this.heldCount--;
    const flow = (credits & CREDITS_FLOW_MASK) - 1;
    return this.credits.free(flow, credits >> CREDITS_FLOW_BITS) ? flow : -1;
  }

  /**
   * Counts, at the end of a run, the TLPs sent to this end that have not arrived: they were transmitted and are in
   * no receiver's books. Takes them off the channel: the machine cannot run on.
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

  #dataDwords(offset: number, kind: number): number {
    const address = this.#reader.floats[(offset >> 3) + FLOAT_ADDRESS]!;
    return dataDwordsOf(kind, address, this.#reader.words[(offset >> 2) + WORD_LENGTH]!);
  }

  #count(into: TrafficCount, offset: number, kind: number, lengthBytes: number): void {
    const address = this.#reader.floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const linkBytes = tlpBytesOf(kind, address, lengthBytes) + this.#framingBytes;
    const payloadBytes = kind === MEMORY_WRITE || kind === COMPLETION_DATA ? lengthBytes : 0;
    into.add(this.#reader.words[(offset >> 2) + WORD_TRAFFIC_CLASS]!, linkBytes, payloadBytes);
  }
}

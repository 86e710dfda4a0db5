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
import * as tlp from './tlp.ts';
import {
  dataCreditsOf,
  dataDwordsOf,
  flowOf,
  headerBytesOf,
  isTlp,
  tlpBytesOf,
  tlpFramingOf,
  totalFramingBytes,
} from './tlp.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { COMPLETION_DATA, COMPLETION_FLOW, FLOW_COUNT, MEMORY_WRITE, NON_POSTED, POSTED } = tlp;
const { FLAG_POISONED, FLOAT_ADDRESS, WORD_FLAGS, WORD_KIND, WORD_LENGTH, WORD_TRAFFIC_CLASS } = tlp;

const NEVER = Number.POSITIVE_INFINITY;
/** Credits that a TLP holds, as one number: its flow + 1 in the low bits, its data credits above. */
const CREDITS_FLOW_BITS = 2;
const CREDITS_FLOW_MASK = 3;

/** TLPs and bytes by traffic class. Link bytes include header and framing. */
export class TrafficCount {
  readonly #counts: Float64Array;
  readonly #classCount: number;
  readonly tlps: Float64Array;
  readonly linkBytes: Float64Array;
  readonly payloadBytes: Float64Array;

  constructor(trafficClassCount: number) {
    this.#classCount = trafficClassCount;
    this.#counts = new Float64Array(3 * trafficClassCount);
    this.tlps = this.#counts.subarray(0, trafficClassCount);
    this.linkBytes = this.#counts.subarray(trafficClassCount, 2 * trafficClassCount);
    this.payloadBytes = this.#counts.subarray(2 * trafficClassCount);
  }

  add(trafficClass: number, linkBytes: number, payloadBytes: number): void {
    const counts = this.#counts;
    const classCount = this.#classCount;
    const link = classCount + trafficClass;
    counts[trafficClass] = counts[trafficClass]! + 1;
    counts[link] = counts[link]! + linkBytes;
    counts[link + classCount] = counts[link + classCount]! + payloadBytes;
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
    const { words, floats } = this.#reader;
    const word = offset >> 2;
    const flow = flowOf(kind);
    const lengthBytes = words[word + WORD_LENGTH]!;
    const address = floats[(word >> 1) + FLOAT_ADDRESS]!;
    const dwords = dataDwordsOf(kind, address, lengthBytes);
    const payloadBytes = kind === MEMORY_WRITE || kind === COMPLETION_DATA ? lengthBytes : 0;
    const linkBytes = headerBytesOf(kind, address) + dwords * 4 + this.#framingBytes;
    this.tlpCount[flow] = this.tlpCount[flow]! + 1;
    this.heldCount++;
    this.received.add(words[word + WORD_TRAFFIC_CLASS]!, linkBytes, payloadBytes);
    if (!this.credits.receive(flow, dataCreditsOf(dwords))) this.overflowCount++;
    if ((words[word + WORD_FLAGS]! & FLAG_POISONED) !== 0) this.poisonedCount++;
    const unacknowledged = ++this.#unacknowledgedCount;
    if (unacknowledged === 1) this.ackDuePs = nowPs + this.#ackLatencyPs;
    if (unacknowledged >= this.#ackEveryTlps && nowPs + 1 < this.ackDuePs) this.ackDuePs = nowPs + 1;
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

/**
 * The lanes of one direction: TLPs and DLLPs end to end, the transmit buffer that bounds how far ahead they are
 * booked, and the channel that carries their records.
 *
 * Counts every byte it puts on the lanes.
 */
import type { ChannelWriter } from '../../sim/channel.ts';
import { DLLP_LINK_BYTES } from './dllp.ts';
import type { LinkConfig } from './link-parameters.ts';
import { LinkSerializer, linkRateOf } from './link-rate.ts';
import * as tlp from './tlp.ts';
import { headerBytesOf, tlpFramingOf, totalFramingBytes } from './tlp.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { COMPLETION_DATA, FLOW_COUNT, MEMORY_WRITE, UPDATE_FC } = tlp;
const { WORD_FLAGS, WORD_TRAFFIC_CLASS, WORD_TAG, WORD_REQUESTER_ID } = tlp;
const { WORD_LENGTH, WORD_BYTE_COUNT, WORD_DATA, WORD_AUX, FLOAT_ADDRESS, FLOAT_ISSUED } = tlp;
const { WORD_FC_FLOW, WORD_FC_HEADERS, WORD_FC_DATA } = tlp;

/** Counters of TLPs, each by flow, in one array: one check of it for all of them. */
const LINK_BYTES = FLOW_COUNT;
const PAYLOAD_BYTES = 2 * FLOW_COUNT;
const COUNTERS = 3 * FLOW_COUNT;

export class LinkLanes {
  readonly #counts = new Float64Array(COUNTERS);
  readonly tlpCount = this.#counts.subarray(0, LINK_BYTES);
  /** Link bytes of TLPs by flow, framing included. */
  readonly tlpLinkBytes = this.#counts.subarray(LINK_BYTES, PAYLOAD_BYTES);
  readonly payloadBytes = this.#counts.subarray(PAYLOAD_BYTES, COUNTERS);
  ackCount = 0;
  updateFcCount = 0;

  readonly #serializer: LinkSerializer;
  readonly #psPerByte: number;
  readonly #latencyPs: number;
  readonly #framingBytes: number;
  readonly #writer: ChannelWriter;
  /** When the TLPs in the transmit buffer will have left it: a ring. */
  readonly #bufferEnds: Float64Array;
  #bufferHead = 0;
  #bufferCount = 0;

  constructor(link: LinkConfig, transmitBufferTlps: number, writer: ChannelWriter) {
    const rate = linkRateOf(link);
    this.#serializer = new LinkSerializer(rate, link.packetAlignmentBytes, DLLP_LINK_BYTES);
    this.#psPerByte = rate.numeratorPs / rate.denominatorBytes;
    this.#latencyPs = link.latencyPs;
    this.#framingBytes = totalFramingBytes(tlpFramingOf(link.generation));
    this.#writer = writer;
    this.#bufferEnds = new Float64Array(transmitBufferTlps);
  }

  /** Whether the transmit buffer takes another TLP at `nowPs`. */
  protected hasRoom(nowPs: number): boolean {
    const ends = this.#bufferEnds;
    while (this.#bufferCount > 0 && ends[this.#bufferHead]! <= nowPs) {
      this.#bufferHead = this.#bufferHead + 1 === ends.length ? 0 : this.#bufferHead + 1;
      this.#bufferCount--;
    }
    return this.#bufferCount < ends.length;
  }

  /** When the full transmit buffer has room again. */
  protected get roomPs(): number {
    return this.#bufferEnds[this.#bufferHead]!;
  }

  /** Puts a TLP on the lanes and appends its record, whose payload then follows. Returns the record's place. */
  protected book(
    nowPs: number,
    flow: number,
    dwords: number,
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
    issuedPs: number,
  ): number {
    const linkBytes = headerBytesOf(kind, address) + dwords * 4 + this.#framingBytes;
    const payloadBytes = kind === MEMORY_WRITE || kind === COMPLETION_DATA ? lengthBytes : 0;
    const counts = this.#counts;
    counts[flow] = counts[flow]! + 1;
    counts[LINK_BYTES + flow] = counts[LINK_BYTES + flow]! + linkBytes;
    counts[PAYLOAD_BYTES + flow] = counts[PAYLOAD_BYTES + flow]! + payloadBytes;
    const endPs = this.#serializer.sendTlp(nowPs, linkBytes);
    const ends = this.#bufferEnds;
    let tail = this.#bufferHead + this.#bufferCount;
    if (tail >= ends.length) tail -= ends.length;
    ends[tail] = endPs;
    this.#bufferCount++;
    const writer = this.#writer;
    const offset = writer.append(endPs + this.#latencyPs, kind, payloadBytes);
    const word = offset >> 2;
    const { words, floats } = writer;
    words[word + WORD_FLAGS] = flags;
    words[word + WORD_TRAFFIC_CLASS] = trafficClass;
    words[word + WORD_TAG] = tag;
    words[word + WORD_REQUESTER_ID] = requesterId;
    words[word + WORD_LENGTH] = lengthBytes;
    words[word + WORD_BYTE_COUNT] = byteCount;
    words[word + WORD_DATA] = data;
    words[word + WORD_AUX] = aux;
    floats[(word >> 1) + FLOAT_ADDRESS] = address;
    floats[(word >> 1) + FLOAT_ISSUED] = issuedPs;
    return offset;
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
}

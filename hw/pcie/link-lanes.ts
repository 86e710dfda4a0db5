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
import {
  COMPLETION_DATA,
  FLOAT_ADDRESS,
  FLOAT_ISSUED,
  FLOW_COUNT,
  headerBytesOf,
  MEMORY_WRITE,
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

export class LinkLanes {
  readonly tlpCount = new Float64Array(FLOW_COUNT);
  /** Link bytes of TLPs by flow, framing included. */
  readonly tlpLinkBytes = new Float64Array(FLOW_COUNT);
  readonly payloadBytes = new Float64Array(FLOW_COUNT);
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

  /** Puts a TLP on the lanes and appends its record, whose words are then filled by {@link fill}. */
  protected book(
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

  /** Writes the words of a booked TLP. */
  protected fill(
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

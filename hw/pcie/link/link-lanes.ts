/**
 * The lanes of one direction: TLPs and DLLPs without gaps, the transmit buffer that limits how far ahead they are filled, and
 * the channel that carries their records.
 *
 * Counts every byte that it puts on the lanes.
 */
import type { Picoseconds } from '../../../base/index.ts';
import type { ChannelWriter } from '../../../sim/index.ts';
import {
  FLOAT_ADDRESS,
  UPDATE_FC,
  WORD_AUX,
  WORD_DATA,
  WORD_FC_FLOW,
  WORD_FC_LIMIT,
  WORD_FLAGS,
} from '../tlp/index.ts';
import { framingOf } from './link-framings.ts';
import type { LinkConfig } from './link-parameters.ts';
import { LinkSerializer, linkRateOf } from './link-rate.ts';
import type { TransmitFlow } from './transmit-flow.ts';

/** A slot of the transmit buffer; the slots form a ring. */
class BufferPlace {
  /** When the slot's last TLP has left. */
  leftPs = Number.NEGATIVE_INFINITY;
  next: BufferPlace = this;
}

export class LinkLanes {
  ackCount = 0;
  updateFcCount = 0;

  readonly framingBytes: number;
  readonly #bytesOfDllp: number;
  readonly #serializer: LinkSerializer;
  readonly #psPerByte: number;
  readonly #latencyPs: Picoseconds;
  readonly #writer: ChannelWriter;
  /** The first slot of the transmit buffer to become free. */
  #place: BufferPlace;

  constructor(link: LinkConfig, transmitBufferTlps: number, writer: ChannelWriter) {
    const rate = linkRateOf(link);
    const { tlpBytes, dllpBytes } = framingOf(link.generation);
    this.#serializer = new LinkSerializer(rate, link.packetAlignmentBytes, dllpBytes);
    this.#psPerByte = rate.numeratorPs / rate.denominatorBytes;
    this.#latencyPs = link.latencyPs;
    this.framingBytes = tlpBytes;
    this.#bytesOfDllp = dllpBytes;
    this.#writer = writer;
    this.#place = new BufferPlace();
    for (let count = 1; count < transmitBufferTlps; count++) {
      const place = new BufferPlace();
      place.next = this.#place.next;
      this.#place.next = place;
    }
  }

  /** Instant from which the transmit buffer accepts another TLP. */
  get roomPs(): Picoseconds {
    return this.#place.leftPs;
  }

  /**
   * Puts a TLP on the lanes and appends its record, to be filled in by the caller. Returns the record's offset.
   * @param carriedBytes bytes of its payload in the record
   */
  reserve(
    nowPs: Picoseconds,
    flow: TransmitFlow,
    kind: number,
    tlpBytes: number,
    payloadBytes: number,
    carriedBytes: number,
  ): number {
    const linkBytes = tlpBytes + this.framingBytes;
    flow.sent.add(linkBytes, payloadBytes);
    return this.carry(nowPs, kind, linkBytes, carriedBytes);
  }

  /** The same for a TLP that is already counted in the statistics, or will be. */
  carry(nowPs: Picoseconds, kind: number, linkBytes: number, carriedBytes: number): number {
    const endPs = this.#serializer.sendTlp(nowPs, linkBytes);
    const place = this.#place;
    place.leftPs = endPs;
    this.#place = place.next;
    return this.#writer.append(endPs + this.#latencyPs, kind, carriedBytes);
  }

  /** Sends a flow's limit to the other end. */
  sendUpdateFc(nowPs: Picoseconds, flow: number, limit: number): void {
    this.updateFcCount++;
    const offset = this.#writer.append(this.#serializer.sendDllp(nowPs) + this.#latencyPs, UPDATE_FC, 0);
    const words = this.#writer.words;
    words[(offset >> 2) + WORD_FC_FLOW] = flow;
    words[(offset >> 2) + WORD_FC_LIMIT] = limit;
  }

  /** Sends an Ack: it occupies the lanes, but has no effect on a lossless link. */
  sendAck(nowPs: Picoseconds): void {
    this.ackCount++;
    this.#serializer.passDllp(nowPs);
  }

  /** Raises a wire next to the lanes, seen by the other end after everything placed on the lanes. */
  sendSideband(nowPs: Picoseconds, kind: number, data: number, aux: number, address: number): void {
    const atPs = Math.max(nowPs, this.#serializer.freePs) + this.#latencyPs;
    const offset = this.#writer.append(atPs, kind, 0);
    const { words, floats } = this.#writer;
    words[(offset >> 2) + WORD_FLAGS] = 0;
    words[(offset >> 2) + WORD_DATA] = data;
    words[(offset >> 2) + WORD_AUX] = aux;
    floats[(offset >> 3) + FLOAT_ADDRESS] = address;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#serializer.rebase(ps);
    let place = this.#place;
    do {
      place.leftPs -= ps;
      place = place.next;
    } while (place !== this.#place);
  }

  /** Link bytes of Acks and UpdateFCs. */
  get dllpBytes(): number {
    return (this.ackCount + this.updateFcCount) * this.#bytesOfDllp;
  }

  get paddingBytes(): number {
    return this.#serializer.paddingBytes;
  }

  /** Picoseconds that `bytes` take, rounded down. */
  durationPs(bytes: number): number {
    return Math.floor(bytes * this.#psPerByte);
  }
}

/**
 * The receive side's scatter lists: takes a receive WQE for a QP, stores its data pointers in the QP, and writes
 * received data to them, piece by piece. Used by the responder (connected services) and by the datagram receiver. A
 * small message goes into the WQE itself if the QP is configured so: no key is looked up for it, and software copies it
 * to the buffers of the list.
 */

import type { Cycles, Wide } from '../../../base/index.ts';
import type { BlockAccount } from '../../../sim/index.ts';
import { ABSENT, DONE, FULL, NONE_POSTED, REFUSED, type ReceiveAnswer, WAIT } from '../answers.ts';
import type { ReceiveFormat } from '../host-interface/index.ts';
import {
  BAD_KEY,
  PAGE_FAULT,
  type PageFaults,
  PENDING,
  PORT_RECEIVER,
  RIGHT_LOCAL_WRITE,
  SIDE_RESPONDER,
  type TranslationPort,
  type Translator,
} from '../memory/index.ts';
import type { QpSlot, QpTable, QueuePair, SrqTable } from '../objects/index.ts';
import { STALL_DMA, STALL_RECEIVE_WQE, STALL_TRANSLATION } from '../packets/index.ts';
import type { PayloadWriter } from './payload-writer.ts';
import type { ReceiveWqeFetch } from './receive-wqe-fetch.ts';

export interface ReceiveScatterPorts {
  readonly writer: PayloadWriter;
  readonly receives: ReceiveWqeFetch;
}

/** Parts of the device that {@link ReceiveScatter} uses. */
export interface ReceiveScatterSetup {
  readonly qps: QpTable;
  readonly srqs: SrqTable;
  readonly sramView: DataView;
  readonly format: ReceiveFormat;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
}

export class ReceiveScatter {
  /** Messages put in their receive WQE, and their bytes. */
  inlinedCount = 0;
  inlinedBytes: Wide = 0;
  readonly #qps: QpTable;
  readonly #srqs: SrqTable;
  readonly #sramView: DataView;
  readonly #format: ReceiveFormat;
  readonly #translator: Translator;
  readonly #pageFaults: PageFaults;
  readonly #account: BlockAccount;
  readonly #translation: TranslationPort;
  #writer!: PayloadWriter;
  #receives!: ReceiveWqeFetch;

  /** @param account that of the receiver, whose stage places payload */
  constructor(setup: ReceiveScatterSetup, account: BlockAccount) {
    this.#qps = setup.qps;
    this.#srqs = setup.srqs;
    this.#sramView = setup.sramView;
    this.#format = setup.format;
    this.#translator = setup.translator;
    this.#pageFaults = setup.pageFaults;
    this.#account = account;
    this.#translation = setup.translator.port(PORT_RECEIVER);
  }

  connect({ writer, receives }: ReceiveScatterPorts): void {
    this.#writer = writer;
    this.#receives = receives;
  }

  /**
   * Takes the QP's next receive WQE, for a packet that has waited since `arrivedCycle`, and makes its list the QP's.
   */
  take(qp: QpSlot, arrivedCycle: Cycles, cycle: Cycles): ReceiveAnswer {
    const queue = this.#receives.queueOf(qp);
    const taken = queue === -1 ? NONE_POSTED : this.#receives.take(queue, arrivedCycle, cycle);
    if (taken === WAIT) this.#account.stall(cycle, STALL_RECEIVE_WQE);
    if (taken !== DONE) return taken;
    const pair = this.#qps.rows[qp]!;
    pair.receiveWqeCounter = this.#receives.foundCounter;
    pair.hasReceiveWqe = 1;
    pair.isInlined = 0;
    this.#loadSegments(qp);
    pair.messageBytes = 0;
    return DONE;
  }

  /**
   * Puts a message of this length, which arrives in one packet, in the WQE just taken if the QP is configured so and it
   * fits.
   */
  takeInline(pair: QueuePair, lengthBytes: number): void {
    if (pair.receivesInline === 0 || lengthBytes === 0 || lengthBytes > pair.rqStrideBytes) return;
    pair.isInlined = 1;
    this.inlinedCount++;
    this.inlinedBytes += lengthBytes;
  }

  /** Back to the list's beginning: another message takes the WQE that an abandoned one had. */
  rewind(qp: QpSlot): void {
    const pair = this.#qps.rows[qp]!;
    pair.segmentIndex = 0;
    pair.segmentUsed = 0;
    pair.messageBytes = 0;
    pair.isInlined = 0;
  }

  /**
   * Writes the first part of `left` bytes of `source` to the current position of the list. Returns the bytes, or WAIT,
   * FULL, REFUSED or ABSENT.
   */
  place(qp: QpSlot, left: number, source: Uint8Array, sourceOffset: number, cycle: Cycles): number {
    const qps = this.#qps;
    const pair = qps.rows[qp]!;
    if (pair.isInlined === 1) return this.#placeInWqe(pair, left, source, sourceOffset, cycle);
    const segment = pair.segmentIndex;
    if (segment >= pair.segmentCount) return FULL;
    const index = pair.firstSegment + segment;
    const used = pair.segmentUsed;
    const wanted = Math.min(left, qps.segmentBytes[index]! - used);
    const address = qps.segmentAddress[index]! + used;
    const key = qps.segmentKey[index]!;
    const found = this.#translation.translate(
      key,
      this.#receivePd(qp),
      address,
      qps.segmentAddressTop[index]!,
      wanted,
      RIGHT_LOCAL_WRITE,
      pair,
    );
    if (found === PAGE_FAULT) return this.#askForPage(qp, index, cycle);
    if (found >= BAD_KEY) return REFUSED;
    const moved = this.write(found, wanted, source, sourceOffset, cycle);
    if (moved !== WAIT) this.#advance(qp, index, moved);
    return moved;
  }

  /** Skips this many bytes of the list, which stay unchanged. Returns false if the list is shorter. */
  skip(qp: QpSlot, lengthBytes: number): boolean {
    const pair = this.#qps.rows[qp]!;
    if (pair.isInlined === 1) {
      pair.messageBytes += lengthBytes;
      return true;
    }
    let left = lengthBytes;
    while (left > 0) {
      const segment = pair.segmentIndex;
      if (segment >= pair.segmentCount) return false;
      const index = pair.firstSegment + segment;
      const passed = Math.min(left, this.#qps.segmentBytes[index]! - pair.segmentUsed);
      this.#advance(qp, index, passed);
      left -= passed;
    }
    return true;
  }

  /** Places payload in the WQE itself, after the bytes of the message that are already there. */
  #placeInWqe(
    pair: QueuePair,
    left: number,
    source: Uint8Array,
    sourceOffset: number,
    cycle: Cycles,
  ): number {
    const index = pair.receiveWqeCounter & ((1 << pair.rqLogCount) - 1);
    const byte = pair.rqOffset + index * pair.rqStrideBytes + pair.messageBytes;
    const { bufferMttOffset, bufferPageBytes } = pair;
    const found = this.#translator.translateBuffer(
      PORT_RECEIVER,
      bufferMttOffset,
      bufferPageBytes,
      byte,
      left,
    );
    if (found >= BAD_KEY) return REFUSED;
    const moved = this.#move(found, left, source, sourceOffset, cycle);
    if (moved === WAIT) return WAIT;
    this.#translation.usedBuffer();
    pair.messageBytes += moved;
    return moved;
  }

  /** Requests the DMA write to the address that the translator has `found`. Returns the bytes, or WAIT. */
  write(found: number, wanted: number, source: Uint8Array, sourceOffset: number, cycle: Cycles): number {
    const moved = this.#move(found, wanted, source, sourceOffset, cycle);
    if (moved !== WAIT) this.#translation.used();
    return moved;
  }

  #move(found: number, wanted: number, source: Uint8Array, sourceOffset: number, cycle: Cycles): number {
    if (found === PENDING) {
      this.#account.stall(cycle, STALL_TRANSLATION);
      return WAIT;
    }
    if (!this.#writer.canWrite) {
      this.#account.stall(cycle, STALL_DMA);
      return WAIT;
    }
    // At most `wanted`: narrowed (build/README.md).
    const bytes = Math.min(wanted, this.#translator.contiguousBytes) | 0;
    this.#writer.write(this.#translator.physicalAddress, bytes, source, sourceOffset);
    return bytes;
  }

  /** Moves the position of the list back by this many bytes: their packet will be retransmitted. */
  retreat(qp: QpSlot, lengthBytes: number): void {
    const pair = this.#qps.rows[qp]!;
    pair.messageBytes -= lengthBytes;
    for (let left = lengthBytes; left > 0; ) {
      if (pair.segmentUsed === 0) {
        const before = pair.segmentIndex - 1;
        pair.segmentIndex = before;
        pair.segmentUsed = this.#qps.segmentBytes[pair.firstSegment + before]!;
      }
      const back = Math.min(left, pair.segmentUsed);
      pair.segmentUsed -= back;
      left -= back;
    }
  }

  /** Requests the pages of a segment from the current position of the list on. */
  #askForPage(qp: QpSlot, index: number, cycle: Cycles): typeof ABSENT | typeof REFUSED {
    const qps = this.#qps;
    const used = qps.rows[qp]!.segmentUsed;
    const address = qps.segmentAddress[index]! + used;
    const wanted = {
      side: SIDE_RESPONDER,
      key: qps.segmentKey[index]!,
      address,
      addressTop: qps.segmentAddressTop[index]!,
      lengthBytes: qps.segmentBytes[index]! - used,
      isWrite: true,
    };
    return this.#pageFaults.raise(qp, wanted, cycle) ? ABSENT : REFUSED;
  }

  #advance(qp: QpSlot, index: number, bytes: number): void {
    const pair = this.#qps.rows[qp]!;
    const used = pair.segmentUsed + bytes;
    pair.messageBytes += bytes;
    const isFull = used === this.#qps.segmentBytes[index];
    pair.segmentUsed = isFull ? 0 : used;
    if (isFull) pair.segmentIndex++;
  }

  /** Reads the scatter list of the receive WQE just taken. */
  #loadSegments(qp: QpSlot): void {
    const pair = this.#qps.rows[qp]!;
    const { foundOffset, foundBytes } = this.#receives;
    const end = foundOffset + foundBytes;
    pair.segmentCount = this.#format.loadList(this.#sramView, foundOffset, end, this.#qps, pair);
    pair.segmentIndex = 0;
    pair.segmentUsed = 0;
  }

  /** Regions of a shared receive queue's WQEs belong to the SRQ's protection domain. */
  #receivePd(qp: QpSlot): number {
    const pair = this.#qps.rows[qp]!;
    const srqn = pair.srqn;
    const srq = srqn === -1 ? -1 : this.#srqs.slotOf(srqn);
    return srq === -1 ? pair.pd : this.#srqs.pd[srq]!;
  }
}

/**
 * The unread data of a connection: bytes in order, and segments after a gap.
 *
 *     arrive ─┬─ at `next` ──► in order ──► read
 *             └─ after a gap, inside the window ──► sorted, until the gap closes
 *
 * Promises: every byte once and in order, even if segments are lost, duplicated or reordered. Memory is bounded by the window:
 * the number of segments after a gap is bounded, and small segments in order are merged, so that two neighbours always hold
 * more than one buffer's worth. Source: RFC 9293, 3.10.7.4; Linux tcp_collapse for the copying.
 */

import {
  type Arrival,
  isAfter,
  isBefore,
  type ReceivedBytes,
  sequenceAdd,
  sequenceDistance,
} from '../../protocol/tcp/index.ts';
import type { KernelMemory } from '../platform.ts';
import type { PacketBuffer, PacketBuffers } from './packet-buffer.ts';

export class ReceiveQueue implements ReceivedBytes<PacketBuffer> {
  /** Sequence number expected next. */
  next = 0;
  /** Bytes ready to be read. */
  readableBytes = 0;
  /** Bytes copied within the kernel by the last {@link arrive}. */
  copiedBytes = 0;
  readonly #buffers: PacketBuffers;
  readonly #memory: Pick<KernelMemory, 'bytes'>;
  readonly #outOfOrderMax: number;
  readonly #inOrder: PacketBuffer[] = [];
  readonly #behindGap: PacketBuffer[] = [];

  constructor(buffers: PacketBuffers, memory: Pick<KernelMemory, 'bytes'>, outOfOrderMax: number) {
    this.#buffers = buffers;
    this.#memory = memory;
    this.#outOfOrderMax = outOfOrderMax;
  }

  get hasGap(): boolean {
    return this.#behindGap.length > 0;
  }

  /** Held buffers. */
  get bufferCount(): number {
    return this.#inOrder.length + this.#behindGap.length;
  }

  /** The next buffer to read. */
  get head(): PacketBuffer | undefined {
    return this.#inOrder[0];
  }

  /** Accepts a segment that begins inside the window. Its payload is in the buffer, which the queue now owns. */
  arrive(buffer: PacketBuffer): Arrival {
    this.copiedBytes = 0;
    const old = sequenceDistance(this.next, buffer.sequence);
    if (old >= buffer.length) return this.#refuse(buffer, 'duplicate');
    if (old < 0) return this.#keep(buffer);
    trimFront(buffer, old);
    this.#append(buffer);
    this.#closeGap();
    return 'inOrder';
  }

  /** Bytes were read from the head. @returns the buffers that this has emptied */
  consume(bytes: number): number {
    let emptied = 0;
    let left = bytes;
    this.readableBytes -= bytes;
    while (left > 0) {
      const buffer = this.#inOrder[0]!;
      const taken = Math.min(left, buffer.length);
      trimFront(buffer, taken);
      left -= taken;
      if (buffer.length > 0) break;
      this.#inOrder.shift();
      this.#buffers.give(buffer);
      emptied++;
    }
    return emptied;
  }

  /** Returns all buffers. */
  clear(): void {
    for (const buffer of this.#inOrder.splice(0)) this.#buffers.give(buffer);
    for (const buffer of this.#behindGap.splice(0)) this.#buffers.give(buffer);
    this.readableBytes = 0;
  }

  #append(buffer: PacketBuffer): void {
    const { length } = buffer;
    this.next = sequenceAdd(this.next, length);
    this.readableBytes += length;
    const tail = this.#inOrder.at(-1);
    if (tail === undefined || length > tail.room) {
      this.#inOrder.push(buffer);
      return;
    }
    const from = buffer.physical;
    this.#memory.bytes.copyWithin(tail.physical + tail.length, from, from + length);
    tail.length += length;
    this.copiedBytes += length;
    this.#buffers.give(buffer);
  }

  #keep(buffer: PacketBuffer): Arrival {
    const list = this.#behindGap;
    if (list.length >= this.#outOfOrderMax) return this.#refuse(buffer, 'refused');
    let at = list.length;
    while (at > 0 && isAfter(list[at - 1]!.sequence, buffer.sequence)) at--;
    const before = list[at - 1];
    const covered = before === undefined ? 0 : sequenceDistance(endOf(before), buffer.sequence);
    if (covered >= buffer.length) return this.#refuse(buffer, 'duplicate');
    list.splice(at, 0, buffer);
    return 'behindGap';
  }

  #closeGap(): void {
    const list = this.#behindGap;
    while (list.length > 0 && !isAfter(list[0]!.sequence, this.next)) {
      const buffer = list.shift()!;
      if (isBefore(this.next, endOf(buffer))) {
        trimFront(buffer, sequenceDistance(this.next, buffer.sequence));
        this.#append(buffer);
      } else {
        this.#buffers.give(buffer);
      }
    }
  }

  #refuse(buffer: PacketBuffer, why: Arrival): Arrival {
    this.#buffers.give(buffer);
    return why;
  }
}

function trimFront(buffer: PacketBuffer, bytes: number): void {
  buffer.start += bytes;
  buffer.length -= bytes;
  buffer.sequence = sequenceAdd(buffer.sequence, bytes);
}

const endOf = (buffer: PacketBuffer): number => sequenceAdd(buffer.sequence, buffer.length);

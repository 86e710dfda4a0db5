/**
 * A shared receive queue: a free list of linked WQEs. The device follows the links in memory; the library keeps a copy, because
 * its own stores reach memory after it has continued.
 *
 *   head -> next -> … -> tail        post takes at the head, a completion appends at the tail
 *
 * Sources: interface sheet 6.5, 6.8; rdma-core providers/mlx4.
 */
import { dataPointer, invalidLkey, srqNextSegment } from '../abi/index.ts';
import { log2Ceil } from '../base/index.ts';
import type { UserMemory } from './platform.ts';
import type { DoorbellRecord, QueueMemory } from './queue-memory.ts';

const logStrideMin = 5;

export interface SharedSizes {
  readonly logStride: number;
  readonly wqeCount: number;
  readonly maxSge: number;
}

/** The sizes for a program's request; one WQE stays unused as the list's tail. */
export function sharedSizesOf(maxWr: number, maxSge: number): SharedSizes {
  const bytes = srqNextSegment.sizeBytes + Math.max(1, maxSge) * dataPointer.sizeBytes;
  return {
    logStride: Math.max(logStrideMin, log2Ceil(bytes)),
    wqeCount: 2 ** log2Ceil(maxWr + 1),
    maxSge: Math.max(1, maxSge),
  };
}

export class SharedRing {
  readonly wqeCount: number;
  readonly strideBytes: number;
  readonly maxSge: number;
  readonly record: DoorbellRecord;
  readonly buffer: QueueMemory;
  /** Indices of WQEs. */
  head = 0;
  tail: number;
  /** WQEs posted in all, modulo 2^16 in the record. */
  counter = 0;
  readonly next: Uint16Array;
  readonly wrIds: Float64Array;
  readonly slots: Float64Array;

  constructor(sizes: SharedSizes, buffer: QueueMemory, record: DoorbellRecord) {
    this.wqeCount = sizes.wqeCount;
    this.strideBytes = 2 ** sizes.logStride;
    this.maxSge = sizes.maxSge;
    this.record = record;
    this.buffer = buffer;
    this.tail = this.wqeCount - 1;
    this.next = new Uint16Array(this.wqeCount);
    this.wrIds = new Float64Array(this.wqeCount);
    this.slots = new Float64Array(this.wqeCount);
    for (let slot = 0; slot < this.wqeCount; slot++) {
      this.slots[slot] = buffer.physicalOf(slot * this.strideBytes);
      this.next[slot] = (slot + 1) % this.wqeCount;
    }
  }

  /** Links all WQEs and ends every list at its first pointer. */
  initialise(memory: UserMemory): void {
    for (let slot = 0; slot < this.wqeCount; slot++) {
      const address = this.slots[slot]!;
      srqNextSegment.encodeInto({ nextWqeIndex: this.next[slot]! }, memory.bytes, address);
      const { sizeBytes } = dataPointer;
      for (let at = srqNextSegment.sizeBytes; at < this.strideBytes; at += sizeBytes) {
        dataPointer.encodeInto({ lkey: invalidLkey }, memory.bytes, address + at);
      }
    }
  }
}

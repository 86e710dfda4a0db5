/**
 * The receive queue of a QP: WQEs are lists of data pointers; the doorbell record counts what was posted.
 * Sources: interface sheet 6.4, 6.8; rdma-core providers/mlx4 (sizes).
 */
import { dataPointer } from '../abi/index.ts';
import { log2Ceil } from '../base/index.ts';
import type { DoorbellRecord, QueueMemory } from './queue-memory.ts';

const logStrideMin = 4;

export interface ReceiveSizes {
  readonly logStride: number;
  readonly wqeCount: number;
  readonly maxSge: number;
}

/** The sizes for what a program asks: at least one WQE of one data pointer. */
export function receiveSizesOf(maxRecvWr: number, maxRecvSge: number): ReceiveSizes {
  const maxSge = Math.max(1, maxRecvSge);
  return {
    logStride: Math.max(logStrideMin, log2Ceil(maxSge * dataPointer.sizeBytes)),
    wqeCount: 2 ** log2Ceil(Math.max(1, maxRecvWr)),
    maxSge,
  };
}

export class ReceiveRing {
  readonly wqeCount: number;
  readonly maxSge: number;
  readonly record: DoorbellRecord;
  /** Free-running counters of 32 bits. */
  head = 0;
  tail = 0;
  readonly wrIds: Float64Array;
  /** Physical address of each slot. */
  readonly slots: Float64Array;

  constructor(sizes: ReceiveSizes, buffer: QueueMemory, offset: number, record: DoorbellRecord) {
    this.wqeCount = sizes.wqeCount;
    this.maxSge = sizes.maxSge;
    this.record = record;
    this.wrIds = new Float64Array(this.wqeCount);
    this.slots = new Float64Array(this.wqeCount);
    for (let slot = 0; slot < this.wqeCount; slot++) {
      this.slots[slot] = buffer.physicalOf(offset + slot * 2 ** sizes.logStride);
    }
  }

  /** Forgets what was posted: the QP is in RESET. */
  reset(): void {
    this.head = 0;
    this.tail = 0;
  }
}

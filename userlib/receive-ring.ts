/**
 * The receive queue of a QP: WQEs are lists of data pointers; the doorbell record counts what was posted.
 * Sources: interface sheet 6.4, 6.8; rdma-core providers/mlx4 (sizes).
 */
import { dataPointer } from '../abi/index.ts';
import { log2Ceil } from '../base/index.ts';
import type { IbvRecvWr } from './objects.ts';
import type { DoorbellRecord, QueueMemory } from './queue-memory.ts';

const logStrideMin = 4;

export interface ReceiveSizes {
  readonly logStride: number;
  readonly wqeCount: number;
  readonly maxSge: number;
  /** Bytes of the messages that may be put in a WQE; 0: none. */
  readonly inlineBytes: number;
}

/**
 * What the library keeps of the buffers of each WQE, for the messages that the device puts in the WQE itself: it writes over the
 * list.
 */
export class InlineLists {
  readonly #maxSge: number;
  readonly #counts: Int32Array;
  readonly #addresses: Float64Array;
  readonly #lengths: Float64Array;

  constructor(wqeCount: number, maxSge: number) {
    this.#maxSge = maxSge;
    this.#counts = new Int32Array(wqeCount);
    this.#addresses = new Float64Array(wqeCount * maxSge);
    this.#lengths = new Float64Array(wqeCount * maxSge);
  }

  keep(slot: number, { sgList, numSge }: IbvRecvWr): void {
    this.#counts[slot] = numSge;
    for (let sge = 0; sge < numSge; sge++) {
      const at = slot * this.#maxSge + sge;
      this.#addresses[at] = sgList[sge]!.addr;
      this.#lengths[at] = sgList[sge]!.length;
    }
  }

  /**
   * Calls `take` for each piece of a buffer that so many bytes fill, with how many bytes are before it.
   * @returns bytes for which there is no room
   */
  fill(
    slot: number,
    lengthBytes: number,
    take: (address: number, lengthBytes: number, before: number) => void,
  ): number {
    let left = lengthBytes;
    for (let sge = 0; sge < this.#counts[slot]! && left > 0; sge++) {
      const at = slot * this.#maxSge + sge;
      const bytes = Math.min(left, this.#lengths[at]!);
      if (bytes > 0) take(this.#addresses[at]!, bytes, lengthBytes - left);
      left -= bytes;
    }
    return left;
  }
}

/** The sizes for what a program asks: at least one WQE of one data pointer. */
export function receiveSizesOf(maxRecvWr: number, maxRecvSge: number, inlineBytes = 0): ReceiveSizes {
  const maxSge = Math.max(1, maxRecvSge);
  return {
    logStride: Math.max(logStrideMin, log2Ceil(Math.max(maxSge * dataPointer.sizeBytes, inlineBytes))),
    inlineBytes,
    wqeCount: 2 ** log2Ceil(Math.max(1, maxRecvWr)),
    maxSge,
  };
}

export class ReceiveRing {
  readonly wqeCount: number;
  readonly maxSge: number;
  /** Data pointers after which a list needs no end mark. */
  readonly pointersMax: number;
  /** Undefined where no message is put in a WQE. */
  readonly inlineLists: InlineLists | undefined;
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
    const isInline = sizes.inlineBytes > 0;
    // What a message has left in a WQE is no data pointer.
    this.pointersMax = isInline ? 2 ** sizes.logStride / dataPointer.sizeBytes : sizes.maxSge;
    this.inlineLists = isInline ? new InlineLists(sizes.wqeCount, sizes.maxSge) : undefined;
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

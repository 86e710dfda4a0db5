/**
 * The receive queue of a QP: WQEs are lists of data pointers; the doorbell record counts posted WQEs. Sources: interface sheet
 * 6.4, 6.8; rdma-core providers/mlx4 (sizes).
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
  /** Longest message in bytes that may be stored in a WQE; 0: none. */
  readonly inlineBytes: number;
}

/** Copy of each WQE's buffer list, which the library keeps because an inline message overwrites the list. */
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
   * Calls `take` for each piece of a buffer that a message of this length fills, with the number of bytes before it.
   * @returns the number of bytes without room
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

/** The sizes for a program's request: at least one WQE of one data pointer. */
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
  /** Undefined if no message is stored in a WQE. */
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
    // The rest of a message in a WQE is not a data pointer.
    this.pointersMax = isInline ? 2 ** sizes.logStride / dataPointer.sizeBytes : sizes.maxSge;
    this.inlineLists = isInline ? new InlineLists(sizes.wqeCount, sizes.maxSge) : undefined;
    this.record = record;
    this.wrIds = new Float64Array(this.wqeCount);
    this.slots = new Float64Array(this.wqeCount);
    for (let slot = 0; slot < this.wqeCount; slot++) {
      this.slots[slot] = buffer.physicalOf(offset + slot * 2 ** sizes.logStride);
    }
  }

  /** Forgets posted WQEs: the QP is in RESET. */
  reset(): void {
    this.head = 0;
    this.tail = 0;
  }
}

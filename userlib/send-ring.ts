/**
 * The send queue of a QP: sizes as libmlx4 chooses them, counters, and the library's record of each WQE.
 *
 *   counter (runs freely)  head ─ posted          tail ─ completed
 *   slot = counter & (wqeCount − 1)               owner bit = the counter's bit above the slot
 *
 * (2048 >> log stride) + 1 WQEs stay unused, so that a prefetching device never reads valid WQEs of the last pass.
 * Sources: interface sheet 6.1, 6.2; rdma-core providers/mlx4 (sizes).
 */
import {
  atomicSegment,
  bindSegment,
  controlSegment,
  datagramSegment,
  dataPointer,
  inlineHeader,
  maskedCompareSwapSegment,
  remoteAddressSegment,
  sendDoorbell,
  wqeStamp,
  wqeUnitBytes,
  wqeUnitsMax,
} from '../abi/index.ts';
import { asInteger, log2Ceil, roundUp, swap32 } from '../base/index.ts';
import { QpTypeVerb } from '../driver/index.ts';
import type { UserMemory } from './platform.ts';
import type { QueueMemory } from './queue-memory.ts';
import { type SendRows, sendRowsOf } from './send-rows.ts';

/** Inline data are cut at multiples of this many bytes of the WQE. */
export const inlineBoundaryBytes = 64;
const headroomBytes = 2048;
const logStrideMin = 6;

export interface SendSizes {
  readonly logStride: number;
  readonly logCount: number;
  readonly spareWqes: number;
  /** Sizes that the program may rely on. */
  readonly maxPost: number;
  readonly maxSge: number;
  readonly maxInline: number;
}

/** The longest WQE. */
export const wqeBytesMax = wqeUnitsMax * wqeUnitBytes;

/** Bytes before the data of a WQE, without the control segment. */
function addressBytesOf(type: QpTypeVerb): number {
  return type === QpTypeVerb.IBV_QPT_UD ? datagramSegment.sizeBytes : remoteAddressSegment.sizeBytes;
}

/** Inline segments for this number of bytes, if the first begins at the data offset of this type. */
function inlineHeadersOf(type: QpTypeVerb, dataBytes: number): number {
  const start = (controlSegment.sizeBytes + addressBytesOf(type)) % inlineBoundaryBytes;
  return Math.ceil((dataBytes + start) / (inlineBoundaryBytes - inlineHeader.sizeBytes));
}

/** Most inline data of the longest WQE: for a SEND, which has an address segment only on UD. A WRITE carries less. */
function inlineMaxOf(type: QpTypeVerb): number {
  const start = controlSegment.sizeBytes + (type === QpTypeVerb.IBV_QPT_UD ? addressBytesOf(type) : 0);
  const headers = Math.ceil(wqeBytesMax / inlineBoundaryBytes) - Math.floor(start / inlineBoundaryBytes);
  return wqeBytesMax - start - headers * inlineHeader.sizeBytes;
}

/**
 * The sizes for a program's request. Every WQE fits one stride, and its size field: `maxSge` and `maxInline` are reduced if no
 * WQE can hold that many.
 */
export function sendSizesOf(
  type: QpTypeVerb,
  maxSendWr: number,
  maxSendSge: number,
  maxInlineData: number,
  hasMaskedAtomics = false,
): SendSizes {
  const inlineTotal = maxInlineData + inlineHeadersOf(type, maxInlineData) * inlineHeader.sizeBytes;
  const inlinePointers = Math.ceil(inlineTotal / dataPointer.sizeBytes);
  const pointers = Math.max(maxSendSge, inlinePointers);
  let bytes = pointers * dataPointer.sizeBytes + addressBytesOf(type);
  const operandBytes = (hasMaskedAtomics ? maskedCompareSwapSegment : atomicSegment).sizeBytes;
  const atomicBytes = operandBytes + remoteAddressSegment.sizeBytes + dataPointer.sizeBytes;
  const isReliable = type === QpTypeVerb.IBV_QPT_RC || type === QpTypeVerb.IBV_QPT_XRC_SEND;
  if (isReliable) bytes = Math.max(bytes, atomicBytes);
  bytes = Math.max(bytes, bindSegment.sizeBytes) + controlSegment.sizeBytes;
  const logStride = Math.max(logStrideMin, log2Ceil(bytes));
  const spareWqes = (headroomBytes >>> logStride) + 1;
  const logCount = log2Ceil(maxSendWr + spareWqes);
  const bytesBefore = controlSegment.sizeBytes + addressBytesOf(type);
  const dataBytes = 2 ** logStride - bytesBefore;
  const inlineHeaders = roundUp(dataBytes, inlineBoundaryBytes) / inlineBoundaryBytes;
  return {
    logStride,
    logCount,
    spareWqes,
    maxPost: 2 ** logCount - spareWqes,
    maxSge: Math.floor((Math.min(2 ** logStride, wqeBytesMax) - bytesBefore) / dataPointer.sizeBytes),
    maxInline: Math.min(dataBytes - inlineHeaders * inlineHeader.sizeBytes, inlineMaxOf(type)),
  };
}

/** The library's record of a slot: its address, and the request posted there last. */
export class SendSlot {
  /** Physical address. */
  readonly address: number;
  wrId = 0;
  wqeBytes: number;
  /** Opcode of the WQE. */
  opcode = 0;

  constructor(address: number, wqeBytes: number) {
    this.address = address;
    this.wqeBytes = wqeBytes;
  }
}

/** A WQE to be written: filled in by name, then stored by `writeWqe`. */
export class NextWqe {
  /** Offset in the store buffer. */
  base = 0;
  ownerIsSet = false;
  /** True if the request's completion is reported even if it is unsignalled. */
  isSignalled = false;
  wqeBytes = 0;
  /** -1 if the data are not inline. */
  inlineLength = -1;
}

export class SendRing {
  readonly wqeCount: number;
  readonly slotMask: number;
  readonly strideBytes: number;
  readonly spareWqes: number;
  readonly maxPost: number;
  readonly maxSge: number;
  readonly maxInline: number;
  /** Free-running counters of 32 bits. */
  head = 0;
  tail = 0;
  /** Send slots; absent for a queue without any post yet. */
  #slots: SendSlot[] = [];
  readonly buffer: QueueMemory;
  readonly #offset: number;
  /** Send rows of the QP's service. */
  readonly rows: SendRows;
  /** The doorbell's dword, as the processor's word. */
  readonly doorbellWord: number;

  constructor(sizes: SendSizes, type: QpTypeVerb, buffer: QueueMemory, offset: number, qpn: number) {
    // Powers are floats, and would make all derived counters and indices floats.
    this.wqeCount = asInteger(2 ** sizes.logCount);
    this.slotMask = this.wqeCount - 1;
    this.strideBytes = asInteger(2 ** sizes.logStride);
    this.spareWqes = sizes.spareWqes;
    this.maxPost = sizes.maxPost;
    this.maxSge = sizes.maxSge;
    this.maxInline = sizes.maxInline;
    this.rows = sendRowsOf(type);
    this.doorbellWord = swap32(qpn << sendDoorbell.fields.qpn.shift);
    this.buffer = buffer;
    this.#offset = offset;
  }

  /** The slot of the WQE with this counter. */
  slotAt(counter: number): SendSlot {
    return this.#slots[counter & this.slotMask] ?? this.#newSlot(counter & this.slotMask);
  }

  #newSlot(slot: number): SendSlot {
    // A growing array reserves room for 17 entries, but most queues use one.
    if (this.#slots.length === 0) this.#slots = [new SendSlot(this.#addressOf(0), this.strideBytes)];
    // The entries before it first: the array stays without holes.
    for (let next = this.#slots.length; next <= slot; next++)
      this.#slots.push(new SendSlot(this.#addressOf(next), this.strideBytes));
    return this.#slots[slot]!;
  }

  #addressOf(slot: number): number {
    return this.buffer.physicalOf(this.#offset + slot * this.strideBytes);
  }

  /** Forgets posted WQEs: the QP is in RESET. */
  reset(): void {
    this.head = 0;
    this.tail = 0;
  }

  /** Marks every WQE as invalid in the first pass, and its bytes after the first 64 as unwritten. */
  initialiseOwnership(memory: UserMemory): void {
    const ds = (this.strideBytes / wqeUnitBytes) & controlSegment.fields.ds.mask;
    const first = this.#addressOf(0);
    controlSegment.encodeInto({ owner: 1, ds }, memory.bytes, first);
    for (let slot = 0; slot < this.wqeCount; slot++) {
      const address = this.#addressOf(slot);
      memory.bytes.copyWithin(address, first, first + controlSegment.sizeBytes);
      for (let at = inlineBoundaryBytes; at < this.strideBytes; at += inlineBoundaryBytes) {
        memory.view.setUint32(address + at, wqeStamp);
      }
    }
    for (const slot of this.#slots) slot.wqeBytes = this.strideBytes;
  }
}

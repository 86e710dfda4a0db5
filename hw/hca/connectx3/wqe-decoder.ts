/**
 * Turns the bytes of a send WQE into a record: opcode, remote address, operands, and the list of data pointers or the
 * inline data. Works on bytes only: the requester accounts for the cost and handles errors.
 */
import {
  atomicSegment,
  CqeSyndrome,
  completionRequested,
  controlSegment,
  dataPointer,
  inlineHeader,
  maskedCompareSwapSegment,
  remoteAddressSegment,
  WqeOpcode,
  wqeUnitBytes,
} from '../../../abi/index.ts';
import { addressAt, addressTopAt } from '../../../base/index.ts';
import { INLINE_BYTES_MAX, type SendRecord } from '../objects/index.ts';
import {
  CHANGES_KEYS,
  EXECUTABLE_BY_RC,
  HAS_REMOTE_ADDRESS,
  IS_ATOMIC,
  isKeyOperation,
  isReadOrAtomic,
  operationTraits,
} from '../send-queue/index.ts';
import { decodeKeyOperation } from './key-operation-decoder.ts';

const { LOCAL_LENGTH_ERR, LOCAL_QP_OP_ERR } = CqeSyndrome;
const { MASKED_ATOMIC_CS } = WqeOpcode;

const control = controlSegment.fields;
const remote = remoteAddressSegment.fields;
const atomic = atomicSegment.fields;
const masks = maskedCompareSwapSegment.fields;
const pointer = dataPointer.fields;
const inline = inlineHeader.fields;

// Places and masks as numbers of this module: an accessor's own are loads from its closure.
const opcodePlace = control.opcode.wordOffset;
const opcodeMask = control.opcode.mask;
const sizePlace = control.ds.wordOffset;
const sizeMask = control.ds.mask;
const fenceMask = control.fence.mask;
const flagsPlace = control.completion.wordOffset;
const completionMask = control.completion.mask;
const solicitedShift = control.solicited.shift;
const remoteSrqnShift = control.remoteSrqn.shift;
const immediatePlace = control.immediate.wordOffset;
const completionBits = completionRequested << control.completion.shift;
const remoteAddressPlace = remote.address.wordOffset;
const remoteKeyPlace = remote.rkey.wordOffset;
const pointerKeyPlace = pointer.lkey.wordOffset;
const pointerAddressPlace = pointer.address.wordOffset;
const pointerBytesMask = pointer.byteCount.mask;
const inlineMask = inline.isInline.mask;
const inlineBytesMask = inline.byteCount.mask;

const LINE_BYTES = 64;
export const INLINE_HEADER_BYTES = 4;
/** The dword that begins a data pointer and an inline segment alike. */
const headPlace = inline.isInline.wordOffset;
const ATOMIC_BYTES = 8;

export function opcodeOf(view: DataView, at: number): number {
  return view.getUint32(at + opcodePlace) & opcodeMask;
}

export function isFenced(view: DataView, at: number): boolean {
  return (view.getUint8(at + sizePlace) & fenceMask) !== 0;
}

/**
 * Fills `request` from the WQE at `at` of a connected QP. The caller sets the record's own fields (QP, counter, PSNs).
 * @param service EXECUTABLE_BY_ bit of the QP's service
 * @returns 0, or the CQE syndrome of the WQE's error
 */
export function decodeWqe(
  view: DataView,
  bytes: Uint8Array,
  at: number,
  request: SendRecord,
  service = EXECUTABLE_BY_RC,
): number {
  const sizeBytes = decodeControl(view, at, request);
  const traits = operationTraits[request.opcode]!;
  if ((traits & service) === 0) return LOCAL_QP_OP_ERR;
  if ((traits & CHANGES_KEYS) !== 0) return decodeKeyOperation(view, at, sizeBytes, request);
  let next = wqeUnitBytes;
  if ((traits & HAS_REMOTE_ADDRESS) !== 0) {
    if (next + wqeUnitBytes > sizeBytes) return LOCAL_QP_OP_ERR;
    request.remoteAddress = addressAt(view, at + next + remoteAddressPlace);
    request.remoteAddressTop = addressTopAt(view, at + next + remoteAddressPlace);
    request.remoteKey = view.getUint32(at + next + remoteKeyPlace);
    next += wqeUnitBytes;
  }
  if ((traits & IS_ATOMIC) !== 0) return decodeAtomic(view, bytes, at, next, sizeBytes, request);
  return loadData(view, bytes, at, next, sizeBytes, request);
}

/** Decodes the rest of an atomic's WQE: operands, and the pointer to the 8 bytes that receive the old value. */
function decodeAtomic(
  view: DataView,
  bytes: Uint8Array,
  at: number,
  first: number,
  sizeBytes: number,
  request: SendRecord,
): number {
  const { operands } = request;
  const hasMasks = request.opcode === MASKED_ATOMIC_CS;
  const dataAt = first + (hasMasks ? maskedCompareSwapSegment : atomicSegment).sizeBytes;
  if (dataAt > sizeBytes) return LOCAL_QP_OP_ERR;
  operands[0] = atomic.swapOrAdd.getLowWord(view, at + first);
  operands[1] = atomic.swapOrAdd.getHighWord(view, at + first);
  operands[2] = atomic.compare.getLowWord(view, at + first);
  operands[3] = atomic.compare.getHighWord(view, at + first);
  if (hasMasks) {
    operands[4] = masks.swapMask.getLowWord(view, at + first);
    operands[5] = masks.swapMask.getHighWord(view, at + first);
    operands[6] = masks.compareMask.getLowWord(view, at + first);
    operands[7] = masks.compareMask.getHighWord(view, at + first);
  }
  const syndrome = loadData(view, bytes, at, dataAt, sizeBytes, request);
  if (syndrome !== 0) return syndrome;
  return request.isInline === 1 || request.messageBytes !== ATOMIC_BYTES ? LOCAL_LENGTH_ERR : 0;
}

/** The control segment, which all services share. Returns the size of the WQE in bytes. */
export function decodeControl(view: DataView, at: number, request: SendRecord): number {
  const opcode = view.getUint32(at + opcodePlace) & opcodeMask;
  const sizeByte = view.getUint8(at + sizePlace);
  const flags = view.getUint32(at + flagsPlace);
  request.opcode = opcode;
  request.isSignalled = (flags & completionMask) === completionBits ? 1 : 0;
  request.isSolicited = (flags >>> solicitedShift) & 1;
  request.remoteSrqn = flags >>> remoteSrqnShift;
  request.isReadOrAtomic = isReadOrAtomic(opcode) ? 1 : 0;
  request.isKeyOperation = isKeyOperation(opcode) ? 1 : 0;
  request.immediate = view.getInt32(at + immediatePlace);
  request.segmentCount = 0;
  request.isInline = 0;
  request.messageBytes = 0;
  request.remoteAddressTop = 0;
  request.wqeBytes = (sizeByte & sizeMask) * wqeUnitBytes;
  return request.wqeBytes;
}

/** Data pointers and inline segments up to the WQE's end. Inline data of several segments is joined. */
export function loadData(
  view: DataView,
  bytes: Uint8Array,
  at: number,
  first: number,
  sizeBytes: number,
  request: SendRecord,
): number {
  const end = at + sizeBytes;
  for (let place = at + first; place < end; place += wqeUnitBytes) {
    const head = view.getUint32(place + headPlace);
    if ((head & inlineMask) !== 0) return loadInline(view, bytes, at, place - at, sizeBytes, request);
    const length = head & pointerBytesMask;
    if (length > 0) loadPointer(view, place, length, request);
  }
  return 0;
}

/** The rest of {@link loadData}, from the first inline segment on. Data is either inline or in memory that pointers name. */
function loadInline(
  view: DataView,
  bytes: Uint8Array,
  at: number,
  first: number,
  sizeBytes: number,
  request: SendRecord,
): number {
  const { inlineData } = request;
  let inlineBytes = 0;
  let next = first;
  while (next < sizeBytes) {
    const head = view.getUint32(at + next + headPlace);
    if ((head & inlineMask) === 0) {
      const length = head & pointerBytesMask;
      if (length > 0) loadPointer(view, at + next, length, request);
      next += wqeUnitBytes;
      continue;
    }
    const length = head & inlineBytesMask;
    if (next + INLINE_HEADER_BYTES + length > sizeBytes || inlineBytes + length > INLINE_BYTES_MAX)
      return LOCAL_QP_OP_ERR;
    const from = at + next + INLINE_HEADER_BYTES;
    for (let index = 0; index < length; index++) inlineData[inlineBytes + index] = bytes[from + index]!;
    inlineBytes += length;
    next = nextAfterInline(next, length);
  }
  if (inlineBytes > 0 && request.segmentCount > 0) return LOCAL_QP_OP_ERR;
  request.isInline = inlineBytes > 0 ? 1 : 0;
  request.messageBytes += inlineBytes;
  return 0;
}

/** The data pointer at `at`, of `length` bytes, is the request's next segment: the largest WQE has 62. */
export function loadPointer(view: DataView, at: number, length: number, request: SendRecord): void {
  const index = request.segmentCount;
  const segment = request.segment(index);
  segment.address = addressAt(view, at + pointerAddressPlace);
  segment.addressTop = addressTopAt(view, at + pointerAddressPlace);
  segment.key = view.getUint32(at + pointerKeyPlace);
  segment.bytes = length;
  request.segmentCount = index + 1;
  request.messageBytes += length;
}

/** A segment that ends at a 64-byte boundary is followed there by the next one; the last is padded to 16. */
export function nextAfterInline(next: number, length: number): number {
  const end = next + INLINE_HEADER_BYTES + length;
  if (end % LINE_BYTES === 0) return end;
  return Math.ceil(end / wqeUnitBytes) * wqeUnitBytes;
}

/**
 * Turns the bytes of a send WQE into a record: opcode, remote address, operands, and the list of data pointers or the
 * inline data. Pure work on bytes; what it costs and what becomes of an error is the requester's matter.
 */
import { CqeSyndrome } from '../../abi/cqe.ts';
import * as wqe from '../../abi/wqe.ts';
import {
  atomicSegment,
  controlSegment,
  dataPointer,
  inlineHeader,
  remoteAddressSegment,
} from '../../abi/wqe.ts';
import { WqeOpcode, wqeOpcodeRows } from '../../abi/wqe-opcodes.ts';
import * as qpTable from './qp-table.ts';
import type { SendRecords } from './send-records.ts';
import * as sendRecords from './send-records.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { completionRequested, wqeUnitBytes } = wqe;
const { SEGMENTS_MAX } = qpTable;
const { INLINE_BYTES_MAX } = sendRecords;

const control = controlSegment.fields;
const remote = remoteAddressSegment.fields;
const atomic = atomicSegment.fields;
const pointer = dataPointer.fields;
const inline = inlineHeader.fields;

const sizePlace = control.ds.wordOffset;
const flagsPlace = control.completion.wordOffset;
const completionBits = completionRequested << control.completion.shift;

const LINE_BYTES = 64;
export const INLINE_HEADER_BYTES = 4;
/** The dword that begins a data pointer and an inline segment alike. */
const headPlace = inline.isInline.wordOffset;
const ATOMIC_BYTES = 8;

export function opcodeOf(view: DataView, at: number): number {
  return control.opcode.get(view, at);
}

export function isFenced(view: DataView, at: number): boolean {
  return control.fence.get(view, at) === 1;
}

/** READ and the atomics: requests that a response answers and that take responder resources. */
export function isReadOrAtomic(opcode: number): boolean {
  return opcode === WqeOpcode.RDMA_READ || opcode === WqeOpcode.ATOMIC_CS || opcode === WqeOpcode.ATOMIC_FA;
}

/** Requests that consume a receive WQE at the responder, hence an end-to-end credit. */
export function takesCredit(opcode: number): boolean {
  return opcode === WqeOpcode.SEND || opcode === WqeOpcode.SEND_IMM || opcode === WqeOpcode.RDMA_WRITE_IMM;
}

/**
 * Opcodes that a connected QP of this device executes; READ and atomics need reliability. The others are known, and refused
 * as local QP operation errors.
 */
function isExecutable(opcode: number, isReliable: boolean): boolean {
  return (
    (isReliable && isReadOrAtomic(opcode)) ||
    takesCredit(opcode) ||
    opcode === WqeOpcode.RDMA_WRITE ||
    opcode === WqeOpcode.NOP
  );
}

/**
 * Fills `record` from the WQE at `at` of a connected QP. The record's own fields (QP, counter, PSNs) are the caller's.
 * @returns 0, or the CQE syndrome of what is wrong with the WQE
 */
export function decodeWqe(
  view: DataView,
  bytes: Uint8Array,
  at: number,
  records: SendRecords,
  record: number,
  isReliable = true,
): number {
  const sizeBytes = decodeControl(view, at, records, record);
  const request = records.rows[record]!;
  const opcode = request.opcode;
  if (wqeOpcodeRows[opcode] === undefined || !isExecutable(opcode, isReliable))
    return CqeSyndrome.LOCAL_QP_OP_ERR;
  let next = wqeUnitBytes;
  if (opcode >= WqeOpcode.RDMA_WRITE && opcode !== WqeOpcode.SEND && opcode !== WqeOpcode.SEND_IMM) {
    if (next + wqeUnitBytes > sizeBytes) return CqeSyndrome.LOCAL_QP_OP_ERR;
    request.remoteAddress = remote.address.getNumber(view, at + next);
    request.remoteKey = remote.rkey.get(view, at + next);
    next += wqeUnitBytes;
  }
  if (opcode === WqeOpcode.ATOMIC_CS || opcode === WqeOpcode.ATOMIC_FA) {
    if (next + wqeUnitBytes > sizeBytes) return CqeSyndrome.LOCAL_QP_OP_ERR;
    loadOperands(view, at + next, records, record);
    next += wqeUnitBytes;
  }
  return loadData(view, bytes, at, next, sizeBytes, records, record);
}

/** The control segment, which all services share. Returns the size of the WQE in bytes. */
export function decodeControl(view: DataView, at: number, records: SendRecords, record: number): number {
  const opcode = control.opcode.get(view, at);
  const sizeByte = view.getUint8(at + sizePlace);
  const sizeBytes = (sizeByte & control.ds.mask) * wqeUnitBytes;
  const flags = view.getUint32(at + flagsPlace);
  const request = records.rows[record]!;
  request.opcode = opcode;
  request.isSignalled = (flags & control.completion.mask) === completionBits ? 1 : 0;
  request.isSolicited = (flags & control.solicited.mask) !== 0 ? 1 : 0;
  request.isFenced = (sizeByte & control.fence.mask) !== 0 ? 1 : 0;
  request.isReadOrAtomic = isReadOrAtomic(opcode) ? 1 : 0;
  request.immediate = view.getInt32(at + control.immediate.wordOffset);
  request.segmentCount = 0;
  request.isInline = 0;
  request.messageBytes = 0;
  return sizeBytes;
}

function loadOperands(view: DataView, at: number, records: SendRecords, record: number): void {
  const operands = records.operands;
  operands[record * 4] = atomic.swapOrAdd.getLowWord(view, at);
  operands[record * 4 + 1] = atomic.swapOrAdd.getHighWord(view, at);
  operands[record * 4 + 2] = atomic.compare.getLowWord(view, at);
  operands[record * 4 + 3] = atomic.compare.getHighWord(view, at);
}

/** Data pointers and inline segments up to the WQE's end. Inline data of several segments is joined. */
export function loadData(
  view: DataView,
  bytes: Uint8Array,
  at: number,
  first: number,
  sizeBytes: number,
  records: SendRecords,
  record: number,
): number {
  let next = first;
  let count = 0;
  let inlineBytes = 0;
  let messageBytes = 0;
  while (next < sizeBytes) {
    const head = view.getUint32(at + next + headPlace);
    if ((head & inline.isInline.mask) !== 0) {
      const length = head & inline.byteCount.mask;
      if (next + INLINE_HEADER_BYTES + length > sizeBytes || inlineBytes + length > INLINE_BYTES_MAX)
        return CqeSyndrome.LOCAL_QP_OP_ERR;
      const from = at + next + INLINE_HEADER_BYTES;
      const to = record * INLINE_BYTES_MAX + inlineBytes;
      for (let index = 0; index < length; index++) records.inlineData[to + index] = bytes[from + index]!;
      inlineBytes += length;
      next = nextAfterInline(next, length);
      continue;
    }
    const length = head & pointer.byteCount.mask;
    if (length > 0) {
      if (count === SEGMENTS_MAX) return CqeSyndrome.LOCAL_QP_OP_ERR;
      const index = record * SEGMENTS_MAX + count++;
      records.segmentAddress[index] = pointer.address.getNumber(view, at + next);
      records.segmentKey[index] = pointer.lkey.get(view, at + next);
      records.segmentBytes[index] = length;
      messageBytes += length;
    }
    next += wqeUnitBytes;
  }
  if (inlineBytes > 0 && count > 0) return CqeSyndrome.LOCAL_QP_OP_ERR;
  const request = records.rows[record]!;
  request.segmentCount = count;
  request.isInline = inlineBytes > 0 ? 1 : 0;
  request.messageBytes = inlineBytes + messageBytes;
  const isAtomic = request.opcode === WqeOpcode.ATOMIC_CS || request.opcode === WqeOpcode.ATOMIC_FA;
  return isAtomic && messageBytes !== ATOMIC_BYTES ? CqeSyndrome.LOCAL_LENGTH_ERR : 0;
}

/** A segment that ends at a 64-byte boundary is followed there by the next one; the last is padded to 16. */
export function nextAfterInline(next: number, length: number): number {
  const end = next + INLINE_HEADER_BYTES + length;
  if (end % LINE_BYTES === 0) return end;
  return Math.ceil(end / wqeUnitBytes) * wqeUnitBytes;
}

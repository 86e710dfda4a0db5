/**
 * ibv_post_send. Each request is checked, written into its slot and handed over. One doorbell ends the list; a single short
 * request is written whole through BlueFlame.
 *
 *   check -> WQE into the slot -> stamp the headroom -> … -> BlueFlame copy, or doorbell with the QPN -> stamp the last
 *
 * Promises: nothing is half-posted, requests before a bad one are posted, `badWr` names the bad one; nothing is
 * allocated. Every number must fit its type in C (numbers.ts). Inline data are read from memory now: a program lets its own stores settle before it posts them inline.
 * Sources: interface sheet 6.2, 6.3, 6.9; golden captures, observations 1, 7, 9.
 */
import {
  blueFlameCopyBytes,
  dataPointer,
  uarOffset,
  WqeOpcode,
  wqeStamp,
  wqeUnitBytes,
} from '../abi/index.ts';
import { copyShort, mask24, pageBytes } from '../base/index.ts';
import { QpStateVerb } from '../driver/index.ts';
import { isAddress, isInt32, isListValid, isRemoteAddress, isUint32, isUint64 } from './numbers.ts';
import type { BadWr, IbvQp, IbvSendWr } from './objects.ts';
import type { UserMemory, VerbsCpu } from './platform.ts';
import { inlineBoundaryBytes, NextWqe, type SendRing, wqeBytesMax } from './send-ring.ts';
import type { SendRow } from './send-rows.ts';
import { EFAULT, EINVAL, ENOMEM } from './verbs-error.ts';
import { addBlueFlameFields, inlineLengthOf, wqeBytesOf, writeWqe } from './wqe-writer.ts';

const sendDoorbellOffset = uarOffset.sendDoorbell;
/** The WQE being written, reused: a post is not interrupted. */
const nextWqe = new NextWqe();

const { ATOMIC_CS, LOCAL_INVAL, MASKED_ATOMIC_CS } = WqeOpcode;

const { IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR } = QpStateVerb;

/**
 * @returns 0, or ENOMEM (queue full), EINVAL (state, opcode, too many buffers, inline data too long, a number that does not
 *   fit) or EFAULT (inline data that are not mapped)
 */
export function postSend(qp: IbvQp, wr: IbvSendWr, badWr?: BadWr<IbvSendWr>): number {
  const { cpu, sendRing: ring, context } = qp;
  const { costs, tap, memory } = context.platform;
  const isStamped = ring.strideBytes > inlineBoundaryBytes;
  let cycles = costs.postSend;
  let count = 0;
  let error = 0;
  let isShort = false;
  let storeOffset = 0;
  let wqeBytes = 0;
  let current: IbvSendWr | null | undefined = wr;
  for (; current !== null && current !== undefined; current = current.next) {
    const row = ring.rows[current.opcode];
    error = check(qp, ring, row, current, count);
    if (error !== 0 || row === undefined) break;
    const inlineLength = inlineLengthOf(current);
    error = inlineLength < 0 ? 0 : checkInline(ring, row, current, inlineLength, memory);
    if (error !== 0) break;
    const counter = ring.head + count;
    const slot = ring.slotAt(counter);
    wqeBytes = wqeBytesOf(row, current, inlineLength);
    storeOffset = cpu.pushMemoryStore(slot.address, wqeBytes);
    const wqe = nextWqe;
    wqe.base = storeOffset;
    wqe.ownerIsSet = (counter & ring.wqeCount) !== 0;
    wqe.isSignalled = qp.sqSigAll !== 0;
    wqe.wqeBytes = wqeBytes;
    wqe.inlineLength = inlineLength;
    writeWqe(cpu, wqe, row, current, memory);
    slot.wrId = current.wrId;
    slot.wqeBytes = wqeBytes;
    slot.opcode = row.opcode;
    isShort = row.isShort || inlineLength >= 0 || (row.hasRemoteAddress && current.numSge === 0);
    cycles += costs.postSendPerSegment * current.numSge;
    if (inlineLength > 0) {
      cycles += costs.postSendPerInlineByte64 * Math.ceil(inlineLength / inlineBoundaryBytes);
    }
    // Before the next WQE is written: in a list longer than the headroom it may use that very slot.
    if (isStamped && hasNext(current)) stamp(qp, ring, counter + ring.spareWqes);
    count++;
  }
  if (error !== 0 && badWr !== undefined) {
    badWr.wr = current ?? null;
    badWr.index = count;
  }
  if (error !== 0) tap?.calls?.refused('ibv_post_send', qp, error, current ?? wr);
  if (count === 0) {
    cpu.charge('post', cycles);
    return error;
  }
  const first = ring.head;
  const mayBlueFlame = isShort || context.info.isBlueFlameForAll === true;
  if (count === 1 && mayBlueFlame && wqeBytes > wqeUnitBytes && fitsBlueFlame(qp, wqeBytes)) {
    cycles += ringByBlueFlame(qp, storeOffset, wqeBytes) * costs.mmioStore;
  } else {
    ringDoorbell(cpu, qp, ring);
    cycles += costs.mmioStore;
  }
  cycles += context.platform.waitToPost?.(cycles) ?? 0;
  ring.head = (first + count) >>> 0;
  if (isStamped) stamp(qp, ring, ring.head - 1 + ring.spareWqes);
  cpu.commit('post', cycles);
  if (tap !== undefined) {
    const at = cpu.ownPs;
    for (let posted = 0, of = wr; posted < count; posted++, of = of.next!) {
      tap.posted(qp.qpNum, (first + posted) & 0xffff, ring.slotAt(first + posted).opcode, at);
      if (tap.watch !== undefined) tap.watch.sendPosted(qp.qpNum, (first + posted) & 0xffff, of, at);
      if (tap.calls !== undefined) tap.calls.sendPosted(qp, (first + posted) & 0xffff, of, at);
    }
  }
  return error;
}

function check(qp: IbvQp, ring: SendRing, row: SendRow | undefined, wr: IbvSendWr, count: number): number {
  const { state } = qp;
  if (state !== IBV_QPS_RTS && state !== IBV_QPS_SQD && state !== IBV_QPS_SQE && state !== IBV_QPS_ERR) {
    return EINVAL;
  }
  if (((ring.head - ring.tail) >>> 0) + count >= ring.maxPost) return ENOMEM;
  if (row === undefined) return EINVAL;
  const { numSge, sendFlags } = wr;
  if (!isInt32(numSge) || numSge < 0 || numSge > ring.maxSge) return EINVAL;
  if (!isUint32(sendFlags) || !isListValid(wr.sgList, numSge)) return EINVAL;
  if (row.hasImmediate && wr.immData !== undefined && !isUint32(wr.immData)) return EINVAL;
  if (row.isKeyOperation) return numSge === 0 ? checkKeyOperation(row, wr) : EINVAL;
  if (row.hasRemoteSrqn && !isNumber24(wr.qpType?.xrc.remoteSrqn)) return EINVAL;
  if (row.hasInvalidateKey)
    return wr.invalidateRkey !== undefined && isUint32(wr.invalidateRkey) ? 0 : EINVAL;
  if (row.isAtomic) return numSge === 1 && fitsSlot(ring, row) ? checkAtomic(row, wr) : EINVAL;
  if (row.isDatagram) return checkDatagram(wr);
  if (!row.hasRemoteAddress) return 0;
  const remote = wr.wr?.rdma;
  if (remote === undefined) return EINVAL;
  return isRemoteAddress(remote.remoteAddr) && isUint32(remote.rkey) ? 0 : EINVAL;
}

function checkKeyOperation(row: SendRow, wr: IbvSendWr): number {
  if (row.opcode === LOCAL_INVAL) {
    const { invalidateRkey } = wr;
    return invalidateRkey !== undefined && isUint32(invalidateRkey) ? 0 : EINVAL;
  }
  const request = wr.bindMw;
  if (request === undefined || !isUint32(request.rkey)) return EINVAL;
  const { addr, length, mwAccessFlags } = request.bindInfo;
  return isAddress(addr) && isAddress(length) && isUint32(mwAccessFlags) ? 0 : EINVAL;
}

function checkAtomic(row: SendRow, wr: IbvSendWr): number {
  const request = wr.wr?.atomic;
  if (request === undefined || !isRemoteAddress(request.remoteAddr) || !isUint32(request.rkey)) return EINVAL;
  const isSwap = row.opcode === ATOMIC_CS || row.opcode === MASKED_ATOMIC_CS;
  const hasOperands = isUint64(request.compareAdd) && (!isSwap || isUint64(request.swap));
  if (!hasOperands || !row.isMasked) return hasOperands ? 0 : EINVAL;
  const { compareAddMask, swapMask } = request;
  return isMask(compareAddMask) && (!isSwap || isMask(swapMask)) ? 0 : EINVAL;
}

/** A queue made without masked atomics may have too little room for their operands. */
const fitsSlot = (ring: SendRing, row: SendRow): boolean =>
  !row.isMasked || row.dataOffset + dataPointer.sizeBytes <= ring.strideBytes;

const isMask = (mask: bigint | undefined): boolean => mask !== undefined && isUint64(mask);

function checkDatagram(wr: IbvSendWr): number {
  const request = wr.wr?.ud;
  if (request === undefined) return EINVAL;
  const { remoteQpn, remoteQkey } = request;
  return isNumber24(remoteQpn) && isUint32(remoteQkey) ? 0 : EINVAL;
}

const isNumber24 = (value: number | undefined): boolean =>
  value !== undefined && isInt32(value) && value >= 0 && value <= mask24;

/** The processor copies inline data: a missing page ends a C program; here it causes EFAULT. */
function checkInline(
  ring: SendRing,
  row: SendRow,
  wr: IbvSendWr,
  inlineLength: number,
  memory: UserMemory,
): number {
  if (inlineLength > ring.maxInline || (row.isShort && !row.isAtomic)) return EINVAL;
  // A QP may allow more inline data for a SEND than fit the longest WQE of a WRITE.
  if (wqeBytesOf(row, wr, inlineLength) > wqeBytesMax) return EINVAL;
  for (let sge = 0; sge < wr.numSge; sge++) {
    const { addr, length } = wr.sgList[sge]!;
    const end = addr + length;
    for (let at = addr; at < end; at += pageBytes - (at % pageBytes)) {
      if (memory.physicalAddress(at) < 0) return EFAULT;
    }
  }
  return 0;
}

/** One half of the register holds the WQE. */
const fitsBlueFlame = (qp: IbvQp, wqeBytes: number): boolean =>
  wqeBytes <= qp.context.info.blueFlameRegisterBytes >>> 1;

/** Rings in the doorbell page named by the QP's context. */
function ringDoorbell(cpu: VerbsCpu, qp: IbvQp, ring: SendRing): void {
  const at = cpu.pushDeviceStore(qp.context.info.uarBusAddress + sendDoorbellOffset, 4, 'uncached');
  cpu.storeWords[at >> 2] = ring.doorbellWord;
}

/**
 * Copies the WQE, rounded up to 64 bytes with the next bytes of its slot, into one half of the register. The bytes of the WQE
 * in memory are patched too: both carry counter and QPN. @returns write-combining buffers filled
 */
function ringByBlueFlame(qp: IbvQp, storeOffset: number, wqeBytes: number): number {
  const { cpu, context, sendRing: ring } = qp;
  addBlueFlameFields(cpu.storeView, storeOffset, ring.head & 0xffff, qp.qpNum);
  const copyBytes = Math.ceil(wqeBytes / blueFlameCopyBytes) * blueFlameCopyBytes;
  const { blueFlameBusAddress, blueFlameRegisterBytes } = context.info;
  const half = context.blueFlameHalf * (blueFlameRegisterBytes >>> 1);
  const at = cpu.pushDeviceStore(blueFlameBusAddress + half, copyBytes, 'writeCombining');
  const view = cpu.storeView;
  copyShort(view, at, view, storeOffset, wqeBytes);
  const behind = ring.slotAt(ring.head).address + wqeBytes;
  copyShort(view, at + wqeBytes, context.platform.memory.viewNow, behind, copyBytes - wqeBytes);
  context.blueFlameHalf ^= 1;
  return copyBytes / blueFlameCopyBytes;
}

const hasNext = ({ next }: IbvSendWr): boolean => next !== null && next !== undefined;

/** Marks the WQE that the device would prefetch after the headroom: its bytes after the first 64 become unwritten. */
function stamp(qp: IbvQp, ring: SendRing, counter: number): void {
  const { address, wqeBytes } = ring.slotAt(counter);
  for (let at = inlineBoundaryBytes; at < wqeBytes; at += inlineBoundaryBytes) {
    const offset = qp.cpu.pushMemoryStore(address + at, 4);
    qp.cpu.storeView.setUint32(offset, wqeStamp);
  }
}

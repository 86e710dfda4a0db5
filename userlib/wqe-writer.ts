/**
 * WQEs, built in place: the bytes libmlx4 would write, at an offset of the store buffer. Nothing is allocated.
 *
 *   control 16 | [datagram 48 on UD] | [remote address 16] | [atomic 16 or 32] | data pointers, or inline data
 *
 * All offsets come from the layouts; whole dwords are put together and stored once, high byte first, as WQEs have them.
 * Source: interface sheet 6.3, 6.4.
 */
import {
  addressVector,
  atomicSegment,
  bindSegment,
  completionRequested,
  controlSegment,
  datagramSegment,
  dataPointer,
  inlineHeader,
  localInvalidateSegment,
  maskedCompareSwapSegment,
  remoteAddressSegment,
  WqeOpcode,
  wqeUnitBytes,
} from '../abi/index.ts';
import { AccessFlag, MwType } from '../driver/index.ts';
import { SendFlag } from './constants.ts';
import type { IbvSendWr, IbvSge } from './objects.ts';
import type { UserCpu, UserMemory } from './platform.ts';
import { inlineBoundaryBytes, type NextWqe } from './send-ring.ts';
import type { SendRow } from './send-rows.ts';

const control = controlSegment.fields;
const ownerBit = control.owner.mask;
const fenceBit = 1 << control.fence.shift;
const completionBits = completionRequested << control.completion.shift;
const solicitedBit = control.solicited.mask;
const strongOrderBit = control.strongOrder.mask;
const opcodePlace = control.opcode.wordOffset;
/** Fence and size are in the lowest byte of the dword that begins with the QPN. */
const qpnPlace = control.qpn.wordOffset;
const flagsPlace = control.completion.wordOffset;
const remoteSrqnShift = control.remoteSrqn.shift;
const counterShift = control.wqeCounter.shift;
const qpnShift = control.qpn.shift;
const immediatePlace = control.immediate.wordOffset;
const controlBytes = controlSegment.sizeBytes;

const remoteAddressPlace = remoteAddressSegment.fields.address.wordOffset;
const remoteKeyPlace = remoteAddressSegment.fields.rkey.wordOffset;
const remoteBytes = remoteAddressSegment.sizeBytes;
const atomic = atomicSegment.fields;
const masked = maskedCompareSwapSegment.fields;
const bind = bindSegment.fields;
const datagram = datagramSegment.fields;
const byteCountPlace = dataPointer.fields.byteCount.wordOffset;
const lkeyPlace = dataPointer.fields.lkey.wordOffset;
const addressPlace = dataPointer.fields.address.wordOffset;
const pointerBytes = dataPointer.sizeBytes;
const inlineBit = inlineHeader.fields.isInline.mask;
const inlineHeaderBytes = inlineHeader.sizeBytes;
/** libmlx4 writes an empty inline segment for a buffer of length 0. */
const emptyPointer = inlineBit;
const twoTo32 = 0x1_0000_0000;

const { IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_ZERO_BASED } =
  AccessFlag;
const { IBV_SEND_FENCE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_SEND_INLINE } = SendFlag;

/** An address, below 2^53, as two dwords. */
function putAddress(view: DataView, at: number, address: number): void {
  view.setInt32(at, address / twoTo32);
  view.setInt32(at + 4, address);
}

/** Size of the WQE in bytes, which must be known before it is stored. The request has been checked. */
export function wqeBytesOf(row: SendRow, wr: IbvSendWr, inlineLength: number): number {
  return inlineLength < 0
    ? row.dataOffset + wr.numSge * pointerBytes
    : inlineEnd(row.dataOffset, inlineLength);
}

/** Bytes of inline data in a request, -1 if its data are not inline. */
export function inlineLengthOf(wr: IbvSendWr): number {
  if ((wr.sendFlags & IBV_SEND_INLINE) === 0 || wr.numSge === 0) return -1;
  let length = 0;
  for (let at = 0; at < wr.numSge; at++) length += wr.sgList[at]!.length;
  return length;
}

/** Writes the WQE of a request. Dword 0 of the control segment hands it over; the whole WQE becomes visible at once, with the commit of the store. */
export function writeWqe(cpu: UserCpu, wqe: NextWqe, row: SendRow, wr: IbvSendWr, memory: UserMemory): void {
  const { base, ownerIsSet, isSignalled, wqeBytes, inlineLength } = wqe;
  const view = cpu.storeView;
  const flags = wr.sendFlags;
  view.setInt32(base + opcodePlace, (ownerIsSet ? ownerBit : 0) | row.opcode);
  view.setInt32(base + qpnPlace, ((flags & IBV_SEND_FENCE) !== 0 ? fenceBit : 0) | (wqeBytes / wqeUnitBytes));
  const completion = isSignalled || (flags & IBV_SEND_SIGNALED) !== 0 ? completionBits : 0;
  const order = row.isKeyOperation ? strongOrderBit : 0;
  const queue = row.hasRemoteSrqn ? wr.qpType!.xrc.remoteSrqn << remoteSrqnShift : 0;
  view.setInt32(
    base + flagsPlace,
    queue | completion | order | ((flags & IBV_SEND_SOLICITED) !== 0 ? solicitedBit : 0),
  );
  const key = row.hasInvalidateKey ? wr.invalidateRkey! : 0;
  view.setInt32(base + immediatePlace, row.hasImmediate ? (wr.immData ?? 0) : key);
  let at = base + controlBytes;
  if (row.isKeyOperation) return writeKeyOperation(view, at, row.opcode, wr);
  if (row.isDatagram) at = writeDatagram(view, at, wr);
  if (row.isAtomic) at = writeAtomic(view, at, row.opcode, wr);
  else if (row.hasRemoteAddress) at = writeRemote(view, at, wr.wr!.rdma!.remoteAddr, wr.wr!.rdma!.rkey);
  if (inlineLength >= 0) writeInline(view, base, at, wr, memory);
  else for (let sge = 0; sge < wr.numSge; sge++) at = writePointer(view, at, wr.sgList[sge]!);
}

/** Adds the fields of a BlueFlame post: the WQE counter and the QPN. */
export function addBlueFlameFields(view: DataView, base: number, counter: number, qpn: number): void {
  view.setInt32(base + opcodePlace, view.getInt32(base + opcodePlace) | (counter << counterShift));
  view.setInt32(base + qpnPlace, view.getInt32(base + qpnPlace) | (qpn << qpnShift));
}

/** One data pointer of a send or receive list. @returns the offset after it */
export function writePointer(view: DataView, at: number, sge: IbvSge): number {
  const byteCount = sge.length === 0 ? emptyPointer : sge.length;
  view.setInt32(at + byteCountPlace, byteCount);
  view.setInt32(at + lkeyPlace, sge.lkey);
  putAddress(view, at + addressPlace, sge.addr);
  return at + pointerBytes;
}

/** Ends a receive list that is shorter than its queue's longest. */
export function writeListEnd(view: DataView, at: number, lkey: number): void {
  view.setInt32(at + byteCountPlace, 0);
  view.setInt32(at + lkeyPlace, lkey);
  putAddress(view, at + addressPlace, 0);
}

function writeRemote(view: DataView, at: number, address: number | bigint, rkey: number): number {
  if (typeof address === 'number') putAddress(view, at + remoteAddressPlace, address);
  else view.setBigUint64(at + remoteAddressPlace, address);
  view.setInt32(at + remoteKeyPlace, rkey);
  view.setInt32(at + remoteKeyPlace + 4, 0);
  return at + remoteBytes;
}

function writeAtomic(view: DataView, at: number, opcode: number, wr: IbvSendWr): number {
  const request = wr.wr!.atomic!;
  const behind = writeRemote(view, at, request.remoteAddr, request.rkey);
  if (opcode === WqeOpcode.MASKED_ATOMIC_CS) {
    masked.swap.set(view, behind, request.swap);
    masked.compare.set(view, behind, request.compareAdd);
    masked.swapMask.set(view, behind, request.swapMask!);
    masked.compareMask.set(view, behind, request.compareAddMask!);
    return behind + maskedCompareSwapSegment.sizeBytes;
  }
  const isSwap = opcode === WqeOpcode.ATOMIC_CS;
  const isMaskedAdd = opcode === WqeOpcode.MASKED_ATOMIC_FA;
  atomic.swapOrAdd.set(view, behind, isSwap ? request.swap : request.compareAdd);
  atomic.compare.set(view, behind, isSwap ? request.compareAdd : isMaskedAdd ? request.compareAddMask! : 0n);
  return behind + atomicSegment.sizeBytes;
}

/** The segment of a local invalidate or a bind, as in libmlx4. */
function writeKeyOperation(view: DataView, at: number, opcode: number, wr: IbvSendWr): void {
  if (opcode === WqeOpcode.LOCAL_INVAL) {
    zero(view, at, localInvalidateSegment.sizeBytes);
    localInvalidateSegment.fields.key.set(view, at, wr.invalidateRkey!);
    return;
  }
  zero(view, at, bindSegment.sizeBytes);
  const { mw, rkey, bindInfo } = wr.bindMw!;
  const has = (flag: number): number => ((bindInfo.mwAccessFlags & flag) === 0 ? 0 : 1);
  bind.atomicEnabled.set(view, at, has(IBV_ACCESS_REMOTE_ATOMIC));
  bind.remoteWriteEnabled.set(view, at, has(IBV_ACCESS_REMOTE_WRITE));
  bind.remoteReadEnabled.set(view, at, has(IBV_ACCESS_REMOTE_READ));
  bind.isType2.set(view, at, mw.type === MwType.IBV_MW_TYPE_2 ? 1 : 0);
  bind.zeroBased.set(view, at, has(IBV_ACCESS_ZERO_BASED));
  bind.newRkey.set(view, at, rkey);
  bind.lkey.set(view, at, bindInfo.mr.lkey);
  bind.address.setNumber(view, at, bindInfo.addr);
  bind.lengthBytes.setNumber(view, at, bindInfo.length);
}

function zero(view: DataView, at: number, lengthBytes: number): void {
  for (let word = at; word < at + lengthBytes; word += 4) view.setInt32(word, 0);
}

function writeDatagram(view: DataView, at: number, wr: IbvSendWr): number {
  const request = wr.wr!.ud!;
  const vector = request.ah.addressVector;
  for (let byte = 0; byte < addressVector.sizeBytes; byte++) view.setUint8(at + byte, vector[byte]!);
  view.setInt32(at + datagram.destinationQpn.wordOffset, request.remoteQpn);
  view.setInt32(at + datagram.qkey.wordOffset, request.remoteQkey);
  const end = at + datagramSegment.sizeBytes;
  for (let rest = at + datagram.vlan.wordOffset; rest < end; rest += 4) view.setInt32(rest, 0);
  const mac = request.ah.destinationMac;
  if (mac !== undefined)
    for (let byte = 0; byte < mac.length; byte++) view.setUint8(end - mac.length + byte, mac[byte]!);
  return end;
}

/** End of inline data of this length, padded to whole units; counted from the WQE's start. */
function inlineEnd(start: number, length: number): number {
  let at = start;
  let rest = length;
  while (rest > 0) {
    const room = inlineBoundaryBytes - (at % inlineBoundaryBytes) - inlineHeaderBytes;
    const count = Math.min(rest, room);
    at += inlineHeaderBytes + count;
    rest -= count;
  }
  return Math.ceil(at / wqeUnitBytes) * wqeUnitBytes;
}

/** Copies the buffers into the WQE, cut where a segment would cross a multiple of 64 bytes. */
function writeInline(view: DataView, base: number, start: number, wr: IbvSendWr, memory: UserMemory): void {
  let at = start;
  let header = -1;
  let count = 0;
  for (let sge = 0; sge < wr.numSge; sge++) {
    const { addr, length } = wr.sgList[sge]!;
    let physical = 0;
    for (let byte = 0; byte < length; byte++) {
      if (header < 0) {
        header = at;
        at += inlineHeaderBytes;
        count = 0;
      }
      if (byte === 0 || ((addr + byte) & 0xfff) === 0) physical = memory.physicalAddress(addr + byte);
      view.setUint8(at++, memory.bytesNow[physical++]!);
      count++;
      if ((at - base) % inlineBoundaryBytes === 0) {
        view.setUint32(header, inlineBit | count);
        header = -1;
      }
    }
  }
  if (header >= 0) view.setUint32(header, inlineBit | count);
  while ((at - base) % wqeUnitBytes !== 0) view.setUint8(at++, 0);
}

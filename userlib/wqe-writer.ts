/**
 * WQEs, built in place: the bytes libmlx4 would write, at an offset of the store buffer. Nothing is allocated.
 *
 *   control 16 | [datagram 48 on UD] | [remote address 16] | [atomic 16] | data pointers, or inline data
 *
 * All offsets come from the layouts; whole dwords are put together and stored once. Source: interface sheet 6.3, 6.4.
 */

import * as wqe from '../abi/wqe.ts';
import {
  addressVector,
  atomicSegment,
  controlSegment,
  datagramSegment,
  dataPointer,
  inlineHeader,
  remoteAddressSegment,
} from '../abi/wqe.ts';
import { WqeOpcode } from '../abi/wqe-opcodes.ts';
import { QpTypeVerb } from '../driver/uapi.ts';
import { SendFlag, WrOpcode } from './constants.ts';
import type { IbvSendWr, IbvSge } from './objects.ts';
import type { UserMemory } from './platform.ts';
import * as sendRing from './send-ring.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { completionRequested, wqeUnitBytes } = wqe;
const { inlineBoundaryBytes } = sendRing;

/** How the library turns a work request's opcode into a WQE. */
export interface OpcodeRow {
  readonly opcode: number;
  readonly hasRemoteAddress: boolean;
  readonly isAtomic: boolean;
  readonly hasImmediate: boolean;
  /** A lone one goes through BlueFlame even when its data are not inline, as libmlx4 does with reads. */
  readonly isShort: boolean;
}

const row = (opcode: number, flags: Partial<OpcodeRow>): OpcodeRow => ({
  hasRemoteAddress: false,
  isAtomic: false,
  hasImmediate: false,
  isShort: false,
  ...flags,
  opcode,
});

/** By work request opcode; undefined: EINVAL. */
export const opcodeRows: readonly (OpcodeRow | undefined)[] = (() => {
  const rows: (OpcodeRow | undefined)[] = [];
  rows[WrOpcode.IBV_WR_RDMA_WRITE] = row(WqeOpcode.RDMA_WRITE, { hasRemoteAddress: true });
  rows[WrOpcode.IBV_WR_RDMA_WRITE_WITH_IMM] = row(WqeOpcode.RDMA_WRITE_IMM, {
    hasRemoteAddress: true,
    hasImmediate: true,
  });
  rows[WrOpcode.IBV_WR_SEND] = row(WqeOpcode.SEND, {});
  rows[WrOpcode.IBV_WR_SEND_WITH_IMM] = row(WqeOpcode.SEND_IMM, { hasImmediate: true });
  rows[WrOpcode.IBV_WR_RDMA_READ] = row(WqeOpcode.RDMA_READ, { hasRemoteAddress: true, isShort: true });
  rows[WrOpcode.IBV_WR_ATOMIC_CMP_AND_SWP] = row(WqeOpcode.ATOMIC_CS, {
    hasRemoteAddress: true,
    isAtomic: true,
  });
  rows[WrOpcode.IBV_WR_ATOMIC_FETCH_AND_ADD] = row(WqeOpcode.ATOMIC_FA, {
    hasRemoteAddress: true,
    isAtomic: true,
  });
  return rows;
})();

const control = controlSegment.fields;
const ownerBit = control.owner.mask;
const fenceShift = control.fence.shift;
const completionBits = completionRequested << control.completion.shift;
const solicitedBit = control.solicited.mask;
const opcodeWord = control.opcode.wordOffset;
const sizeByte = control.ds.wordOffset;
const flagsWord = control.completion.wordOffset;
const counterShift = control.wqeCounter.shift;
const qpnWord = control.qpn.wordOffset;
const qpnShift = control.qpn.shift;
const immediateWord = control.immediate.wordOffset;
const controlBytes = controlSegment.sizeBytes;

const remote = remoteAddressSegment.fields;
const remoteBytes = remoteAddressSegment.sizeBytes;
const atomic = atomicSegment.fields;
const datagram = datagramSegment.fields;
const pointer = dataPointer.fields;
const pointerBytes = dataPointer.sizeBytes;
const inlineBit = inlineHeader.fields.isInline.mask;
const inlineHeaderBytes = inlineHeader.sizeBytes;
/** libmlx4 writes an empty inline segment where a buffer has length 0. */
const emptyPointer = inlineBit;
const twoTo32 = 0x1_0000_0000;

const { IBV_SEND_FENCE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_SEND_INLINE } = SendFlag;

function setUint64(view: DataView, at: number, value: number): void {
  view.setUint32(at, Math.floor(value / twoTo32));
  view.setUint32(at + 4, value >>> 0);
}

/** Bytes of the WQE: what has to be known before it is stored. The request has been checked. */
export function wqeBytesOf(type: QpTypeVerb, opcode: OpcodeRow, wr: IbvSendWr, inlineLength: number): number {
  const start = dataOffsetOf(type, opcode);
  if (inlineLength < 0) return start + wr.numSge * pointerBytes;
  return inlineEnd(start, inlineLength);
}

/** Bytes of inline data a request carries, -1 when its data are not inline. */
export function inlineLengthOf(wr: IbvSendWr): number {
  if ((wr.sendFlags & IBV_SEND_INLINE) === 0 || wr.numSge === 0) return -1;
  let length = 0;
  for (let at = 0; at < wr.numSge; at++) length += wr.sgList[at]!.length;
  return length;
}

/**
 * Writes the WQE at `base`. The control segment's dword 0 hands it over; the whole WQE becomes visible at once, with the
 * commit of the store.
 */
export function writeWqe(
  view: DataView,
  base: number,
  type: QpTypeVerb,
  opcode: OpcodeRow,
  wr: IbvSendWr,
  ownerIsSet: boolean,
  isSignalled: boolean,
  wqeBytes: number,
  inlineLength: number,
  memory: UserMemory,
): void {
  const flags = wr.sendFlags;
  view.setUint32(base + opcodeWord, (ownerIsSet ? ownerBit : 0) | opcode.opcode);
  view.setUint32(base + qpnWord, 0);
  const fence = (flags & IBV_SEND_FENCE) !== 0 ? 1 << fenceShift : 0;
  view.setUint8(base + sizeByte, fence | (wqeBytes / wqeUnitBytes));
  const completion = isSignalled || (flags & IBV_SEND_SIGNALED) !== 0 ? completionBits : 0;
  view.setUint32(base + flagsWord, completion | ((flags & IBV_SEND_SOLICITED) !== 0 ? solicitedBit : 0));
  view.setUint32(base + immediateWord, opcode.hasImmediate ? (wr.immData ?? 0) : 0);
  let at = base + controlBytes;
  if (type === QpTypeVerb.IBV_QPT_UD) at = writeDatagram(view, at, wr);
  if (opcode.isAtomic) at = writeAtomic(view, at, opcode.opcode, wr);
  else if (opcode.hasRemoteAddress) at = writeRemote(view, at, wr.wr!.rdma!.remoteAddr, wr.wr!.rdma!.rkey);
  if (inlineLength >= 0) writeInline(view, base, at, wr, memory);
  else for (let sge = 0; sge < wr.numSge; sge++) at = writePointer(view, at, wr.sgList[sge]!);
}

/** Adds what a BlueFlame post carries: the WQE counter and the QPN. */
export function addBlueFlameFields(view: DataView, base: number, counter: number, qpn: number): void {
  view.setUint32(base + opcodeWord, view.getUint32(base + opcodeWord) | (counter << counterShift));
  view.setUint32(base + qpnWord, view.getUint32(base + qpnWord) | (qpn << qpnShift));
}

/** One data pointer of a send or receive list. @returns the offset behind it */
export function writePointer(view: DataView, at: number, sge: IbvSge): number {
  view.setUint32(at + pointer.byteCount.wordOffset, sge.length === 0 ? emptyPointer : sge.length);
  view.setUint32(at + pointer.lkey.wordOffset, sge.lkey);
  setUint64(view, at + pointer.address.wordOffset, sge.addr);
  return at + pointerBytes;
}

/** Ends a receive list that is shorter than its queue's longest. */
export function writeListEnd(view: DataView, at: number, lkey: number): void {
  view.setUint32(at + pointer.byteCount.wordOffset, 0);
  view.setUint32(at + pointer.lkey.wordOffset, lkey);
  setUint64(view, at + pointer.address.wordOffset, 0);
}

function dataOffsetOf(type: QpTypeVerb, opcode: OpcodeRow): number {
  let offset = controlBytes;
  if (type === QpTypeVerb.IBV_QPT_UD) offset += datagramSegment.sizeBytes;
  if (opcode.hasRemoteAddress) offset += remoteBytes;
  if (opcode.isAtomic) offset += atomicSegment.sizeBytes;
  return offset;
}

function writeRemote(view: DataView, at: number, address: number, rkey: number): number {
  setUint64(view, at + remote.address.wordOffset, address);
  view.setUint32(at + remote.rkey.wordOffset, rkey);
  view.setUint32(at + remote.rkey.wordOffset + 4, 0);
  return at + remoteBytes;
}

function writeAtomic(view: DataView, at: number, opcode: number, wr: IbvSendWr): number {
  const request = wr.wr!.atomic!;
  const behind = writeRemote(view, at, request.remoteAddr, request.rkey);
  const isSwap = opcode === WqeOpcode.ATOMIC_CS;
  atomic.swapOrAdd.set(view, behind, isSwap ? request.swap : request.compareAdd);
  atomic.compare.set(view, behind, isSwap ? request.compareAdd : 0n);
  return behind + atomicSegment.sizeBytes;
}

function writeDatagram(view: DataView, at: number, wr: IbvSendWr): number {
  const request = wr.wr!.ud!;
  const vector = request.ah.addressVector;
  for (let byte = 0; byte < addressVector.sizeBytes; byte++) view.setUint8(at + byte, vector[byte]!);
  view.setUint32(at + datagram.destinationQpn.wordOffset, request.remoteQpn);
  view.setUint32(at + datagram.qkey.wordOffset, request.remoteQkey);
  const rest = at + datagram.vlan.wordOffset;
  for (let offset = rest; offset < at + datagramSegment.sizeBytes; offset += 4) view.setUint32(offset, 0);
  return at + datagramSegment.sizeBytes;
}

/** Where inline data of this length end, padded to whole units; counted from the WQE's start. */
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
      view.setUint8(at++, memory.bytes[physical++]!);
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

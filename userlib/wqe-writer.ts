/**
 * WQEs, built in place: the bytes libmlx4 would write, at an offset of the store buffer. Nothing is allocated.
 *
 *   control 16 | [datagram 48 on UD] | [remote address 16] | [atomic 16] | data pointers, or inline data
 *
 * All offsets come from the layouts; whole dwords are put together and stored once, as words with their bytes turned
 * round, since WQEs are big-endian and the processor is not. Source: interface sheet 6.3, 6.4.
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
import { SendFlag } from './constants.ts';
import type { IbvSendWr, IbvSge } from './objects.ts';
import type { UserCpu, UserMemory } from './platform.ts';
import * as sendRing from './send-ring.ts';
import type { SendRow } from './send-rows.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { completionRequested, wqeUnitBytes } = wqe;
const { inlineBoundaryBytes } = sendRing;

/** A dword of a WQE as the processor's word. */
const turned = (dword: number): number =>
  (dword << 24) | ((dword & 0xff00) << 8) | ((dword >>> 8) & 0xff00) | (dword >>> 24);

const wordOf = (field: { readonly wordOffset: number }): number => field.wordOffset >> 2;

const control = controlSegment.fields;
const ownerBit = control.owner.mask;
const fenceBit = 1 << control.fence.shift;
/** Turned once: a word turned is its bits turned. */
const completionTurned = turned(completionRequested << control.completion.shift);
const solicitedTurned = turned(control.solicited.mask);
const opcodeWord = wordOf(control.opcode);
/** Fence and size are the lowest byte of the dword that the QPN begins. */
const qpnWord = wordOf(control.qpn);
const flagsWord = wordOf(control.completion);
const counterShift = control.wqeCounter.shift;
const qpnShift = control.qpn.shift;
const immediateWord = wordOf(control.immediate);
const controlWords = controlSegment.sizeBytes >> 2;

const remoteAddressWord = wordOf(remoteAddressSegment.fields.address);
const remoteKeyWord = wordOf(remoteAddressSegment.fields.rkey);
const remoteWords = remoteAddressSegment.sizeBytes >> 2;
const atomic = atomicSegment.fields;
const datagram = datagramSegment.fields;
const byteCountWord = wordOf(dataPointer.fields.byteCount);
const lkeyWord = wordOf(dataPointer.fields.lkey);
const addressWord = wordOf(dataPointer.fields.address);
const pointerBytes = dataPointer.sizeBytes;
const pointerWords = pointerBytes >> 2;
const inlineBit = inlineHeader.fields.isInline.mask;
const inlineHeaderBytes = inlineHeader.sizeBytes;
/** libmlx4 writes an empty inline segment where a buffer has length 0. */
const emptyPointer = inlineBit;
const twoTo32 = 0x1_0000_0000;

const { IBV_SEND_FENCE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_SEND_INLINE } = SendFlag;

/** An address, below 2^53, as two dwords. */
function putAddress(words: Int32Array, at: number, address: number): void {
  words[at] = turned((address / twoTo32) | 0);
  words[at + 1] = turned(address | 0);
}

/** Bytes of the WQE: what has to be known before it is stored. The request has been checked. */
export function wqeBytesOf(row: SendRow, wr: IbvSendWr, inlineLength: number): number {
  return inlineLength < 0
    ? row.dataOffset + wr.numSge * pointerBytes
    : inlineEnd(row.dataOffset, inlineLength);
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
  cpu: UserCpu,
  base: number,
  row: SendRow,
  wr: IbvSendWr,
  ownerIsSet: boolean,
  isSignalled: boolean,
  wqeBytes: number,
  inlineLength: number,
  memory: UserMemory,
): void {
  const words = cpu.storeWords;
  const first = base >> 2;
  const flags = wr.sendFlags;
  words[first + opcodeWord] = turned((ownerIsSet ? ownerBit : 0) | row.opcode);
  words[first + qpnWord] = turned(
    ((flags & IBV_SEND_FENCE) !== 0 ? fenceBit : 0) | (wqeBytes / wqeUnitBytes),
  );
  const completion = isSignalled || (flags & IBV_SEND_SIGNALED) !== 0 ? completionTurned : 0;
  words[first + flagsWord] = completion | ((flags & IBV_SEND_SOLICITED) !== 0 ? solicitedTurned : 0);
  words[first + immediateWord] = row.hasImmediate ? turned(wr.immData ?? 0) : 0;
  let at = first + controlWords;
  if (row.isDatagram) at = writeDatagram(cpu, at, wr);
  if (row.isAtomic) at = writeAtomic(cpu, at, row.opcode, wr);
  else if (row.hasRemoteAddress) at = writeRemote(words, at, wr.wr!.rdma!.remoteAddr, wr.wr!.rdma!.rkey);
  if (inlineLength >= 0) writeInline(cpu.storeView, base, at * 4, wr, memory);
  else for (let sge = 0; sge < wr.numSge; sge++) at = writePointer(words, at, wr.sgList[sge]!);
}

/** Adds what a BlueFlame post carries: the WQE counter and the QPN. */
export function addBlueFlameFields(words: Int32Array, base: number, counter: number, qpn: number): void {
  const first = base >> 2;
  words[first + opcodeWord] = words[first + opcodeWord]! | turned(counter << counterShift);
  words[first + qpnWord] = words[first + qpnWord]! | turned(qpn << qpnShift);
}

/** One data pointer of a send or receive list, at a word. @returns the word behind it */
export function writePointer(words: Int32Array, at: number, sge: IbvSge): number {
  words[at + byteCountWord] = turned(sge.length === 0 ? emptyPointer : sge.length);
  words[at + lkeyWord] = turned(sge.lkey);
  putAddress(words, at + addressWord, sge.addr);
  return at + pointerWords;
}

/** Ends a receive list that is shorter than its queue's longest. */
export function writeListEnd(words: Int32Array, at: number, lkey: number): void {
  words[at + byteCountWord] = 0;
  words[at + lkeyWord] = turned(lkey);
  putAddress(words, at + addressWord, 0);
}

function writeRemote(words: Int32Array, at: number, address: number, rkey: number): number {
  putAddress(words, at + remoteAddressWord, address);
  words[at + remoteKeyWord] = turned(rkey);
  words[at + remoteKeyWord + 1] = 0;
  return at + remoteWords;
}

function writeAtomic(cpu: UserCpu, at: number, opcode: number, wr: IbvSendWr): number {
  const request = wr.wr!.atomic!;
  const behind = writeRemote(cpu.storeWords, at, request.remoteAddr, request.rkey);
  const isSwap = opcode === WqeOpcode.ATOMIC_CS;
  atomic.swapOrAdd.set(cpu.storeView, behind * 4, isSwap ? request.swap : request.compareAdd);
  atomic.compare.set(cpu.storeView, behind * 4, isSwap ? request.compareAdd : 0n);
  return behind + (atomicSegment.sizeBytes >> 2);
}

function writeDatagram(cpu: UserCpu, at: number, wr: IbvSendWr): number {
  const request = wr.wr!.ud!;
  const { storeView: view, storeWords: words } = cpu;
  const vector = request.ah.addressVector;
  for (let byte = 0; byte < addressVector.sizeBytes; byte++) view.setUint8(at * 4 + byte, vector[byte]!);
  words[at + wordOf(datagram.destinationQpn)] = turned(request.remoteQpn);
  words[at + wordOf(datagram.qkey)] = turned(request.remoteQkey);
  const end = at + (datagramSegment.sizeBytes >> 2);
  for (let rest = at + wordOf(datagram.vlan); rest < end; rest++) words[rest] = 0;
  return end;
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

/**
 * ibv_post_recv and ibv_post_srq_recv: lists of buffers into the queue, then the doorbell record. No MMIO.
 * Sources: interface sheet 6.4, 6.5, 6.8; rdma-core providers/mlx4.
 */
import { dataPointer, invalidLkey, receiveRecord, srqNextSegment } from '../abi/index.ts';
import { QpStateVerb } from '../driver/index.ts';
import { isInt32, isListValid } from './numbers.ts';
import type { BadWr, IbvQp, IbvRecvWr, IbvSrq } from './objects.ts';
import type { VerbsCpu } from './platform.ts';
import type { SharedRing } from './shared-ring.ts';
import { EINVAL, ENOMEM } from './verbs-error.ts';
import { writeListEnd, writePointer } from './wqe-writer.ts';

const pointerBytes = dataPointer.sizeBytes;
const nextBytes = srqNextSegment.sizeBytes;
const { mask: postedMask } = receiveRecord.fields.postedCounter;
const recordBytes = receiveRecord.sizeBytes;

/** @returns 0, or ENOMEM (queue full) or EINVAL (state, too many buffers, a number that does not fit, QP with an SRQ) */
export function postRecv(qp: IbvQp, wr: IbvRecvWr, badWr?: BadWr<IbvRecvWr>): number {
  const { cpu, receiveRing: ring, context } = qp;
  const { costs } = context.platform;
  let count = 0;
  let error = ring === null || qp.state === QpStateVerb.IBV_QPS_RESET ? EINVAL : 0;
  let current: IbvRecvWr | null | undefined = wr;
  for (; ring !== null && error === 0 && current !== null && current !== undefined; current = current.next) {
    if (((ring.head - ring.tail) >>> 0) + count >= ring.wqeCount) error = ENOMEM;
    else if (!isValid(current, ring.maxSge)) error = EINVAL;
    if (error !== 0) break;
    const slot = (ring.head + count) & (ring.wqeCount - 1);
    writeList(cpu, ring.slots[slot]!, current, ring.pointersMax);
    ring.inlineLists?.keep(slot, current);
    ring.wrIds[slot] = current.wrId;
    context.platform.tap?.watch?.receivePosted(`RQ of QP ${qp.qpNum}`, -1, current, cpu.ownPs);
    count++;
  }
  if (error !== 0 && badWr !== undefined) {
    badWr.wr = current ?? null;
    badWr.index = count;
  }
  if (error !== 0) context.platform.tap?.calls?.refused('ibv_post_recv', qp, error, current ?? wr);
  if (ring === null || count === 0) {
    cpu.charge('post', costs.postRecv);
    return error;
  }
  context.platform.tap?.calls?.receivesPosted(qp, count);
  ring.head = (ring.head + count) >>> 0;
  storeRecord(cpu, ring.record.physicalAddress, ring.head);
  cpu.commit('post', costs.postRecv * count);
  return error;
}

/** @returns 0, or ENOMEM (queue full) or EINVAL (too many buffers, a number that does not fit) */
export function postSrqRecv(srq: IbvSrq, wr: IbvRecvWr, badWr?: BadWr<IbvRecvWr>): number {
  const { cpu, ring, context } = srq;
  const { costs } = context.platform;
  let count = 0;
  let error = 0;
  let current: IbvRecvWr | null | undefined = wr;
  for (; current !== null && current !== undefined; current = current.next) {
    if (!isValid(current, ring.maxSge)) error = EINVAL;
    else if (ring.head === ring.tail) error = ENOMEM;
    if (error !== 0) break;
    const slot = ring.head;
    ring.head = ring.next[slot]!;
    writeList(cpu, ring.slots[slot]! + nextBytes, current, ring.maxSge);
    context.platform.tap?.watch?.receivePosted(`SRQ ${srq.handle}`, slot, current, cpu.ownPs);
    ring.wrIds[slot] = current.wrId;
    count++;
  }
  if (error !== 0 && badWr !== undefined) {
    badWr.wr = current ?? null;
    badWr.index = count;
  }
  if (error !== 0) context.platform.tap?.calls?.refused('ibv_post_srq_recv', srq, error, current ?? wr);
  if (count === 0) {
    cpu.charge('post', costs.postRecv);
    return error;
  }
  context.platform.tap?.calls?.receivesPosted(srq, count);
  ring.counter = (ring.counter + count) & postedMask;
  storeRecord(cpu, ring.record.physicalAddress, ring.counter);
  cpu.commit('post', costs.postRecv * count);
  return error;
}

/** Returns a completed WQE to the end of the list; the store is part of the caller's commit. */
export function freeSharedWqe(cpu: VerbsCpu, ring: SharedRing, index: number): void {
  ring.next[ring.tail] = index;
  const { wordOffset } = srqNextSegment.fields.nextWqeIndex;
  const offset = cpu.pushMemoryStore(ring.slots[ring.tail]! + wordOffset, 2);
  cpu.storeView.setUint16(offset, index);
  ring.tail = index;
}

const isValid = ({ numSge, sgList }: IbvRecvWr, maxSge: number): boolean =>
  isInt32(numSge) && numSge >= 0 && numSge <= maxSge && isListValid(sgList, numSge);

/** The pointers, and an end mark if room is left. */
function writeList(cpu: VerbsCpu, address: number, wr: IbvRecvWr, pointersMax: number): void {
  const isShorter = wr.numSge < pointersMax;
  const entries = wr.numSge + (isShorter ? 1 : 0);
  if (entries === 0) return;
  let at = cpu.pushMemoryStore(address, entries * pointerBytes);
  const view = cpu.storeView;
  for (let sge = 0; sge < wr.numSge; sge++) at = writePointer(view, at, wr.sgList[sge]!);
  if (isShorter) writeListEnd(view, at, invalidLkey);
}

function storeRecord(cpu: VerbsCpu, physicalAddress: number, counter: number): void {
  const offset = cpu.pushMemoryStore(physicalAddress, recordBytes);
  cpu.storeView.setUint32(offset, counter & postedMask);
}

/**
 * ibv_poll_cq and ibv_req_notify_cq.
 *
 *   entry is ours? -> decode into the caller's completion -> advance the work queue's tail -> … -> consumer record
 *
 * Promises: entries are dequeued in order; an entry is read only after its owner bit; a CQ's consumer record is stored once per
 * poll; the completion objects are the caller's and nothing is allocated. Source: interface sheet 6.6, 6.8, 6.10.
 */

import {
  CqArmCommand,
  CqeOpcode,
  CqeSyndrome,
  cqArm,
  cqe,
  cqRecord,
  errorCqe,
  ReceiveOpcode,
  uarOffset,
  WqeOpcode,
  xrcTargetBit,
} from '../abi/index.ts';
import { pageBytes } from '../base/index.ts';
import { WcFlag, WcOpcode, WcStatus } from './constants.ts';
import { isInt32 } from './numbers.ts';
import type { IbvCq, IbvQp, IbvWc } from './objects.ts';
import type { BufferWatch, UserMemory } from './platform.ts';
import { freeSharedWqe } from './post-recv.ts';
import { EINVAL, VerbsError } from './verbs-error.ts';

const fields = cqe.fields;
const wcOpcodeBySendOpcode = new Uint8Array(32);
wcOpcodeBySendOpcode[WqeOpcode.SEND] = WcOpcode.IBV_WC_SEND;
wcOpcodeBySendOpcode[WqeOpcode.SEND_IMM] = WcOpcode.IBV_WC_SEND;
wcOpcodeBySendOpcode[WqeOpcode.SEND_INVAL] = WcOpcode.IBV_WC_SEND;
wcOpcodeBySendOpcode[WqeOpcode.RDMA_WRITE] = WcOpcode.IBV_WC_RDMA_WRITE;
wcOpcodeBySendOpcode[WqeOpcode.RDMA_WRITE_IMM] = WcOpcode.IBV_WC_RDMA_WRITE;
wcOpcodeBySendOpcode[WqeOpcode.RDMA_READ] = WcOpcode.IBV_WC_RDMA_READ;
wcOpcodeBySendOpcode[WqeOpcode.ATOMIC_CS] = WcOpcode.IBV_WC_COMP_SWAP;
wcOpcodeBySendOpcode[WqeOpcode.ATOMIC_FA] = WcOpcode.IBV_WC_FETCH_ADD;
wcOpcodeBySendOpcode[WqeOpcode.MASKED_ATOMIC_CS] = WcOpcode.IBV_WC_MASKED_COMP_SWAP;
wcOpcodeBySendOpcode[WqeOpcode.MASKED_ATOMIC_FA] = WcOpcode.IBV_WC_MASKED_FETCH_ADD;
wcOpcodeBySendOpcode[WqeOpcode.BIND_MW] = WcOpcode.IBV_WC_BIND_MW;
wcOpcodeBySendOpcode[WqeOpcode.LOCAL_INVAL] = WcOpcode.IBV_WC_LOCAL_INV;
const atomicBytes = 8;
const isAtomicBySendOpcode = new Uint8Array(32);
isAtomicBySendOpcode[WqeOpcode.ATOMIC_CS] = 1;
isAtomicBySendOpcode[WqeOpcode.ATOMIC_FA] = 1;
isAtomicBySendOpcode[WqeOpcode.MASKED_ATOMIC_CS] = 1;
isAtomicBySendOpcode[WqeOpcode.MASKED_ATOMIC_FA] = 1;

const statusBySyndrome = new Uint8Array(256).fill(WcStatus.IBV_WC_GENERAL_ERR);
statusBySyndrome[CqeSyndrome.LOCAL_LENGTH_ERR] = WcStatus.IBV_WC_LOC_LEN_ERR;
statusBySyndrome[CqeSyndrome.LOCAL_QP_OP_ERR] = WcStatus.IBV_WC_LOC_QP_OP_ERR;
statusBySyndrome[CqeSyndrome.LOCAL_PROT_ERR] = WcStatus.IBV_WC_LOC_PROT_ERR;
statusBySyndrome[CqeSyndrome.WR_FLUSH_ERR] = WcStatus.IBV_WC_WR_FLUSH_ERR;
statusBySyndrome[CqeSyndrome.MW_BIND_ERR] = WcStatus.IBV_WC_MW_BIND_ERR;
statusBySyndrome[CqeSyndrome.BAD_RESP_ERR] = WcStatus.IBV_WC_BAD_RESP_ERR;
statusBySyndrome[CqeSyndrome.LOCAL_ACCESS_ERR] = WcStatus.IBV_WC_LOC_ACCESS_ERR;
statusBySyndrome[CqeSyndrome.REMOTE_INVAL_REQ_ERR] = WcStatus.IBV_WC_REM_INV_REQ_ERR;
statusBySyndrome[CqeSyndrome.REMOTE_ACCESS_ERR] = WcStatus.IBV_WC_REM_ACCESS_ERR;
statusBySyndrome[CqeSyndrome.REMOTE_OP_ERR] = WcStatus.IBV_WC_REM_OP_ERR;
statusBySyndrome[CqeSyndrome.TRANSPORT_RETRY_EXC_ERR] = WcStatus.IBV_WC_RETRY_EXC_ERR;
statusBySyndrome[CqeSyndrome.RNR_RETRY_EXC_ERR] = WcStatus.IBV_WC_RNR_RETRY_EXC_ERR;
statusBySyndrome[CqeSyndrome.REMOTE_ABORTED_ERR] = WcStatus.IBV_WC_REM_ABORT_ERR;

/**
 * Dequeues up to `max` present completions into `wc[0…]`. @returns how many
 * @throws VerbsError EINVAL if `max` is not a whole number or `wc` has fewer objects, before any is dequeued
 */
export async function pollCq(cq: IbvCq, max: number, wc: readonly IbvWc[]): Promise<number> {
  await cq.cpu.settle();
  return pollSettled(cq, max, wc);
}

/**
 * Repeats ibv_poll_cq until it finds at least one; costs the same as the loop.
 * @param timeoutPs ends the loop after that time
 * @returns how many, 0 only if the time has passed. @throws VerbsError EINVAL
 */
export function spinCq(cq: IbvCq, max: number, wc: readonly IbvWc[], timeoutPs?: number): Promise<number> {
  if (!(max > 0))
    throw new VerbsError('ibv_poll_cq', 'EINVAL', `max is ${max}, expected at least 1 for a call that waits`);
  const { cpu, ring, context } = cq;
  const address = ring.slots[ring.consumerCounter & (ring.entries - 1)]!;
  cpu.waitsIn(ring.pollText);
  context.platform.tap?.calls?.polled(cq, 0);
  if (timeoutPs !== undefined) return spinCqFor(cq, max, wc, timeoutPs);
  return cpu.spinThen(address, context.platform.costs.pollEmpty, ring.isReady, () => {
    const count = pollSettled(cq, max, wc);
    // The entry is not a completion: continues with the next.
    return count > 0 ? count : spinCq(cq, max, wc);
  });
}

function spinCqFor(cq: IbvCq, max: number, wc: readonly IbvWc[], timeoutPs: number): Promise<number> {
  const { cpu, ring, context } = cq;
  const address = ring.slots[ring.consumerCounter & (ring.entries - 1)]!;
  const endPs = cpu.localPs + timeoutPs;
  const take = (): number | Promise<number> => {
    // The last round has polled: entries that it did not find are not present.
    if (!ring.isReady()) return 0;
    const count = pollSettled(cq, max, wc);
    return count > 0 ? count : spinCq(cq, max, wc, Math.max(0, endPs - cpu.localPs));
  };
  return cpu.spinThen(address, context.platform.costs.pollEmpty, ring.isReady, take, timeoutPs);
}

/** The body of {@link pollCq}, for a thread whose own time equals simulated time (right after `settle`, `spin` or another wait of its cpu). */
export function pollSettled(cq: IbvCq, max: number, wc: readonly IbvWc[]): number {
  const { cpu, ring, context } = cq;
  if (!isInt32(max) || max > wc.length)
    throw new VerbsError(
      'ibv_poll_cq',
      'EINVAL',
      `max is ${max}, expected a whole number up to ${wc.length}, the length of wc`,
    );
  const { costs, tap } = context.platform;
  const first = ring.consumerCounter;
  let count = 0;
  while (count < max && takeNext(cq, wc[count]!)) count++;
  if (ring.consumerCounter === first) {
    cpu.charge('poll', costs.pollEmpty);
    cpu.waitsIn(ring.pollText);
    tap?.calls?.polled(cq, 0);
    return 0;
  }
  cpu.waitsIn(undefined);
  storeConsumer(cq, (costs.pollCompletion + costs.readDmaLine) * count);
  if (tap !== undefined) {
    const at = cpu.ownPs;
    tap.calls?.polled(cq, count);
    for (let done = 0; done < count; done++) {
      const entry = wc[done]!;
      if (entry.opcode < WcOpcode.IBV_WC_RECV) tap.completed(entry.qpNum, entry.wqeCounter, at);
    }
  }
  return count;
}

/** Dequeues the next present completion into `wc`. @returns false without one */
export function takeNext(cq: IbvCq, wc: IbvWc): boolean {
  const { ring } = cq;
  for (;;) {
    const address = ring.nextEntry();
    if (address < 0) return false;
    ring.consumerCounter = (ring.consumerCounter + 1) >>> 0;
    if (takeEntry(cq, address, wc)) return true;
  }
}

/** Stores the consumer record, and charges the poll. */
export function storeConsumer(cq: IbvCq, cycles: number): void {
  const { cpu, ring } = cq;
  const offset = cpu.pushMemoryStore(ring.record.physicalAddress, 4);
  cpu.storeView.setUint32(offset, ring.consumerCounter & fields24);
  cpu.commit('poll', cycles);
}

const fields24 = cqRecord.fields.consumerCounter.mask;

/** Decodes one entry. @returns false if it is not a completion (the mark of a resize, a destroyed QP) */
function takeEntry(cq: IbvCq, address: number, wc: IbvWc): boolean {
  const view = cq.context.platform.memory.viewNow;
  const opcode = fields.opcode.get(view, address);
  if (opcode === CqeOpcode.RESIZE) return false;
  const qpn = fields.qpn.get(view, address);
  const isSend = fields.isSend.get(view, address) === 1;
  if (qpn >= xrcTargetBit) {
    if (!takeOfTarget(cq, address, wc)) return false;
  } else {
    const qp = cq.context.qpTable.get(qpn);
    if (qp === undefined) return false;
    const counter = fields.wqeCounter.get(view, address);
    wc.wqeCounter = counter;
    wc.wrId = isSend ? completeSend(qp, counter) : completeReceive(cq, qp, counter);
    const watch = cq.context.platform.tap?.watch;
    if (watch !== undefined) notifyWatch(watch, qp, isSend, counter);
  }
  wc.qpNum = qpn;
  wc.wcFlags = 0;
  wc.vendorErr = 0;
  if (opcode === CqeOpcode.ERROR) {
    wc.status = statusBySyndrome[errorCqe.fields.syndrome.get(view, address)]!;
    wc.vendorErr = errorCqe.fields.vendorSyndrome.get(view, address);
    // An error CQE identifies only the queue of the request, not its opcode.
    wc.opcode = isSend ? WcOpcode.IBV_WC_SEND : WcOpcode.IBV_WC_RECV;
    wc.byteLen = 0;
    return true;
  }
  wc.status = WcStatus.IBV_WC_SUCCESS;
  if (isSend) decodeSend(view, address, opcode, wc);
  else decodeReceive(view, address, opcode, wc);
  if (!isSend && fields.inlineScatter.get(view, address) === 1) takeInline(cq, wc);
  return true;
}

/** The message is in the WQE: the processor copies it to the buffers of the list, which the library has kept. */
function takeInline(cq: IbvCq, wc: IbvWc): void {
  const ring = cq.context.qpTable.get(wc.qpNum)?.receiveRing;
  const lists = ring?.inlineLists;
  if (ring === null || ring === undefined || lists === undefined) return;
  const { cpu } = cq;
  const { memory, costs, copied } = cq.context.platform;
  const slot = (ring.tail - 1) & (ring.wqeCount - 1);
  const from = ring.slots[slot]!;
  const left = lists.fill(slot, wc.byteLen, (address, lengthBytes, before) => {
    if (!copyTo(memory, address, from + before, lengthBytes)) wc.status = WcStatus.IBV_WC_LOC_PROT_ERR;
  });
  if (left > 0) wc.status = WcStatus.IBV_WC_LOC_LEN_ERR;
  const bytes = wc.byteLen - left;
  cpu.charge('copy', costs.copyFixed + Math.ceil(bytes / costs.copyBytesPerCycle));
  copied?.call(cq.context.platform, bytes);
}

/**
 * Copies from physical memory to the program's. The bytes are copied at once, like all copies.
 * @returns false if memory is not mapped: a C program would fault
 */
function copyTo(memory: UserMemory, address: number, from: number, lengthBytes: number): boolean {
  for (let done = 0; done < lengthBytes; ) {
    const bytes = Math.min(lengthBytes - done, pageBytes - ((address + done) % pageBytes));
    const to = memory.physicalAddress(address + done);
    if (to < 0) return false;
    memory.bytesNow.copyWithin(to, from + done, from + done + bytes);
    done += bytes;
  }
  return true;
}

/** A receive of an XRC target: the entry names the SRQ. @returns false if that was destroyed */
function takeOfTarget(cq: IbvCq, address: number, wc: IbvWc): boolean {
  const { memory, tap } = cq.context.platform;
  const view = memory.viewNow;
  const srq = cq.context.xrcSrqs.get(fields.sourceQpn.get(view, address));
  if (srq === undefined) return false;
  const counter = fields.wqeCounter.get(view, address);
  wc.wqeCounter = counter;
  freeSharedWqe(cq.cpu, srq.ring, counter);
  wc.wrId = srq.ring.wrIds[counter]!;
  tap?.watch?.receiveCompleted(`SRQ ${srq.handle}`, counter);
  return true;
}

/** Returns the buffers of a request to the program. */
function notifyWatch(watch: BufferWatch, qp: IbvQp, isSend: boolean, counter: number): void {
  if (isSend) watch.sendCompleted(qp.qpNum, counter);
  else if (qp.srq !== null) watch.receiveCompleted(`SRQ ${qp.srq.handle}`, counter);
  else watch.receiveCompleted(`RQ of QP ${qp.qpNum}`, -1);
}

function completeSend(qp: IbvQp, counter: number): number {
  const ring = qp.sendRing;
  // Unsignalled requests before this one have completed with it.
  ring.tail = (ring.tail + ((counter - ring.tail) & 0xffff)) >>> 0;
  const { wrId } = ring.slotAt(ring.tail);
  ring.tail = (ring.tail + 1) >>> 0;
  return wrId;
}

function completeReceive(cq: IbvCq, qp: IbvQp, counter: number): number {
  if (qp.srq !== null) {
    const { ring } = qp.srq;
    freeSharedWqe(cq.cpu, ring, counter);
    return ring.wrIds[counter]!;
  }
  const ring = qp.receiveRing!;
  const wrId = ring.wrIds[ring.tail & (ring.wqeCount - 1)]!;
  ring.tail = (ring.tail + 1) >>> 0;
  return wrId;
}

function decodeSend(view: DataView, address: number, opcode: number, wc: IbvWc): void {
  wc.opcode = wcOpcodeBySendOpcode[opcode]!;
  if (wc.opcode === WcOpcode.IBV_WC_RDMA_READ) wc.byteLen = fields.byteCount.get(view, address);
  else wc.byteLen = isAtomicBySendOpcode[opcode] === 1 ? atomicBytes : 0;
}

function decodeReceive(view: DataView, address: number, opcode: number, wc: IbvWc): void {
  wc.opcode =
    opcode === ReceiveOpcode.RDMA_WRITE_IMM ? WcOpcode.IBV_WC_RECV_RDMA_WITH_IMM : WcOpcode.IBV_WC_RECV;
  if (opcode === ReceiveOpcode.SEND_INVAL) wc.wcFlags = WcFlag.IBV_WC_WITH_INV;
  else if (opcode !== ReceiveOpcode.SEND) wc.wcFlags = WcFlag.IBV_WC_WITH_IMM;
  if (fields.grhPresent.get(view, address) === 1) wc.wcFlags |= WcFlag.IBV_WC_GRH;
  wc.byteLen = fields.byteCount.get(view, address);
  wc.immData = fields.immediate.get(view, address);
  wc.pkeyIndex = wc.immData & 0x7f;
  wc.srcQp = fields.sourceQpn.get(view, address);
  wc.dlidPathBits = fields.destinationPathBits.get(view, address);
  wc.slid = fields.sourceLid.get(view, address);
  wc.sl = fields.serviceLevel.get(view, address);
}

const armSequenceShift = cqArm.fields.sequenceNumber.shift;
const armSequenceBits = cqArm.fields.sequenceNumber.mask >>> armSequenceShift;
const armCommandShift = cqArm.fields.command.shift;

/**
 * Requests one completion event: for the next entry, or with `solicitedOnly` for the next solicited or failed one. The record
 * is stored first, then the doorbell. @returns 0, or EINVAL if the flag is not an int
 */
export function reqNotifyCq(cq: IbvCq, solicitedOnly: number): number {
  if (!isInt32(solicitedOnly)) return EINVAL;
  const { cpu, ring, context } = cq;
  const command = solicitedOnly !== 0 ? CqArmCommand.SOLICITED : CqArmCommand.NEXT;
  const consumer = ring.consumerCounter & fields24;
  const request = ((ring.armSequence & armSequenceBits) << armSequenceShift) | (command << armCommandShift);
  const record = cpu.pushMemoryStore(ring.record.physicalAddress + cqRecord.fields.command.wordOffset, 4);
  cpu.storeView.setUint32(record, request | consumer);
  const at = cpu.pushDeviceStore(context.info.uarBusAddress + uarOffset.cqArm, cqArm.sizeBytes, 'uncached');
  cpu.storeView.setUint32(at + cqArm.fields.cqn.wordOffset, request | ring.cqn);
  cpu.storeView.setUint32(at + cqArm.fields.consumerCounter.wordOffset, consumer);
  cpu.commit('post', context.platform.costs.mmioStore);
  context.platform.tap?.calls?.armed(cq, solicitedOnly !== 0);
  return 0;
}

/**
 * Follows WQEs as the device fetches them. The queue's own order tells which of the read bytes are WQEs not seen yet.
 * The device may read ahead, read again, or receive a WQE by BlueFlame; each WQE is shown once. Source: sheet 6.1 to
 * 6.5.
 */
import { srqNextSegment, wqeUnitBytes } from '../abi/index.ts';
import { advance, counterMask16, distance, ringIndex, viewOf } from '../base/index.ts';
import type { DeviceView } from './follow/device-view.ts';
import type { FollowedQp, FollowedSrq } from './follow/objects.ts';
import { blocksOf, isPosted, walkPosted, wqeInMemory } from './follow/send-queue.ts';
import type { MemoryReader } from './host-memory-reader.ts';
import type { Linter } from './lint/linter.ts';
import { checkSendWqe } from './lint/queue-rules.ts';
import type { Trace } from './trace.ts';
import { hex } from './trace-event.ts';
import { isRawQp } from './uar.ts';
import { sectionsOf, sendWqeBytes, walkReceiveWqe, walkSendWqe } from './wqe-segments.ts';

export class WorkQueueFollower {
  readonly #trace: Trace;
  readonly #view: DeviceView;
  readonly #memory: MemoryReader;
  readonly #linter: Linter | undefined;

  constructor(trace: Trace, view: DeviceView, memory: MemoryReader, linter: Linter | undefined) {
    this.#trace = trace;
    this.#view = view;
    this.#memory = memory;
    this.#linter = linter;
  }

  fetched(address: number, bytes: Uint8Array, nowPs: number): void {
    const place = this.#view.buffers.find(address);
    const qp = place?.kind === 'qp' ? this.#view.qps.get(place.number) : undefined;
    const srq = place?.kind === 'srq' ? this.#view.srqs.get(place.number) : undefined;
    if (qp !== undefined) {
      const inSendQueue = place!.offset - qp.sqOffset;
      if (inSendQueue >= 0 && inSendQueue < qp.sqBytes)
        this.#sendWqes(qp, inSendQueue, address, bytes, nowPs);
      else this.#receiveWqes(qp, place!.offset - qp.rqOffset, address, bytes, nowPs);
    } else if (srq !== undefined) this.#sharedWqe(srq, place!.offset, address, bytes, nowPs);
    else if (this.#trace.wants('dma'))
      this.#trace.emit('dma', nowPs, `WQE fetch ${bytes.length} bytes at ${hex(address)}, of no live queue`, {
        address,
        lengthBytes: bytes.length,
      });
  }

  /** Processes bytes [offset, …) of a send queue. */
  #sendWqes(qp: FollowedQp, offset: number, address: number, bytes: Uint8Array, nowPs: number): void {
    const view = viewOf(bytes);
    const blocks = 1 << qp.logSqBlocks;
    // A WQE that the device fetches is posted, even if the driver already owns its slot again when the doorbell
    // arrives.
    walkPosted(qp, this.#memory);
    this.#catchUp(qp, offset, view);
    for (let taken = 0; taken < blocks; ) {
      const block = qp.fetchedBlock;
      const at = ringIndex(block, qp.logSqBlocks) * qp.sqStrideBytes - offset;
      if (at < 0 || at + 16 > bytes.length || !isPosted(view, at, block, qp.logSqBlocks)) return;
      const sizeBytes = sendWqeBytes(view, at);
      const wqe = this.#wholeWqe(qp, block, bytes.subarray(at), sizeBytes);
      this.#sendWqe(qp, block, wqe, address + at, nowPs);
      const step = blocksOf(qp, sizeBytes);
      qp.took(block, step);
      taken += step;
    }
  }

  /**
   * Skips to the first WQE in these bytes if it lies ahead and is posted: the WQEs between were not read. The rest of a
   * WQE, read after its beginning, is not a WQE, whatever its first bytes are.
   */
  #catchUp(qp: FollowedQp, offset: number, view: DataView): void {
    if (offset % qp.sqStrideBytes !== 0 || view.byteLength < 16) return;
    if (qp.isTail(offset / qp.sqStrideBytes)) return;
    const ahead = (offset / qp.sqStrideBytes - qp.fetchedBlock) & ((1 << qp.logSqBlocks) - 1);
    const block = advance(qp.fetchedBlock, ahead, counterMask16);
    const isCovered = ringIndex(qp.fetchedBlock, qp.logSqBlocks) * qp.sqStrideBytes - offset;
    if (isCovered >= 0 && isCovered < view.byteLength) return;
    if (isPosted(view, 0, block, qp.logSqBlocks)) qp.fetchedBlock = block;
  }

  /** Completes from memory a WQE that continues beyond the read bytes or wraps around the end of the ring. */
  #wholeWqe(qp: FollowedQp, block: number, read: Uint8Array, sizeBytes: number): Uint8Array {
    if (read.length >= sizeBytes) return read.slice(0, Math.max(wqeUnitBytes, sizeBytes));
    const wqe = new Uint8Array(sizeBytes);
    const stride = qp.sqStrideBytes;
    for (let at = 0; at < sizeBytes; at += stride) {
      const piece = wqeInMemory(qp, block + at / stride, Math.min(stride, sizeBytes - at), this.#memory);
      if (piece !== undefined) wqe.set(piece, at);
    }
    wqe.set(read);
    return wqe;
  }

  #sendWqe(qp: FollowedQp, block: number, wqe: Uint8Array, address: number, nowPs: number): void {
    const { qpn } = qp;
    const walked = walkSendWqe(wqe, qp.serviceType, isRawQp(this.#view, qp));
    if (this.#trace.wants('dma')) {
      const what = walked.name ?? `opcode ${hex(walked.opcode)}`;
      this.#trace.emit(
        'dma',
        nowPs,
        `WQE of QP ${hex(qpn)}, ${hex(block)}: ${what}, ${walked.sizeBytes} bytes`,
        {
          objects: { qpn },
          address,
          lengthBytes: wqe.length,
          sections: sectionsOf(wqe, walked.parts),
        },
      );
    }
    const lint = this.#linter?.context;
    if (lint === undefined) return;
    lint.beginAccess(`the fetch of WQE ${hex(block)} of QP ${hex(qpn)}`, nowPs);
    checkSendWqe(lint, qp, block, walked, wqe);
  }

  #receiveWqes(qp: FollowedQp, offset: number, address: number, bytes: Uint8Array, nowPs: number): void {
    const stride = qp.rqStrideBytes;
    const size = qp.rqWqes;
    if (size === 0 || offset % stride !== 0) return;
    const ahead = (offset / stride - qp.receivesFetched) & (size - 1);
    const isCovered = ((qp.receivesFetched & (size - 1)) * stride - offset) / stride;
    const posted = distance(qp.receivesPosted, qp.receivesFetched, counterMask16);
    if ((isCovered < 0 || isCovered * stride >= bytes.length) && ahead < posted && posted <= size)
      qp.receivesFetched = advance(qp.receivesFetched, ahead, counterMask16);
    while (qp.receivesFetched !== qp.receivesPosted) {
      const at = (qp.receivesFetched & (size - 1)) * stride - offset;
      if (at < 0 || at + stride > bytes.length) return;
      const wqe = bytes.slice(at, at + stride);
      if (this.#trace.wants('dma')) {
        const text = `receive WQE of QP ${hex(qp.qpn)}, ${hex(qp.receivesFetched)}`;
        this.#trace.emit('dma', nowPs, text, {
          objects: { qpn: qp.qpn },
          address: address + at,
          lengthBytes: stride,
          sections: sectionsOf(wqe, walkReceiveWqe(wqe, false)),
        });
      }
      qp.receivesFetched = advance(qp.receivesFetched, 1, counterMask16);
    }
  }

  #sharedWqe(srq: FollowedSrq, offset: number, address: number, bytes: Uint8Array, nowPs: number): void {
    const stride = 16 << srq.context.logStride16;
    const index = Math.floor(offset / stride);
    const wqe = bytes.slice(0, stride);
    if (wqe.length >= srqNextSegment.sizeBytes) srq.head = srqNextSegment.decode(wqe).nextWqeIndex;
    srq.fetched = advance(srq.fetched, 1, counterMask16);
    if (!this.#trace.wants('dma')) return;
    this.#trace.emit('dma', nowPs, `receive WQE of SRQ ${hex(srq.srqn)}, index ${hex(index)}`, {
      objects: { srqn: srq.srqn },
      address,
      lengthBytes: wqe.length,
      sections: sectionsOf(wqe, walkReceiveWqe(wqe, true)),
    });
  }
}

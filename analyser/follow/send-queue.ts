/**
 * The send queue of a QP in host memory: counts the posted WQEs by their owner bits.
 *
 * A WQE is posted if the owner bit in its first dword matches the pass over the ring (sheet 6.2). Each walk begins
 * where the last one ended, so each WQE is counted once.
 */

import { wqeStamp } from '../../abi/index.ts';
import { advance, counterMask16, passBit, ringIndex, viewOf } from '../../base/index.ts';
import type { MemoryReader } from '../host-memory-reader.ts';
import { ownerBitOf, sendWqeBytes } from '../wqe-segments.ts';
import type { FollowedQp } from './objects.ts';
import { bytesIn } from './queue-buffer.ts';

const headBytes = 16;

/** Bytes of the WQE at a block counter, from memory: `lengthBytes`, or up to the end of the ring. */
export function wqeInMemory(
  qp: FollowedQp,
  block: number,
  lengthBytes: number,
  memory: MemoryReader,
): Uint8Array | undefined {
  if (qp.buffer === undefined) return undefined;
  const offset = ringIndex(block, qp.logSqBlocks) * qp.sqStrideBytes;
  const length = Math.min(lengthBytes, qp.sqBytes - offset);
  return bytesIn(qp.buffer, qp.sqOffset + offset, length, memory);
}

/** Whether these bytes are a WQE of the counter's current pass. */
export function isPosted(wqe: DataView, offset: number, block: number, logBlocks: number): boolean {
  return wqe.getUint32(offset) !== wqeStamp && ownerBitOf(wqe, offset) === passBit(block, logBlocks);
}

/** Basic blocks that a WQE occupies, at least one. */
export const blocksOf = (qp: FollowedQp, sizeBytes: number): number =>
  Math.max(1, Math.ceil(sizeBytes / qp.sqStrideBytes));

/** Advances over the WQEs that are posted now. */
export function walkPosted(qp: FollowedQp, memory: MemoryReader): void {
  const blocks = 1 << qp.logSqBlocks;
  for (let walked = 0; walked < blocks; ) {
    const head = wqeInMemory(qp, qp.walkedBlock, headBytes, memory);
    if (head === undefined) return;
    const view = viewOf(head);
    if (!isPosted(view, 0, qp.walkedBlock, qp.logSqBlocks)) return;
    const step = blocksOf(qp, sendWqeBytes(view, 0));
    qp.walkedBlock = advance(qp.walkedBlock, step, counterMask16);
    qp.postedWqes++;
    walked += step;
  }
}

/**
 * The largest page with which a buffer can be translated: fewer entries, fewer misses. Source: golden captures,
 * observation 5; Linux' mlx4_ib_umem_calc_optimal_mtt_size.
 *
 * A page of 2^n bytes will do when the device, which takes the low n bits of an address unchanged, still arrives at the
 * right frame: every frame lies at the same offset in its 2^n bytes as its virtual page does, and the frames of one such
 * block are contiguous. The first and the last block may be partial; what lies outside the buffer is never reached,
 * because the bounds are checked first.
 */

import { logPageBytesMax } from '../abi/index.ts';
import type { PinnedPages } from './platform.ts';

/** The frames of a buffer, in order: frame k is `pages[k % pages.length]`. */
export type Frames = Pick<PinnedPages, 'pages' | 'pageCount'>;

const logFrameBytes = 12;

/** log2 of the largest page for frames of 4 KiB that are mapped in order from the page of `virtualAddress` on. */
export function largestLogPageBytes({ pages, pageCount }: Frames, virtualAddress: number): number {
  const firstPage = Math.floor(virtualAddress / 2 ** logFrameBytes);
  let limit = logPageBytesMax - logFrameBytes;
  let previousDelta = 0;
  // One stretch further, an address differs by a multiple of the stretch, so two stretches and a page contain the
  // fewest zeros that occur.
  const count = Math.min(pageCount, 2 * pages.length + 1);
  for (let at = 0; at < count && limit > 0; at++) {
    const page = firstPage + at;
    const delta = pages[at % pages.length]! / 2 ** logFrameBytes - page;
    limit = Math.min(limit, trailingZeros(delta));
    if (at > 0 && delta !== previousDelta) limit = Math.min(limit, trailingZeros(page));
    previousDelta = delta;
  }
  return limit + logFrameBytes;
}

/** Blocks of 2^logPageBytes that a buffer touches: one MTT entry each. */
export function blockCountOf({ pageCount }: Frames, virtualAddress: number, logPageBytes: number): number {
  const framesPerBlock = 2 ** (logPageBytes - logFrameBytes);
  return Math.ceil((firstFrameOf(virtualAddress, framesPerBlock) + pageCount) / framesPerBlock);
}

/** Physical address of block number `at`. */
export function blockAddress(
  { pages }: Frames,
  virtualAddress: number,
  logPageBytes: number,
  at: number,
): number {
  const framesPerBlock = 2 ** (logPageBytes - logFrameBytes);
  const frame = Math.max(0, at * framesPerBlock - firstFrameOf(virtualAddress, framesPerBlock));
  return Math.floor(pages[frame % pages.length]! / 2 ** logPageBytes) * 2 ** logPageBytes;
}

/** Place of the buffer's first frame in the block that holds it. */
const firstFrameOf = (virtualAddress: number, framesPerBlock: number): number =>
  Math.floor(virtualAddress / 2 ** logFrameBytes) % framesPerBlock;

/** Returns the number of trailing zero bits of an integer of up to 52 bits; 52 for zero. */
function trailingZeros(value: number): number {
  if (value === 0) return 52;
  const low = value >>> 0;
  if (low !== 0) return 31 - Math.clz32(low & -low);
  const high = Math.floor(Math.abs(value) / 2 ** 32) >>> 0;
  return 32 + 31 - Math.clz32(high & -high);
}

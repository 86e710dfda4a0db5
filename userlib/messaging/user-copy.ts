/**
 * Copies and additions by the processor within its own memory; the copies are the cost that RDMA avoids. The bytes change at
 * once; the cycles advance the core's own time, so the thread's next action comes after them.
 */
import { pageBytes } from '../../base/index.ts';
import type { VerbsCpu, VerbsPlatform } from '../platform.ts';
import { VerbsError } from '../verbs-error.ts';

/** Fixed cycles of one copy. */
export function copyCycles({ costs }: VerbsPlatform, lengthBytes: number): number {
  return lengthBytes === 0 ? 0 : costs.copyFixed + Math.ceil(lengthBytes / costs.copyBytesPerCycle);
}

/**
 * Copies [from, from + lengthBytes) to `to`, both user addresses; the ranges do not overlap.
 * @throws VerbsError EINVAL at the first address that is not mapped; the bytes before it are copied
 */
export function copyUserMemory(
  platform: VerbsPlatform,
  cpu: VerbsCpu,
  from: number,
  to: number,
  lengthBytes: number,
): void {
  const { memory } = platform;
  cpu.charge('copy', copyCycles(platform, lengthBytes));
  platform.copied?.(lengthBytes);
  for (let done = 0; done < lengthBytes; ) {
    const fromPage = pageBytes - ((from + done) % pageBytes);
    const toPage = pageBytes - ((to + done) % pageBytes);
    const piece = Math.min(lengthBytes - done, fromPage, toPage);
    const [source, target] = bothPresent(platform, from + done, to + done);
    memory.bytes.copyWithin(target, source, source + piece);
    done += piece;
  }
}

/**
 * Cycles to add one vector to another: a copy reads and writes each byte once, an addition reads two and writes one
 * (estimate: limited by memory like the copy, with half as many bytes again).
 */
function addCycles({ costs }: VerbsPlatform, lengthBytes: number): number {
  return lengthBytes === 0 ? 0 : costs.copyFixed + Math.ceil((1.5 * lengthBytes) / costs.copyBytesPerCycle);
}

/**
 * Adds `count` 32-bit integers at `from` to those at `to`, modulo 2^32; both are user addresses that are multiples of 4.
 * @throws VerbsError EINVAL at the first address that is not mapped; the numbers before it are added
 */
export function addUserMemory(
  platform: VerbsPlatform,
  cpu: VerbsCpu,
  from: number,
  to: number,
  count: number,
): void {
  const { view } = platform.memory;
  const lengthBytes = count * 4;
  cpu.charge('application', addCycles(platform, lengthBytes));
  for (let done = 0; done < lengthBytes; ) {
    const fromPage = pageBytes - ((from + done) % pageBytes);
    const toPage = pageBytes - ((to + done) % pageBytes);
    const piece = Math.min(lengthBytes - done, fromPage, toPage);
    const [source, target] = bothPresent(platform, from + done, to + done);
    for (let at = 0; at < piece; at += 4)
      view.setInt32(target + at, view.getInt32(source + at, true) + view.getInt32(target + at, true), true);
    done += piece;
  }
}

/** A fault on one page may evict the other when memory is short: both are looked up until they stay. */
function bothPresent(platform: VerbsPlatform, from: number, to: number): readonly [number, number] {
  for (;;) {
    const source = locate(platform, from);
    const target = locate(platform, to);
    if (source === locate(platform, from) && target === locate(platform, to)) return [source, target];
  }
}

function locate({ memory }: VerbsPlatform, address: number): number {
  const physical = memory.physicalAddress(address);
  if (physical < 0)
    throw new VerbsError('message', 'EINVAL', `address 0x${address.toString(16)} is not mapped`);
  return physical;
}

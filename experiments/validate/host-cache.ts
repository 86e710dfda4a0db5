/**
 * The last-level cache of a host whose processor takes writes of devices into it (Intel's Data Direct I/O): which lines
 * of memory it holds, and how much longer a device's read of the others takes. It moves no bytes.
 *
 *     device's read ───► held: nothing more │ not held: from memory, and it stays there
 *     device's write ──► held: replaced in place │ not held: into one of the ways for devices
 *     core's access ───► into any way
 *
 * Lines are placed by their address, and the least recently used way of a set is replaced. Sources: Intel, Data Direct
 * I/O Technology Overview, 2012 (writes allocate in a tenth of the cache, reads allocate nothing); pcie-bench, SIGCOMM
 * 2018, 6.3.
 */
import type { HostMemory } from '../../hw/pcie/index.ts';

const lineBytes = 64;
const none = -1;

export interface HostCacheSize {
  readonly sizeBytes: number;
  readonly ways: number;
  /** Ways that writes of devices may fill. */
  readonly deviceWays: number;
}

export class HostCache implements HostMemory {
  readonly #memory: HostMemory;
  readonly #missPs: number;
  readonly #size: HostCacheSize;
  readonly #sets: number;
  /** Line held by each way of each set. */
  readonly #lines: Int32Array;
  readonly #usedAt: Float64Array;
  #clock = 0;

  /** @param missPs additional latency of a read that misses the cache */
  constructor(memory: HostMemory, size: HostCacheSize, missPs: number) {
    this.#memory = memory;
    this.#size = size;
    this.#missPs = missPs;
    this.#sets = Math.floor(size.sizeBytes / (lineBytes * size.ways));
    this.#lines = new Int32Array(this.#sets * size.ways).fill(none);
    this.#usedAt = new Float64Array(this.#lines.length);
  }

  get sizeBytes(): number {
    return this.#memory.sizeBytes;
  }

  /** A core reads or writes these bytes. */
  touch(address: number, lengthBytes: number): void {
    for (const line of linesOf(address, lengthBytes)) this.#fill(line, this.#size.ways);
  }

  missPs(address: number, lengthBytes: number): number {
    const isHeld = linesOf(address, lengthBytes).every((line) => this.#find(line) >= 0);
    return isHeld ? 0 : this.#missPs;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    return this.#memory.readInto(address, lengthBytes, target, targetOffset);
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    for (const line of linesOf(address, lengthBytes)) this.#fill(line, this.#size.deviceWays);
    return this.#memory.write(address, lengthBytes, source, sourceOffset);
  }

  /** Way of a line, now the most recently used of its set; -1: not held. */
  #find(line: number): number {
    const first = (line % this.#sets) * this.#size.ways;
    const at = this.#lines.subarray(first, first + this.#size.ways).indexOf(line);
    if (at < 0) return none;
    this.#usedAt[first + at] = ++this.#clock;
    return first + at;
  }

  /** Holds a line; if it was not held, in one of the first `ways` of its set. */
  #fill(line: number, ways: number): void {
    if (this.#find(line) >= 0) return;
    const first = (line % this.#sets) * this.#size.ways;
    let oldest = first;
    for (let way = first; way < first + ways; way++)
      if (this.#usedAt[way]! < this.#usedAt[oldest]!) oldest = way;
    this.#lines[oldest] = line;
    this.#usedAt[oldest] = ++this.#clock;
  }
}

function linesOf(address: number, lengthBytes: number): number[] {
  const first = Math.floor(address / lineBytes);
  const last = Math.floor((address + lengthBytes - 1) / lineBytes);
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

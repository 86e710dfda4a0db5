/**
 * The write-combining buffers of one core: a few lines of 64 bytes in which stores to write-combining pages are combined
 * before they leave as one TLP each.
 *
 *     store ──> buffer of its 64-byte line ──┬─ all 64 bytes written ──> one TLP, at once
 *                                            ├─ no buffer free ────────> the oldest buffer leaves first
 *                                            └─ flush (store fence, uncached store, interrupt) ──> all leave, oldest first
 *
 * A buffer that leaves before it is full leaves as one TLP for each run of written bytes within each chunk: byte enables can
 * express no more (Intel SDM vol. 3A 11.3.1: partial writes of at most 8 bytes). Between buffers no order exists except the one
 * above. Every method stops when the root complex accepts no more stores, reports its progress, and continues from there when
 * called again.
 */
import type { BlockState } from '../sim/index.ts';
import type { BusMap, DevicePort } from './device-port.ts';

const lineBytes = 64;
const none = -1;

export interface WriteCombiningOptions {
  readonly bufferCount: number;
  /** A partial flush does not cross multiples of this many bytes: a power of two, 4 to 64. */
  readonly chunkBytes: number;
}

export class WriteCombiningBuffers {
  readonly #port: DevicePort;
  readonly #busMap: BusMap;
  readonly #bufferCount: number;
  readonly #chunkBytes: number;
  readonly #lines: Float64Array;
  readonly #data: Uint8Array;
  /** One flag byte per data byte: whether it was written. */
  readonly #isWritten: Uint8Array;
  readonly #writtenCounts: Int32Array;
  /** Occupied buffers, oldest first. */
  readonly #order: Int32Array;
  #occupiedCount = 0;

  /** Lines that left full, and pieces of lines that did not. */
  fullFlushCount = 0;
  partialFlushCount = 0;
  /** Buffers that had to leave because another line needed one. */
  evictionCount = 0;

  constructor(port: DevicePort, busMap: BusMap, options: WriteCombiningOptions) {
    this.#port = port;
    this.#busMap = busMap;
    this.#bufferCount = options.bufferCount;
    this.#chunkBytes = options.chunkBytes;
    this.#lines = new Float64Array(options.bufferCount).fill(none);
    this.#data = new Uint8Array(options.bufferCount * lineBytes);
    this.#isWritten = new Uint8Array(options.bufferCount * lineBytes);
    this.#writtenCounts = new Int32Array(options.bufferCount);
    this.#order = new Int32Array(options.bufferCount);
  }

  get isEmpty(): boolean {
    return this.#occupiedCount === 0;
  }

  get occupiedCount(): number {
    return this.#occupiedCount;
  }

  /**
   * Combines a store of any length. @returns the accepted bytes: fewer than requested if a buffer had to leave and the root
   * complex accepted no more
   */
  store(busAddress: number, source: Uint8Array, sourceOffset: number, lengthBytes: number): number {
    let taken = 0;
    while (taken < lengthBytes) {
      const address = busAddress + taken;
      const offset = address & (lineBytes - 1);
      const length = Math.min(lineBytes - offset, lengthBytes - taken);
      if (!this.#storeInLine(address - offset, offset, source, sourceOffset + taken, length)) return taken;
      taken += length;
    }
    return taken;
  }

  /** Sends every buffer, oldest first. @returns false if the root complex accepted no more before the end */
  flush(): boolean {
    while (this.#occupiedCount > 0) if (!this.#leaveOldest()) return false;
    return true;
  }

  /** The held lines, oldest first, and the number of written bytes of each. */
  inspect(): BlockState {
    const buffers = [...this.#order.subarray(0, this.#occupiedCount)];
    return { lines: buffers.map((buffer) => [this.#lines[buffer]!, this.#writtenCounts[buffer]!]) };
  }

  #storeInLine(line: number, offset: number, source: Uint8Array, at: number, length: number): boolean {
    let buffer = this.#find(line);
    if (buffer === none && length === lineBytes) return this.#passWholeLine(line, source, at);
    // Written by the last call, but the root complex did not accept it then.
    if (buffer !== none && this.#writtenCounts[buffer] === lineBytes) {
      if (!this.#leave(buffer)) return false;
      buffer = none;
    }
    if (buffer === none) {
      buffer = this.#occupy(line);
      if (buffer === none) return false;
    }
    const base = buffer * lineBytes + offset;
    let count = this.#writtenCounts[buffer]!;
    for (let index = 0; index < length; index++) {
      this.#data[base + index] = source[at + index]!;
      count += 1 - this.#isWritten[base + index]!;
      this.#isWritten[base + index] = 1;
    }
    this.#writtenCounts[buffer] = count;
    if (count === lineBytes && this.#port.canStore()) this.#leave(buffer);
    return true;
  }

  /** A store that fills a whole line needs no buffer. */
  #passWholeLine(line: number, source: Uint8Array, at: number): boolean {
    if (!this.#port.canStore()) return false;
    this.#port.cpuStore(line, this.#busMap.trafficClassAt(line), source, at, lineBytes);
    this.fullFlushCount++;
    return true;
  }

  #find(line: number): number {
    for (let index = 0; index < this.#occupiedCount; index++) {
      if (this.#lines[this.#order[index]!] === line) return this.#order[index]!;
    }
    return none;
  }

  #occupy(line: number): number {
    if (this.#occupiedCount === this.#bufferCount) {
      if (!this.#leaveOldest()) return none;
      this.evictionCount++;
    }
    const buffer = this.#lines.indexOf(none);
    this.#lines[buffer] = line;
    this.#order[this.#occupiedCount++] = buffer;
    return buffer;
  }

  #leaveOldest(): boolean {
    return this.#leave(this.#order[0]!);
  }

  #leave(buffer: number): boolean {
    const sent =
      this.#writtenCounts[buffer] === lineBytes ? this.#sendWhole(buffer) : this.#sendPieces(buffer);
    if (!sent) return false;
    this.#lines[buffer] = none;
    this.#writtenCounts[buffer] = 0;
    const at = this.#order.indexOf(buffer);
    this.#order.copyWithin(at, at + 1, this.#occupiedCount);
    this.#occupiedCount--;
    return true;
  }

  #sendWhole(buffer: number): boolean {
    if (!this.#port.canStore()) return false;
    const line = this.#lines[buffer]!;
    const base = buffer * lineBytes;
    this.#port.cpuStore(line, this.#busMap.trafficClassAt(line), this.#data, base, lineBytes);
    this.#isWritten.fill(0, base, base + lineBytes);
    this.fullFlushCount++;
    return true;
  }

  #sendPieces(buffer: number): boolean {
    const base = buffer * lineBytes;
    for (let at = 0; at < lineBytes; at++) {
      if (this.#isWritten[base + at] === 0) continue;
      if (!this.#port.canStore()) return false;
      const limit = at - (at % this.#chunkBytes) + this.#chunkBytes;
      let end = at;
      while (end < limit && this.#isWritten[base + end] === 1) end++;
      const address = this.#lines[buffer]! + at;
      this.#port.cpuStore(address, this.#busMap.trafficClassAt(address), this.#data, base + at, end - at);
      this.#isWritten.fill(0, base + at, base + end);
      this.#writtenCounts[buffer] = this.#writtenCounts[buffer]! - (end - at);
      this.partialFlushCount++;
      at = end - 1;
    }
    return true;
  }
}

/**
 * Packet buffers of the kernel: physically contiguous, of one size, allocated on demand and kept for reuse. Linux calls them an
 * skb with its data.
 *
 *     take ──► the ring, a send queue, a receive queue ──► give
 *
 * Promises: never more than `max` of them; every held buffer is counted; `release` frees all memory after every buffer has been
 * returned.
 */
import { InvariantError } from '../../base/index.ts';
import type { KernelMemory } from '../platform.ts';

const pageBytes = 4096;

export class PacketBuffer {
  /** Physical address of its first byte. */
  readonly address: number;
  readonly capacity: number;
  /** Offset and number of the valid bytes. */
  start = 0;
  length = 0;
  /** Sequence number of the first payload byte. */
  sequence = 0;
  /** Sent at least once: its contents must not change. */
  isSent = false;
  /** References from descriptors of the transmit ring, and from frames that wait for a neighbour. */
  inRing = 0;
  /** Returned as soon as the ring is done with it. */
  isDone = false;
  isFree = true;

  constructor(address: number, capacity: number) {
    this.address = address;
    this.capacity = capacity;
  }

  /** Free bytes after the last valid one. */
  get room(): number {
    return this.capacity - this.start - this.length;
  }

  get physical(): number {
    return this.address + this.start;
  }
}

export class PacketBuffers {
  readonly bufferBytes: number;
  readonly max: number;
  /** Requests that found no buffer. */
  refusals = 0;
  readonly #memory: KernelMemory;
  readonly #free: PacketBuffer[] = [];
  readonly #runs: { readonly address: number; readonly frames: number }[] = [];
  #count = 0;

  /** @param bufferBytes a power of two of at least 2048 */
  constructor(memory: KernelMemory, bufferBytes: number, max: number) {
    this.#memory = memory;
    this.bufferBytes = bufferBytes;
    this.max = max;
  }

  /** Held buffers. */
  get taken(): number {
    return this.#count - this.#free.length;
  }

  /**
   * An empty buffer; undefined if the bound is reached or memory is exhausted.
   * @param reserve buffers left for other users: a caller that only fills queues must leave the last ones, which receive the
   *   acknowledgements that empty the queues
   */
  take(reserve = 0): PacketBuffer | undefined {
    const buffer = this.#free.length > reserve ? this.#free.pop() : this.#grow();
    if (buffer === undefined) {
      this.refusals++;
      return undefined;
    }
    buffer.start = 0;
    buffer.length = 0;
    buffer.isSent = false;
    buffer.isDone = false;
    buffer.isFree = false;
    return buffer;
  }

  give(buffer: PacketBuffer): void {
    if (buffer.isFree || buffer.inRing > 0) {
      throw new InvariantError('packet buffer given back', buffer.isFree ? 'free' : 'in the ring', 'taken');
    }
    buffer.isFree = true;
    this.#free.push(buffer);
  }

  /** Returns the buffer, now or when the transmit ring is done with it. */
  giveWhenSent(buffer: PacketBuffer): void {
    if (buffer.inRing > 0) buffer.isDone = true;
    else this.give(buffer);
  }

  /** The transmit ring, or the holder of a waiting frame, is done with the buffer. */
  leftRing(buffer: PacketBuffer): void {
    buffer.inRing--;
    if (buffer.isDone && buffer.inRing === 0) this.give(buffer);
  }

  /** Frees all memory. @throws InvariantError if a buffer is still held */
  release(): void {
    if (this.taken !== 0) throw new InvariantError('packet buffers taken', this.taken, '0');
    for (const { address, frames } of this.#runs) this.#memory.freeFrames(address, frames);
    this.#runs.length = 0;
    this.#free.length = 0;
    this.#count = 0;
  }

  #grow(): PacketBuffer | undefined {
    if (this.#count >= this.max) return undefined;
    const frames = Math.ceil(this.bufferBytes / pageBytes);
    const address = this.#memory.allocateFrames(frames);
    if (address < 0) return undefined;
    this.#runs.push({ address, frames });
    const count = Math.min(Math.floor((frames * pageBytes) / this.bufferBytes), this.max - this.#count);
    for (let at = count - 1; at >= 0; at--) {
      this.#free.push(new PacketBuffer(address + at * this.bufferBytes, this.bufferBytes));
    }
    this.#count += count;
    return this.#free.pop();
  }
}

/**
 * Packet buffers of the kernel: physically contiguous, of one size, taken from memory as they are needed and kept for
 * reuse. What Linux calls an skb with its data.
 *
 *     take ──► the ring, a send queue, a receive queue ──► give
 *
 * Promises: never more than `max` of them; every buffer that is held is counted; `release` gives all memory
 * back once every buffer has been given back.
 */
import { InvariantError } from '../../base/index.ts';
import type { KernelMemory } from '../platform.ts';

const pageBytes = 4096;

export class PacketBuffer {
  /** Physical address of its first byte. */
  readonly address: number;
  readonly capacity: number;
  /** Where the bytes that count begin, and how many they are. */
  start = 0;
  length = 0;
  /** Sequence number of the first payload byte. */
  sequence = 0;
  /** Sent at least once: its contents are fixed. */
  isSent = false;
  /** Descriptors of the transmit ring that name it, and frames of it that wait for a neighbour. */
  inRing = 0;
  /** Given back as soon as the ring is done with it. */
  isDone = false;
  isFree = true;

  constructor(address: number, capacity: number) {
    this.address = address;
    this.capacity = capacity;
  }

  /** Bytes behind the last one that counts. */
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
  /** Times a buffer was asked for and there was none. */
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

  /** Buffers that are held. */
  get taken(): number {
    return this.#count - this.#free.length;
  }

  /**
   * A buffer without bytes; undefined when the bound is reached or memory has run out.
   * @param reserve buffers left for others: who only fills queues must not take the last ones, without which no
   * acknowledgement could come in to empty them
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

  /** Gives the buffer back now, or when the transmit ring is done with it. */
  giveWhenSent(buffer: PacketBuffer): void {
    if (buffer.inRing > 0) buffer.isDone = true;
    else this.give(buffer);
  }

  /** The transmit ring, or who kept a frame of it, is done with the buffer. */
  leftRing(buffer: PacketBuffer): void {
    buffer.inRing--;
    if (buffer.isDone && buffer.inRing === 0) this.give(buffer);
  }

  /** Gives all memory back. @throws InvariantError when a buffer is still held */
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

/**
 * One half of the on-board packet buffer as a fifo of frames, each in one piece.
 *
 *     base                                             base + size
 *      │   ░░░░░ oldest │ … │ newest │ reserved ░░░░░    │       place does not wrap inside a frame: what is too
 *          ▲ released first           ▲ being filled               small at the end is left out
 *
 * A frame reserves its maximum length while it is filled, and its actual length once it is committed. It is visible some
 * cycles later.
 */
import type { Cycles } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';

export const NO_ROOM = -1;
/** Value for a frame from which no tag was removed. */
export const NO_TAG = -1;

const ALIGNMENT = 16;
const SMALLEST_BYTES = 64;

export class PacketBuffer {
  readonly base: number;
  readonly sizeBytes: number;
  /** Committed frames. */
  count = 0;
  /** Bytes of committed frames, now and the maximum so far. */
  usedBytes = 0;
  highWaterBytes = 0;
  readonly #capacity: number;
  readonly #offset: Int32Array;
  readonly #lengthBytes: Int32Array;
  readonly #visibleCycle: Float64Array;
  /** Priority and VLAN of the removed tag, or NO_TAG. */
  readonly #tag: Int32Array;
  #head = 0;
  /** Offset of the next frame, relative to the base. */
  #tail = 0;
  #reservedAt = NO_ROOM;

  constructor(base: number, sizeBytes: number) {
    this.base = base;
    this.sizeBytes = sizeBytes;
    this.#capacity = sizeBytes / SMALLEST_BYTES;
    this.#offset = new Int32Array(this.#capacity);
    this.#lengthBytes = new Int32Array(this.#capacity);
    this.#visibleCycle = new Float64Array(this.#capacity);
    this.#tag = new Int32Array(this.#capacity);
  }

  /** Reserves room for a frame of at most `bytes`, one at a time; returns its offset in BAR2, or NO_ROOM. */
  reserve(bytes: number): number {
    const at = this.#placeFor(Math.max(bytes, SMALLEST_BYTES));
    if (at === NO_ROOM) return NO_ROOM;
    this.#reservedAt = at;
    return this.base + at;
  }

  /** The reserved frame is complete, with this number of bytes, and can be seen from `visibleCycle` on. */
  commit(bytes: number, visibleCycle: Cycles, tag = NO_TAG): void {
    const slot = (this.#head + this.count) % this.#capacity;
    this.#offset[slot] = this.#reservedAt;
    this.#lengthBytes[slot] = bytes;
    this.#visibleCycle[slot] = visibleCycle;
    this.#tag[slot] = tag;
    this.#tail = this.#reservedAt + roundUp(Math.max(bytes, SMALLEST_BYTES));
    this.#reservedAt = NO_ROOM;
    this.count++;
    this.usedBytes += bytes;
    if (this.usedBytes > this.highWaterBytes) this.highWaterBytes = this.usedBytes;
  }

  /** The reserved frame is abandoned. */
  cancel(): void {
    this.#reservedAt = NO_ROOM;
  }

  /** Whether the buffer holds no frame, complete or being filled. */
  get isEmpty(): boolean {
    return this.count === 0 && this.#reservedAt === NO_ROOM;
  }

  /** Offset in BAR2 of the frame at `index` from the oldest. */
  placeOf(index: number): number {
    return this.base + this.#offset[(this.#head + index) % this.#capacity]!;
  }

  bytesOf(index: number): number {
    return this.#lengthBytes[(this.#head + index) % this.#capacity]!;
  }

  /** The tag removed from the frame, or NO_TAG. */
  tagOf(index: number): number {
    return this.#tag[(this.#head + index) % this.#capacity]!;
  }

  /** Cycle from which the frame can be seen. */
  visibleCycleOf(index: number): number {
    return this.#visibleCycle[(this.#head + index) % this.#capacity]!;
  }

  /** Releases the oldest frame's room. */
  release(): void {
    this.usedBytes -= this.#lengthBytes[this.#head]!;
    this.#head = (this.#head + 1) % this.#capacity;
    this.count--;
  }

  reset(): void {
    this.#head = 0;
    this.count = 0;
    this.usedBytes = 0;
    this.#tail = 0;
    this.#reservedAt = NO_ROOM;
  }

  inspect(): BlockState {
    return {
      frames: Array.from({ length: this.count }, (_, index) => [this.placeOf(index), this.bytesOf(index)]),
      tags: Array.from({ length: this.count }, (_, index) => this.tagOf(index)),
      usedBytes: this.usedBytes,
      tail: this.#tail,
      reservedAt: this.#reservedAt,
    };
  }

  /** Frames lie between the oldest frame's offset and the tail; an empty buffer restarts at its base. */
  #placeFor(bytes: number): number {
    if (this.count === this.#capacity) return NO_ROOM;
    if (this.count === 0) return bytes <= this.sizeBytes ? 0 : NO_ROOM;
    const head = this.#offset[this.#head]!;
    const tail = this.#tail;
    if (tail <= head) return tail + bytes <= head ? tail : NO_ROOM;
    if (tail + bytes <= this.sizeBytes) return tail;
    return bytes <= head ? 0 : NO_ROOM;
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (let slot = 0; slot < this.#capacity; slot++)
      this.#visibleCycle[slot] = this.#visibleCycle[slot]! - cycles;
  }
}

const roundUp = (bytes: number): number => (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);

/**
 * The frames of physical memory: their references, and which are free.
 *
 * A frame is free while nothing references it. A mapping is one reference. A pin is one reference, and is also counted
 * separately, so that a page unmapped while the device uses it keeps its frame until the last unpin. Frames are handed out
 * zeroed. Exhaustion is an answer (-1), not an error: software turns it into ENOMEM.
 *
 * Frames are handed out by next fit, so that consecutive requests are usually contiguous; or, for single frames
 * of the scattered policy, at random places drawn from a seeded generator.
 */
import { assertInvariant, InvariantError } from '../../base/index.ts';
import type { PhysicalMemory } from '../physical-memory.ts';
import { FrameTable } from './frame-table.ts';
import { pageBytes, pagesPerHugePage } from './page.ts';

/** Positions of scattered frames. */
export interface FramePlaces {
  /** Draws from [0, 1). */
  unit(): number;
}

export class PageFrames {
  readonly frameCount: number;
  /** Frames of low memory, never handed out. */
  readonly reservedCount: number;
  freeCount: number;

  readonly #memory: PhysicalMemory;
  readonly #references = new FrameTable();
  readonly #pins = new FrameTable();
  /** Frames that once held data, and must be zeroed before they are handed out again. */
  readonly #isUsed = new FrameTable();
  readonly #places: FramePlaces | undefined;
  #searchFrom: number;
  #withheldCount: number;

  /**
   * @param reservedBytes low memory that is never handed out, at least two frames: the last of it is the zero page
   * @param places if given, single frames are scattered over memory
   */
  constructor(memory: PhysicalMemory, reservedBytes: number, places?: FramePlaces) {
    this.#memory = memory;
    this.frameCount = memory.sizeBytes / pageBytes;
    this.reservedCount = Math.max(2, Math.ceil(reservedBytes / pageBytes));
    this.freeCount = this.frameCount - this.reservedCount;
    for (let frame = 0; frame < this.reservedCount; frame++) this.#references.set(frame, 1);
    memory.reach(this.reservedCount * pageBytes);
    this.#places = places;
    this.#searchFrom = this.reservedCount;
    this.#withheldCount = this.reservedCount;
  }

  /** Removes frames from use permanently, before any is handed out: addresses at which devices reach no memory. */
  withhold(address: number, lengthBytes: number): void {
    const end = Math.min(this.frameCount, Math.ceil((address + lengthBytes) / pageBytes));
    for (let frame = Math.floor(address / pageBytes); frame < end; frame++) {
      assertInvariant(this.#references.of(frame) === 0, `frame ${frame} is free when it is withheld`);
      this.#references.set(frame, 1);
      this.#withheldCount++;
      this.freeCount--;
    }
  }

  /** Allocates one frame with one reference. @returns its number, or -1 if none is free */
  allocate(): number {
    if (this.freeCount === 0) return -1;
    return this.#take(this.#findFree(), 1);
  }

  /**
   * Allocates `count` contiguous frames, each with one reference, the first a multiple of `alignment`.
   * @returns the first one's number, or -1 if no such run is free
   */
  allocateRun(count: number, alignment = 1): number {
    if (count < 1 || count > this.freeCount) return -1;
    const found = this.#findRun(count, alignment, this.#searchFrom, this.frameCount);
    const first = found >= 0 ? found : this.#findRun(count, alignment, this.reservedCount, this.frameCount);
    return first < 0 ? -1 : this.#take(first, count);
  }

  /** Allocates one frame outside [first, end), with one reference. @returns its number, or -1 */
  allocateOutside(first: number, end: number): number {
    const find = (from: number, to: number): number => this.#findRun(1, 1, from, to);
    const before = find(this.reservedCount, Math.min(first, this.frameCount));
    const found = before >= 0 ? before : find(Math.max(end, this.reservedCount), this.frameCount);
    return found < 0 ? -1 : this.#take(found, 1);
  }

  /** Allocates the 512 frames of an aligned 2 MiB page. @returns the first one's number, or -1 */
  allocateHuge(): number {
    return this.allocateRun(pagesPerHugePage, pagesPerHugePage);
  }

  /** Adds a reference to a frame in use. */
  reference(frame: number): void {
    this.#requireUsed(frame);
    this.#references.set(frame, this.#references.of(frame) + 1);
  }

  /** Drops a reference; the frame is free when it was the last. */
  release(frame: number): void {
    this.#requireUsed(frame);
    const left = this.#references.of(frame) - 1;
    this.#references.set(frame, left);
    assertInvariant(left >= this.#pins.of(frame), `frame ${frame} keeps a reference for each of its pins`);
    if (left === 0) this.freeCount++;
  }

  /** Pins a frame in use: adds a reference that also counts as a pin. */
  pin(frame: number): void {
    this.reference(frame);
    this.#pins.set(frame, this.#pins.of(frame) + 1);
  }

  /** Undoes one {@link pin}. @throws InvariantError without a pin */
  unpin(frame: number): void {
    const pins = this.#pins.of(frame);
    if (pins < 1) throw new InvariantError(`pins of frame ${frame}`, pins, 'at least 1 at an unpin');
    this.#pins.set(frame, pins - 1);
    this.release(frame);
  }

  referencesOf(frame: number): number {
    return this.#references.of(frame);
  }

  pinsOf(frame: number): number {
    return this.#pins.of(frame);
  }

  /** Frames in use, without reserved ones: 0 after all allocations have been released. */
  get usedCount(): number {
    return this.frameCount - this.#withheldCount - this.freeCount;
  }

  /** Frames that can be handed out at all. */
  get allocatableCount(): number {
    return this.frameCount - this.#withheldCount;
  }

  /** Numbers of the frames in use (the first `limit` of them): what a leak check prints. */
  usedFrames(limit = 16): number[] {
    const used: number[] = [];
    for (let frame = this.reservedCount; frame < this.frameCount && used.length < limit; frame++) {
      if (this.#references.of(frame) !== 0) used.push(frame);
    }
    return used;
  }

  #findFree(): number {
    const span = this.frameCount - this.reservedCount;
    const offset =
      this.#places === undefined
        ? this.#searchFrom - this.reservedCount
        : Math.floor(this.#places.unit() * span);
    for (let step = 0; step < span; step++) {
      const frame = this.reservedCount + ((offset + step) % span);
      if (this.#references.of(frame) === 0) return frame;
    }
    throw new InvariantError('free frames', 0, `the ${this.freeCount} that are counted`);
  }

  #findRun(count: number, alignment: number, from: number, to: number): number {
    let first = Math.ceil(from / alignment) * alignment;
    let length = 0;
    while (first + count <= to) {
      if (this.#references.of(first + length) !== 0) {
        first = Math.ceil((first + length + 1) / alignment) * alignment;
        length = 0;
      } else if (++length === count) {
        return first;
      }
    }
    return -1;
  }

  #take(first: number, count: number): number {
    this.#memory.reach((first + count) * pageBytes);
    this.#memory.touch(first, count);
    for (let frame = first; frame < first + count; frame++) {
      this.#references.set(frame, 1);
      if (this.#isUsed.of(frame) === 1) {
        this.#memory.empty(frame, frame + 1);
      }
      this.#isUsed.set(frame, 1);
    }
    this.freeCount -= count;
    const next = first + count;
    this.#searchFrom = next >= this.frameCount ? this.reservedCount : next;
    return first;
  }

  #requireUsed(frame: number): void {
    const references = this.#references.of(frame);
    if (references < 1 || frame < this.reservedCount) {
      throw new InvariantError(`references of frame ${frame}`, references, 'a frame in use');
    }
  }
}

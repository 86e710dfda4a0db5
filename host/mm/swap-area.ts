/**
 * The swap area: slots with their contents and users, and the swap cache that joins a slot to the frame that holds the
 * same page while it is on its way out, on its way in, or still clean.
 *
 *     users of a slot: page-table entries and shared-memory objects that name it (swap_map)
 *     cached:          a frame has the slot's page; an access to the slot finds that frame
 *
 * A slot without users and without a frame is free. Contents are kept by the simulator, not in physical memory.
 */
import { assertInvariant, bytesPerMib, type Picoseconds } from '../../base/index.ts';
import { FrameTable } from './frame-table.ts';
import { pageBytes } from './page.ts';

const none = -1;

export class SwapArea {
  readonly slotCount: number;
  usedCount = 0;
  readonly #contents: (Uint8Array | undefined)[] = [];
  readonly #users: number[] = [];
  readonly #frames: number[] = [];
  readonly #readyPs: number[] = [];
  readonly #free: number[] = [];
  readonly #slots = new FrameTable(none);

  constructor(sizeMib: number) {
    this.slotCount = (sizeMib * bytesPerMib) / pageBytes;
  }

  /** Allocates a slot for the page of `frame`, which becomes its cached frame. @returns -1 if no slot is free */
  add(frame: number, content: Uint8Array): number {
    if (this.usedCount === this.slotCount) return -1;
    const slot = this.#free.pop() ?? this.usedCount;
    this.usedCount++;
    this.#contents[slot] = content.slice();
    this.#users[slot] = 0;
    this.#readyPs[slot] = 0;
    this.#setFrame(slot, frame);
    return slot;
  }

  /** Writes a slot's page again. */
  rewrite(slot: number, content: Uint8Array): void {
    this.#contents[slot]!.set(content);
  }

  contentOf(slot: number): Uint8Array {
    return this.#contents[slot]!;
  }

  usersOf(slot: number): number {
    return this.#users[slot]!;
  }

  reference(slot: number): void {
    this.#users[slot] = this.#users[slot]! + 1;
  }

  /** Removes one user. @returns the frame to release if that was the last user and a clean frame was kept */
  release(slot: number): number {
    const users = this.#users[slot]! - 1;
    assertInvariant(users >= 0, `swap slot ${slot} has users to release`);
    this.#users[slot] = users;
    if (users > 0) return none;
    const frame = this.#frames[slot]!;
    if (frame === none) this.#give(slot);
    return frame;
  }

  /** The frame that holds a slot's page, or -1. */
  frameOf(slot: number): number {
    return this.#frames[slot]!;
  }

  /** The slot that holds a copy of a frame's page, or -1. */
  slotOf(frame: number): number {
    return this.#slots.of(frame);
  }

  /** Joins a slot to a frame whose content is valid from `readyPs` on. */
  cache(slot: number, frame: number, readyPs: Picoseconds): void {
    this.#setFrame(slot, frame);
    this.#readyPs[slot] = readyPs;
  }

  /** Instant from which the cached frame can be used. */
  readyPsOf(slot: number): number {
    return this.#readyPs[slot]!;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (let slot = 0; slot < this.#readyPs.length; slot++) this.#readyPs[slot] = this.#readyPs[slot]! - ps;
  }

  /** Detaches a frame from its slot; the slot is free if it has no users. */
  uncache(frame: number): void {
    const slot = this.#slots.of(frame);
    this.#slots.set(frame, none);
    this.#frames[slot] = none;
    if (this.#users[slot] === 0) this.#give(slot);
  }

  #setFrame(slot: number, frame: number): void {
    this.#frames[slot] = frame;
    this.#slots.set(frame, slot);
  }

  #give(slot: number): void {
    this.#contents[slot] = undefined;
    this.#free.push(slot);
    this.usedCount--;
  }
}

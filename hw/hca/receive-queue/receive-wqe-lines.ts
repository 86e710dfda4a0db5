/**
 * The receive-WQE cache: lines of the next few WQEs of a receive queue, read by one DMA. A line is evicted, least
 * recently used first, when another queue needs it; one that is being filled is kept, or reserved for its read if its
 * queue was destroyed. The queue's own state names its line.
 */
import { NO_LINE, type ReceiveQueueState } from '../objects/index.ts';

export const RECEIVE_LINE_BYTES = 1024;

class Line {
  /** The line's queue, and the queue's number; undefined if the line is free, or being filled for a destroyed queue. */
  owner: ReceiveQueueState | undefined;
  queue = -1;
  isFilling = 0;
  /** WQEs valid in it, and how many of them are used. */
  wqes = 0;
  used = 0;
  stamp = 0;
}

export class ReceiveWqeLines {
  evictionCount = 0;
  readonly #sramOffset: number;
  readonly #lines: readonly Line[];
  #clock = 0;

  /** @param sramOffset of `count` × {@link RECEIVE_LINE_BYTES} bytes */
  constructor(count: number, sramOffset: number) {
    this.#sramOffset = sramOffset;
    this.#lines = Array.from({ length: count }, () => new Line());
  }

  /** Lines that belong to a queue, or whose read is still in flight. */
  get heldCount(): number {
    return this.#lines.filter(({ owner, isFilling }) => owner !== undefined || isFilling === 1).length;
  }

  /** True when the line holds a WQE that has not been used. */
  hasWqe(line: number): boolean {
    const { used, wqes } = this.#lines[line]!;
    return used < wqes;
  }

  /** True when the last WQE of the line has just been used. */
  isUsedUp(line: number): boolean {
    const { used, wqes } = this.#lines[line]!;
    return used === wqes;
  }

  /** Place of the line in the HCA's memory. */
  offsetOf(line: number): number {
    return this.#sramOffset + line * RECEIVE_LINE_BYTES;
  }

  /** Uses the next WQE of the line. Returns its place in the HCA's memory. */
  use(line: number, strideBytes: number): number {
    const row = this.#lines[line]!;
    const offset = this.offsetOf(line) + row.used * strideBytes;
    row.stamp = ++this.#clock;
    row.used++;
    return offset;
  }

  /** The queue's WQEs on chip are not to be used any more. */
  empty(state: ReceiveQueueState): void {
    if (state.line !== NO_LINE) this.#lines[state.line]!.wqes = 0;
  }

  /** Begins to fill the queue's own line, a free one, or the least recently used; -1 when all are being filled. */
  beginFill(state: ReceiveQueueState, queue: number, wqes: number): number {
    const line = this.#claim(state, queue);
    if (line === NO_LINE) return NO_LINE;
    const row = this.#lines[line]!;
    row.wqes = 0;
    row.used = wqes;
    row.isFilling = 1;
    return line;
  }

  /** Ends the line's read. Returns its queue, or -1 if that was destroyed. */
  endFill(line: number): number {
    const row = this.#lines[line]!;
    row.isFilling = 0;
    return row.owner === undefined ? -1 : row.queue;
  }

  /** Makes the WQEs that were read into the line valid. */
  publish(line: number): void {
    const row = this.#lines[line]!;
    row.wqes = row.used;
    row.used = 0;
  }

  /** Frees the line of a destroyed queue, once a read in flight into it has ended. */
  close(state: ReceiveQueueState): void {
    if (state.line !== NO_LINE) this.#lines[state.line]!.owner = undefined;
    state.line = NO_LINE;
  }

  /** Reset: all lines are free, and none has been used. */
  reset(): void {
    for (const row of this.#lines) {
      if (row.owner !== undefined) row.owner.line = NO_LINE;
      row.owner = undefined;
      row.isFilling = 0;
      row.stamp = 0;
    }
    this.#clock = 0;
  }

  #claim(state: ReceiveQueueState, queue: number): number {
    let victim = state.line;
    if (victim === NO_LINE) victim = this.#firstFree();
    if (victim === NO_LINE) {
      victim = this.#leastRecentlyUsed();
      if (victim === NO_LINE) return NO_LINE;
      this.evictionCount++;
      this.#lines[victim]!.owner!.line = NO_LINE;
    }
    const row = this.#lines[victim]!;
    row.owner = state;
    row.queue = queue;
    row.stamp = ++this.#clock;
    state.line = victim;
    return victim;
  }

  #firstFree(): number {
    return this.#lines.findIndex(({ owner, isFilling }) => owner === undefined && isFilling === 0);
  }

  #leastRecentlyUsed(): number {
    let victim = NO_LINE;
    for (let line = 0; line < this.#lines.length; line++) {
      const { isFilling, stamp } = this.#lines[line]!;
      if (isFilling === 1) continue;
      if (victim === NO_LINE || stamp < this.#lines[victim]!.stamp) victim = line;
    }
    return victim;
  }
}

/**
 * The receive-WQE cache: lines of the next few WQEs of a receive queue, read by one DMA. A line is given up, least recently
 * used first, when another queue needs it; one that is being filled is kept, or left to its read when its queue is gone.
 */
export const RECEIVE_LINE_BYTES = 1024;

/** In place of a queue: the line is free, or a read into it is under way for a queue that is gone. */
const FREE = -1;
const ABANDONED = -2;
const NONE = -1;

export class ReceiveWqeLines {
  evictionCount = 0;
  readonly #count: number;
  readonly #sramOffset: number;
  /** By queue. */
  readonly #lineOf: Int32Array;
  /** By line: its queue, WQEs valid in it and how many of them are used, and whether it is being filled. */
  readonly #queueOf: Int32Array;
  readonly #wqes: Int32Array;
  readonly #used: Int32Array;
  readonly #isFilling: Uint8Array;
  readonly #stamp: Float64Array;
  #clock = 0;

  /** @param sramOffset of `count` × {@link RECEIVE_LINE_BYTES} bytes */
  constructor(count: number, queueCount: number, sramOffset: number) {
    this.#count = count;
    this.#sramOffset = sramOffset;
    this.#lineOf = new Int32Array(queueCount).fill(NONE);
    this.#queueOf = new Int32Array(count).fill(FREE);
    this.#wqes = new Int32Array(count);
    this.#used = new Int32Array(count);
    this.#isFilling = new Uint8Array(count);
    this.#stamp = new Float64Array(count);
  }

  /** The queue's line, or -1. */
  lineOf(queue: number): number {
    return this.#lineOf[queue]!;
  }

  /** True when the line holds a WQE that has not been used. */
  hasWqe(line: number): boolean {
    return this.#used[line]! < this.#wqes[line]!;
  }

  /** True when the last WQE of the line has just been used. */
  isUsedUp(line: number): boolean {
    return this.#used[line] === this.#wqes[line];
  }

  /** Place of the line in the HCA's memory. */
  offsetOf(line: number): number {
    return this.#sramOffset + line * RECEIVE_LINE_BYTES;
  }

  /** Uses the next WQE of the line. Returns its place in the HCA's memory. */
  use(line: number, strideBytes: number): number {
    const offset = this.offsetOf(line) + this.#used[line]! * strideBytes;
    this.#stamp[line] = ++this.#clock;
    this.#used[line] = this.#used[line]! + 1;
    return offset;
  }

  /** The queue's WQEs on chip are not to be used any more. */
  empty(queue: number): void {
    const line = this.#lineOf[queue]!;
    if (line !== NONE) this.#wqes[line] = 0;
  }

  /** Begins to fill the queue's own line, a free one, or the least recently used; -1 when all are being filled. */
  beginFill(queue: number, wqes: number): number {
    const line = this.#claim(queue);
    if (line === NONE) return NONE;
    this.#wqes[line] = 0;
    this.#used[line] = wqes;
    this.#isFilling[line] = 1;
    return line;
  }

  /** The line's read is done. Returns its queue, or -1 when that is gone. */
  endFill(line: number): number {
    this.#isFilling[line] = 0;
    const queue = this.#queueOf[line]!;
    if (queue === ABANDONED) this.#queueOf[line] = FREE;
    return queue < 0 ? NONE : queue;
  }

  /** What was read into the line is valid. */
  publish(line: number): void {
    this.#wqes[line] = this.#used[line]!;
    this.#used[line] = 0;
  }

  /** The queue is new: it has no line. */
  open(queue: number): void {
    this.#lineOf[queue] = NONE;
  }

  /** The queue is gone: its line is free, once a read under way has landed in it. */
  close(queue: number): void {
    const line = this.#lineOf[queue]!;
    if (line !== NONE) this.#queueOf[line] = this.#isFilling[line] === 1 ? ABANDONED : FREE;
    this.#lineOf[queue] = NONE;
  }

  reset(): void {
    this.#lineOf.fill(NONE);
    this.#queueOf.fill(FREE);
    this.#isFilling.fill(0);
  }

  #claim(queue: number): number {
    let victim = this.#lineOf[queue]!;
    for (let line = 0; victim === NONE && line < this.#count; line++)
      if (this.#queueOf[line] === FREE) victim = line;
    if (victim === NONE) {
      victim = this.#leastRecentlyUsed();
      if (victim === NONE) return NONE;
      this.evictionCount++;
      this.#lineOf[this.#queueOf[victim]!] = NONE;
    }
    this.#queueOf[victim] = queue;
    this.#lineOf[queue] = victim;
    this.#stamp[victim] = ++this.#clock;
    return victim;
  }

  #leastRecentlyUsed(): number {
    let victim = NONE;
    for (let line = 0; line < this.#count; line++) {
      if (this.#isFilling[line] === 1) continue;
      if (victim === NONE || this.#stamp[line]! < this.#stamp[victim]!) victim = line;
    }
    return victim;
  }
}

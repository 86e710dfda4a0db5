/**
 * The queues of one output, one for each priority, and which of them sends next: the highest priority, or each in turn (IEEE 802.1Q,
 * 8.6.8). A priority that the far end has paused is passed over.
 */
import type { BlockState } from '../../sim/index.ts';
import { ETHERNET_FCS_BYTES } from '../../wire/index.ts';
import { PRIORITY_COUNT } from './shared-buffer.ts';
import { FrameQueue, type StoredFrame } from './stored-frames.ts';

/** No priority may send. */
export const NO_PRIORITY = -1;

export class EgressQueues {
  readonly #isStrict: boolean;
  readonly #queues = Array.from({ length: PRIORITY_COUNT }, () => new FrameQueue());
  readonly #bytes = new Float64Array(PRIORITY_COUNT);
  /** The priority that sent last. */
  #last = 0;
  count = 0;
  /** Most bytes in one queue so far. */
  bytesMax = 0;

  constructor(scheduling: 'strict' | 'round-robin') {
    this.#isStrict = scheduling === 'strict';
  }

  /** Bytes in the queue of a priority, the frame that is being sent among them. */
  bytesOf(priority: number): number {
    return this.#bytes[priority]!;
  }

  /** The same in all of them. */
  get bytes(): number {
    return this.#bytes.reduce((sum, bytes) => sum + bytes, 0);
  }

  add(frame: StoredFrame): void {
    const { priority } = frame;
    this.#queues[priority]!.add(frame);
    this.count++;
    this.#bytes[priority]! += bytesOf(frame);
    this.bytesMax = Math.max(this.bytesMax, this.#bytes[priority]!);
  }

  /** The priority that may send next, or {@link NO_PRIORITY}. */
  next(isPaused: (priority: number) => boolean): number {
    for (let step = 1; step <= PRIORITY_COUNT; step++) {
      const priority = this.#isStrict
        ? PRIORITY_COUNT - step
        : (this.#last + PRIORITY_COUNT - step) % PRIORITY_COUNT;
      if (this.#queues[priority]!.count > 0 && !isPaused(priority)) return priority;
    }
    return NO_PRIORITY;
  }

  /** Takes the first frame of a priority; its bytes stay in the queue until {@link left}. */
  take(priority: number): StoredFrame {
    this.#last = priority;
    this.count--;
    return this.#queues[priority]!.shift();
  }

  /** Whether frames of a priority wait. */
  has(priority: number): boolean {
    return this.#queues[priority]!.count > 0;
  }

  /** Takes all frames of a priority that wait, and their bytes. */
  drop(priority: number): StoredFrame[] {
    const frames: StoredFrame[] = [];
    while (this.has(priority)) {
      const frame = this.take(priority);
      this.left(frame);
      frames.push(frame);
    }
    return frames;
  }

  /** The frames that wait. */
  frames(): StoredFrame[] {
    return this.#queues.flatMap((queue) => queue.all());
  }

  /** The last byte of a frame has left. */
  left(frame: StoredFrame): void {
    this.#bytes[frame.priority]! -= bytesOf(frame);
  }

  inspect(): BlockState {
    return { frames: this.count, bytes: [...this.#bytes] };
  }
}

/** Bytes of a frame in the buffer. */
export const bytesOf = ({ frameBytes }: StoredFrame): number => frameBytes + ETHERNET_FCS_BYTES;

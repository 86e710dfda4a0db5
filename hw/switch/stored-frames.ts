/** Frames within a switch: their bytes, where they came from, and how many outputs still have to send them. Places are used again. */
import type { Picoseconds } from '../../base/index.ts';

export interface StoredFrame {
  readonly bytes: Uint8Array;
  /** Without FCS. */
  frameBytes: number;
  /** Index of the port by which it came. */
  input: number;
  priority: number;
  /** Earliest instant at which it joins the queues of its outputs, and when its last bit has come. */
  readyPs: Picoseconds;
  tailPs: Picoseconds;
  /** Whether its frame check sequence is wrong: known when its last bit has come. */
  isCorrupted: boolean;
  /** Whether its first sender had sent it before: for observers. */
  isSentAgain: boolean;
  /** Ports by which it leaves, once they are known and it awaits its last bit; undefined before. */
  outputs: readonly number[] | undefined;
  /** Outputs that have not sent it yet. */
  copiesLeft: number;
}

export class StoredFrames {
  readonly #frameBytesMax: number;
  readonly #free: StoredFrame[] = [];

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax;
  }

  /** Stores a frame that has arrived, or begins to. */
  store(
    source: Uint8Array,
    at: number,
    frameBytes: number,
    input: number,
    arrival: Pick<StoredFrame, 'readyPs' | 'tailPs' | 'isCorrupted' | 'isSentAgain'>,
  ): StoredFrame {
    const frame = this.#free.pop() ?? this.#made();
    frame.bytes.set(source.subarray(at, at + frameBytes));
    frame.frameBytes = frameBytes;
    frame.input = input;
    frame.readyPs = arrival.readyPs;
    frame.tailPs = arrival.tailPs;
    frame.isCorrupted = arrival.isCorrupted;
    frame.isSentAgain = arrival.isSentAgain;
    frame.outputs = undefined;
    frame.copiesLeft = 0;
    return frame;
  }

  release(frame: StoredFrame): void {
    this.#free.push(frame);
  }

  #made(): StoredFrame {
    return {
      bytes: new Uint8Array(this.#frameBytesMax),
      frameBytes: 0,
      input: 0,
      priority: 0,
      readyPs: 0,
      tailPs: 0,
      isCorrupted: false,
      isSentAgain: false,
      outputs: undefined,
      copiesLeft: 0,
    };
  }
}

/** Frames in order. */
export class FrameQueue {
  #frames: StoredFrame[] = [];
  #first = 0;

  get count(): number {
    return this.#frames.length - this.#first;
  }

  get head(): StoredFrame | undefined {
    return this.#frames[this.#first];
  }

  all(): readonly StoredFrame[] {
    return this.#frames.slice(this.#first);
  }

  add(frame: StoredFrame): void {
    this.#frames.push(frame);
  }

  /** Removes the head. */
  shift(): StoredFrame {
    const frame = this.#frames[this.#first++]!;
    // Moves the rest to the front now and then: each frame once for every frame that left.
    if (2 * this.#first >= this.#frames.length) {
      this.#frames = this.#frames.slice(this.#first);
      this.#first = 0;
    }
    return frame;
  }

  rebase(ps: Picoseconds): void {
    for (let at = this.#first; at < this.#frames.length; at++) {
      this.#frames[at]!.readyPs -= ps;
      this.#frames[at]!.tailPs -= ps;
    }
  }
}

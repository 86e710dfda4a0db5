/**
 * A number for each frame, in a table that grows with the highest written frame. Most frames of a machine are never handed out;
 * a full table would cost time to construct and to copy into each image.
 */

/** 16 MiB: more than a boot and a pair of programs need. */
const frameCountAtFirst = 4096;

export class FrameTable {
  readonly #initial: number;
  #numbers: Int32Array | Float64Array;

  /**
   * @param initial the number of a frame that was never written
   * @param Numbers Float64Array if the numbers exceed 32 bits
   */
  constructor(initial = 0, Numbers: typeof Int32Array | typeof Float64Array = Int32Array) {
    this.#initial = initial;
    this.#numbers = new Numbers(frameCountAtFirst).fill(initial);
  }

  of(frame: number): number {
    return this.#numbers[frame] ?? this.#initial;
  }

  set(frame: number, value: number): void {
    if (frame >= this.#numbers.length) this.#grow(frame);
    this.#numbers[frame] = value;
  }

  #grow(frame: number): void {
    const former = this.#numbers;
    const Numbers = former instanceof Int32Array ? Int32Array : Float64Array;
    const numbers = new Numbers(2 ** Math.ceil(Math.log2(frame + 1)));
    numbers.set(former);
    this.#numbers = numbers.fill(this.#initial, former.length);
  }
}

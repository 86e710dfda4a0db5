/**
 * Copies payloads into a fixed buffer without allocating: by words while both sides are aligned, by bytes
 * otherwise, and by the engine's block copy where that pays for the view it needs.
 */

/** From this size on a view and a block copy are cheaper than a loop. */
const BLOCK_COPY_BYTES = 512;

export class PayloadCopier {
  readonly target: Uint8Array;
  readonly #targetWords: Int32Array;
  /** Words of the last source seen: a sender copies from one or two buffers only. */
  #source: Uint8Array;
  #sourceWords: Int32Array;

  /** @param target starts at a multiple of 4 bytes of its buffer */
  constructor(target: Uint8Array) {
    this.target = target;
    this.#targetWords = wordsOf(target);
    this.#source = target;
    this.#sourceWords = this.#targetWords;
  }

  /** Copies `lengthBytes` of `source` at `sourceOffset` to `targetOffset`. */
  copy(source: Uint8Array, sourceOffset: number, targetOffset: number, lengthBytes: number): void {
    const target = this.target;
    if (lengthBytes >= BLOCK_COPY_BYTES) {
      target.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), targetOffset);
      return;
    }
    let done = 0;
    if (((sourceOffset | targetOffset | source.byteOffset) & 3) === 0) {
      if (source !== this.#source) {
        this.#source = source;
        this.#sourceWords = wordsOf(source);
      }
      const from = this.#sourceWords;
      const to = this.#targetWords;
      const fromWord = sourceOffset >> 2;
      const toWord = targetOffset >> 2;
      const words = lengthBytes >> 2;
      for (let word = 0; word < words; word++) to[toWord + word] = from[fromWord + word]!;
      done = words << 2;
    }
    for (; done < lengthBytes; done++) target[targetOffset + done] = source[sourceOffset + done]!;
  }
}

function wordsOf(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

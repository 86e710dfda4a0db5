/**
 * Copies payloads into a fixed buffer without allocating: by words where both sides are aligned (see
 * base/copy-words.ts), else by Buffer's block copy, which needs no view.
 */
import { copyWords } from '../../base/copy-words.ts';

/** From this size on the block copy is cheaper than words; and from so few bytes than a loop over bytes. */
const BLOCK_COPY_BYTES = 192;
const BLOCK_COPY_UNALIGNED_BYTES = 32;
const copyBytes = Buffer.prototype.copy;

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
    const isAligned = ((sourceOffset | targetOffset | source.byteOffset) & 3) === 0;
    if (lengthBytes >= (isAligned ? BLOCK_COPY_BYTES : BLOCK_COPY_UNALIGNED_BYTES)) {
      copyBytes.call(source, target, targetOffset, sourceOffset, sourceOffset + lengthBytes);
      return;
    }
    let done = 0;
    if (isAligned) {
      if (source !== this.#source) {
        this.#source = source;
        this.#sourceWords = wordsOf(source);
      }
      const words = lengthBytes >> 2;
      copyWords(this.#targetWords, targetOffset >> 2, this.#sourceWords, sourceOffset >> 2, words);
      done = words << 2;
    }
    for (; done < lengthBytes; done++) target[targetOffset + done] = source[sourceOffset + done]!;
  }
}

function wordsOf(bytes: Uint8Array): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

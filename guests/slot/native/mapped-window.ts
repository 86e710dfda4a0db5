/**
 * A piece of a file in our address space, shared with all that map it: a guest's RAM, in place.
 *
 * Other processes that map it read while we write, so order matters. The guaranteed order of a write: with address, length and
 * source aligned to four bytes, each word appears whole and the last words appear after all others (a CQE's owner bit, the last
 * byte a benchmark polls). Unaligned ends are written byte by byte.
 *
 * At most 1 GiB, so that an offset is a 32-bit integer. The views never leave this file: after `unmap` an access to them would
 * kill the whole process.
 */
import { bytesPerGib } from '../../../base/index.ts';
import { nativeLibrary } from './library.ts';
import { MAP_SHARED, PROT_READ, PROT_WRITE } from './structures.ts';

export const WINDOW_BYTES_MAX = bytesPerGib;

/** Up to this size a loop over words is cheaper than Buffer's copy (base/block-copy.ts has the figures). */
const wordCopyLimitBytes = 64;
/** Bytes stored last, word by word: covers a CQE's last words. */
const tailBytes = 16;
const copyBytes = Buffer.prototype.copy;
const none = new Int32Array(0);

export class MappedWindow {
  readonly lengthBytes: number;
  readonly #address: number;
  #bytes: Uint8Array;
  #words: Int32Array;
  /** The last source and target, and their words: a root complex has one of each. */
  #source: Uint8Array = new Uint8Array(0);
  #sourceWords: Int32Array = none;
  #target: Uint8Array = new Uint8Array(0);
  #targetWords: Int32Array = none;

  private constructor(address: number, lengthBytes: number) {
    this.lengthBytes = lengthBytes;
    this.#address = address;
    const buffer = nativeLibrary().viewAt(address, lengthBytes);
    this.#bytes = new Uint8Array(buffer);
    this.#words = new Int32Array(buffer);
  }

  /** Maps [fileOffset, + lengthBytes), both in whole pages; minus an errno if the kernel refuses. */
  static map(
    descriptor: number,
    fileOffset: number,
    lengthBytes: number,
    isWritable: boolean,
  ): MappedWindow | number {
    const native = nativeLibrary();
    const protection = isWritable ? PROT_READ | PROT_WRITE : PROT_READ;
    const address = native.mmap(lengthBytes, protection, MAP_SHARED, descriptor, fileOffset);
    return address === -1 ? -native.errno() : new MappedWindow(address, lengthBytes);
  }

  /** Ends the mapping. The caller must not use this window any more. */
  unmap(): void {
    this.#bytes = new Uint8Array(0);
    this.#words = none;
    nativeLibrary().munmap(this.#address, this.lengthBytes);
  }

  /** Copies from the window; the range is in it. */
  readInto(offset: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    if (
      lengthBytes > wordCopyLimitBytes ||
      ((offset | lengthBytes | targetOffset | target.byteOffset) & 3) !== 0
    ) {
      copyBytes.call(this.#bytes, target, targetOffset, offset, offset + lengthBytes);
      return true;
    }
    if (target !== this.#target) {
      this.#target = target;
      this.#targetWords = wordsOf(target);
    }
    copyWords(this.#words, offset >> 2, this.#targetWords, targetOffset >> 2, lengthBytes >> 2);
    return true;
  }

  /** Copies into the window; the range is in it. */
  write(offset: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    const isAligned = ((offset | lengthBytes | sourceOffset | source.byteOffset) & 3) === 0;
    const bodyBytes = lengthBytes > wordCopyLimitBytes ? lengthBytes - tailBytes : 0;
    if (bodyBytes > 0) copyBytes.call(source, this.#bytes, offset, sourceOffset, sourceOffset + bodyBytes);
    if (isAligned) {
      this.#writeWords(
        (offset + bodyBytes) >> 2,
        source,
        (sourceOffset + bodyBytes) >> 2,
        lengthBytes - bodyBytes,
      );
      return true;
    }
    for (let at = bodyBytes; at < lengthBytes; at++) {
      this.#bytes[offset + at] = source[sourceOffset + at]!;
    }
    return true;
  }

  #writeWords(word: number, source: Uint8Array, sourceWord: number, lengthBytes: number): void {
    if (source !== this.#source) {
      this.#source = source;
      this.#sourceWords = wordsOf(source);
    }
    const last = (lengthBytes >> 2) - 1;
    if (last < 0) return;
    copyWords(this.#sourceWords, sourceWord, this.#words, word, last);
    Atomics.store(this.#words, word + last, this.#sourceWords[sourceWord + last]!);
  }
}

function copyWords(from: Int32Array, fromWord: number, to: Int32Array, toWord: number, count: number): void {
  for (let word = 0; word < count; word++) to[toWord + word] = from[fromWord + word]!;
}

/** The whole words of a view; empty if it is unaligned, since they are then not used. */
function wordsOf(bytes: Uint8Array): Int32Array {
  if ((bytes.byteOffset & 3) !== 0) return none;
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

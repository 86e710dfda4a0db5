/**
 * A host's physical memory: one SharedArrayBuffer, from physical address 0.
 *
 *   root complex ── readInto / write ──┐
 *   store buffers ──────────── write ──┤── bytes ── views of the kernel and of programs
 *                                      └── watch: a write to a watched 4 KiB page tells the spinning core
 *
 * Promises: an access that is not wholly within memory does nothing and is answered false, which the root complex
 * turns into Unsupported Request; a write is complete before its watchers are told. An unwatched write costs one
 * comparison for that.
 *
 * Copies go by words while short and when both ends are aligned (see base/copy-words.ts), and else by Buffer's copy.
 * Views of words are made once for each buffer that devices copy from or to: a root complex has one of each.
 */
import { assertRange } from '../base/assert.ts';
import { copyWords } from '../base/copy-words.ts';
import { bytesPerGib, bytesPerMib } from '../base/units.ts';

/** Told of each write to a page it watches, after the bytes have landed. */
export interface PageWatcher {
  pageWritten(): void;
}

const wordCopyLimitBytes = 128;
const pageShift = 12;
const copyBytes = Buffer.prototype.copy;

export class PhysicalMemory {
  readonly buffer: SharedArrayBuffer;
  readonly sizeBytes: number;
  readonly bytes: Uint8Array;
  readonly view: DataView;

  readonly #words: Int32Array;
  /** Words of the last source and the last target seen. */
  #source: Uint8Array;
  #sourceWords: Int32Array;
  #target: Uint8Array;
  #targetWords: Int32Array;
  /** Watchers of each page: 0 almost everywhere, nearly always. */
  readonly #watchCounts: Uint8Array;
  readonly #watchers: PageWatcher[] = [];
  readonly #watchedPages: number[] = [];

  /** @param sizeBytes 64 MiB to 4 GiB, in whole MiB */
  constructor(sizeBytes: number) {
    assertRange('memory.sizeMib', sizeBytes / bytesPerMib, 64, (4 * bytesPerGib) / bytesPerMib);
    this.sizeBytes = sizeBytes;
    this.buffer = new SharedArrayBuffer(sizeBytes);
    this.bytes = new Uint8Array(this.buffer);
    this.view = new DataView(this.buffer);
    this.#words = new Int32Array(this.buffer);
    this.#source = this.bytes;
    this.#sourceWords = this.#words;
    this.#target = this.bytes;
    this.#targetWords = this.#words;
    this.#watchCounts = new Uint8Array(sizeBytes / 2 ** pageShift);
  }

  /** Whether [address, address + lengthBytes) lies in memory. */
  contains(address: number, lengthBytes: number): boolean {
    return address >= 0 && address + lengthBytes <= this.sizeBytes;
  }

  /** Copies from memory into `target`. False, and nothing copied, when the range is not all memory. */
  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    if (!this.contains(address, lengthBytes)) return false;
    if (
      lengthBytes > wordCopyLimitBytes ||
      ((address | lengthBytes | targetOffset | target.byteOffset) & 3) !== 0
    ) {
      copyBytes.call(this.bytes, target, targetOffset, address, address + lengthBytes);
      return true;
    }
    if (target !== this.#target) {
      this.#target = target;
      this.#targetWords = wordsOf(target);
    }
    copyWords(this.#targetWords, targetOffset >>> 2, this.#words, address / 4, lengthBytes >> 2);
    return true;
  }

  /** Copies into memory. False, and nothing copied, when the range is not all memory. */
  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    if (lengthBytes > wordCopyLimitBytes) return this.#writeBlock(address, lengthBytes, source, sourceOffset);
    if (source !== this.#source) {
      this.#source = source;
      this.#sourceWords = wordsOf(source);
    }
    return this.writeWords(address, lengthBytes, source, this.#sourceWords, sourceOffset);
  }

  /** {@link write} from a source of which the caller keeps a view as words, from the same first byte. */
  writeWords(
    address: number,
    lengthBytes: number,
    source: Uint8Array,
    sourceWords: Int32Array,
    sourceOffset: number,
  ): boolean {
    if (
      lengthBytes > wordCopyLimitBytes ||
      ((address | lengthBytes | sourceOffset | source.byteOffset) & 3) !== 0
    ) {
      return this.#writeBlock(address, lengthBytes, source, sourceOffset);
    }
    if (!this.contains(address, lengthBytes)) return false;
    copyWords(this.#words, address / 4, sourceWords, sourceOffset >>> 2, lengthBytes >> 2);
    if (this.#watchers.length > 0) this.#tellWatchers(address, lengthBytes);
    return true;
  }

  /** Has `watcher` told of every write to the 4 KiB page of `address`, until {@link unwatch}. */
  watch(address: number, watcher: PageWatcher): void {
    const page = Math.floor(address / 2 ** pageShift);
    this.#watchCounts[page] = this.#watchCounts[page]! + 1;
    this.#watchers.push(watcher);
    this.#watchedPages.push(page);
  }

  /** Ends the watch of `watcher`. */
  unwatch(watcher: PageWatcher): void {
    const at = this.#watchers.indexOf(watcher);
    if (at < 0) return;
    const page = this.#watchedPages[at]!;
    this.#watchCounts[page] = this.#watchCounts[page]! - 1;
    const lastWatcher = this.#watchers.pop()!;
    const lastPage = this.#watchedPages.pop()!;
    if (at === this.#watchers.length) return;
    this.#watchers[at] = lastWatcher;
    this.#watchedPages[at] = lastPage;
  }

  /** Watches now set. */
  get watchCount(): number {
    return this.#watchers.length;
  }

  #writeBlock(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    if (!this.contains(address, lengthBytes)) return false;
    copyBytes.call(source, this.bytes, address, sourceOffset, sourceOffset + lengthBytes);
    if (this.#watchers.length > 0) this.#tellWatchers(address, lengthBytes);
    return true;
  }

  #tellWatchers(address: number, lengthBytes: number): void {
    const last = Math.floor((address + lengthBytes - 1) / 2 ** pageShift);
    for (let page = Math.floor(address / 2 ** pageShift); page <= last; page++) {
      if (this.#watchCounts[page] === 0) continue;
      for (let at = 0; at < this.#watchers.length; at++) {
        if (this.#watchedPages[at] === page) this.#watchers[at]!.pageWritten();
      }
    }
  }
}

/** The whole words of a view; empty where it does not begin at one, since then they are not used. */
function wordsOf(bytes: Uint8Array): Int32Array {
  if ((bytes.byteOffset & 3) !== 0) return new Int32Array(0);
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

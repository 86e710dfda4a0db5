/**
 * A host's physical memory: one SharedArrayBuffer, from physical address 0, that grows as far as frames are handed out and devices
 * reach: what lies beyond has never been written and is zero.
 *
 *   root complex ── readInto / write ──┐
 *   store buffers ──────────── write ──┤── bytes ── views of the kernel and of programs
 *                                      └── watch: a write to a watched 4 KiB page wakes the spinning core
 *
 * Promises: an access that is not wholly within memory does nothing and is answered false, which the root complex
 * turns into Unsupported Request; a write is complete before its watchers are notified. An unwatched write costs one
 * comparison for that.
 */
import { assertRange } from '../base/assert.ts';
import { BlockCopier } from '../base/block-copy.ts';
import { bytesPerGib, bytesPerMib } from '../base/units.ts';

/** Notified of each write to a page it watches, after the bytes are in memory. */
export interface PageWatcher {
  pageWritten(): void;
}

const pageShift = 12;

export class PhysicalMemory {
  readonly buffer: SharedArrayBuffer;
  readonly sizeBytes: number;
  /** Views that may be kept: they follow as memory grows. Each access costs more than through {@link bytes} and {@link view}. */
  readonly followingBytes: Uint8Array;
  readonly followingView: DataView;

  #bytes: Uint8Array;
  #view: DataView;

  readonly #reads = new BlockCopier();
  readonly #writes = new BlockCopier();
  /** Watchers of each page: 0 almost everywhere, nearly always. */
  readonly #watchCounts: Uint8Array;
  readonly #watchers: PageWatcher[] = [];
  readonly #watchedPages: number[] = [];

  /**
   * @param sizeBytes 64 MiB to 4 GiB, in whole MiB
   * @param presentBytes how much of it is there at first; default all
   */
  constructor(sizeBytes: number, presentBytes = sizeBytes) {
    assertRange('memory.sizeMib', sizeBytes / bytesPerMib, 64, (4 * bytesPerGib) / bytesPerMib);
    this.sizeBytes = sizeBytes;
    this.buffer = new SharedArrayBuffer(presentBytes, { maxByteLength: sizeBytes });
    this.followingBytes = new Uint8Array(this.buffer);
    this.followingView = new DataView(this.buffer);
    this.#bytes = new Uint8Array(this.buffer, 0, presentBytes);
    this.#view = new DataView(this.buffer, 0, presentBytes);
    this.#watchCounts = new Uint8Array(sizeBytes / 2 ** pageShift);
  }

  /** What is there of memory now: to be taken anew after frames have been handed out. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** As {@link bytes}. */
  get view(): DataView {
    return this.#view;
  }

  /** Makes sure that memory is there up to the address `end`. */
  reach(end: number): void {
    if (end > this.#bytes.length) this.#grow(end);
  }

  #grow(end: number): void {
    const presentBytes = Math.min(this.sizeBytes, Math.max(end, 2 * this.#bytes.length));
    this.buffer.grow(presentBytes);
    this.#bytes = new Uint8Array(this.buffer, 0, presentBytes);
    this.#view = new DataView(this.buffer, 0, presentBytes);
  }

  /** Whether [address, address + lengthBytes) lies in memory. */
  contains(address: number, lengthBytes: number): boolean {
    return address >= 0 && address + lengthBytes <= this.sizeBytes;
  }

  /** Copies from memory into `target`. False, and nothing copied, when the range is not all memory. */
  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    if (!this.contains(address, lengthBytes)) return false;
    this.reach(address + lengthBytes);
    this.#reads.copy(target, targetOffset, this.#bytes, address, lengthBytes);
    return true;
  }

  /** Copies into memory. False, and nothing copied, when the range is not all memory. */
  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    if (!this.contains(address, lengthBytes)) return false;
    this.reach(address + lengthBytes);
    this.#writes.copy(this.#bytes, address, source, sourceOffset, lengthBytes);
    if (this.#watchers.length > 0) this.#notifyWatchers(address, lengthBytes);
    return true;
  }

  /** Calls `watcher` for every write to the 4 KiB page of `address`, until {@link unwatch}. */
  watch(address: number, watcher: PageWatcher): void {
    const page = address >>> pageShift;
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

  #notifyWatchers(address: number, lengthBytes: number): void {
    const last = (address + lengthBytes - 1) >>> pageShift;
    for (let page = address >>> pageShift; page <= last; page++) {
      if (this.#watchCounts[page] === 0) continue;
      for (let at = 0; at < this.#watchers.length; at++) {
        if (this.#watchedPages[at] === page) this.#watchers[at]!.pageWritten();
      }
    }
  }
}

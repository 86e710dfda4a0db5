/**
 * A host's physical memory: one SharedArrayBuffer, from physical address 0, that grows with the frames handed out and the
 * accesses of devices. Memory beyond its end has never been written and is zero.
 *
 *   root complex ── readInto / write ──┐
 *   store buffers ──────────── write ──┤── bytes ── views of the kernel and of programs
 *                                      └── watch: a write to a watched 4 KiB page wakes the spinning core
 *
 * Promises: an access that is not completely within memory does nothing and returns false, which the root complex turns into
 * Unsupported Request; a write is complete before its watchers are notified. An unwatched write costs one comparison for that.
 */
import {
  assertRange,
  BlockCopier,
  bytesPerGib,
  bytesPerMib,
  type ImagedMemory,
  InvariantError,
  log2Exact,
  type MemoryImage,
  pageBytes,
} from '../base/index.ts';

/** Notified of each write to a watched page, after the bytes are in memory. */
export interface PageWatcher {
  pageWritten(): void;
}

const pageShift = log2Exact(pageBytes);

/**
 * Memory of ended machines, zeroed, for reuse: a new allocation for each machine costs a garbage collection and new pages of
 * the kernel. All of it has one size, that of the last machines.
 */
const retired = { sizeBytes: 0, buffers: [] as SharedArrayBuffer[] };
const retiredMax = 4;
/** Memory that code outside its machine has seen, and may write at any time. */
const seenOutside = new WeakSet<SharedArrayBuffer>();

export class PhysicalMemory implements ImagedMemory {
  readonly buffer: SharedArrayBuffer;
  readonly sizeBytes: number;
  /** Views that may be kept: they follow the growing memory. Each access costs more than through {@link bytes} and {@link view}. */
  readonly followingBytes: Uint8Array;
  readonly followingView: DataView;

  /**
   * View for {@link empty}: shared memory is filled element by element, so 64 bits at a time.
   */
  readonly #followingFloats: Float64Array;
  #bytes: Uint8Array;
  #view: DataView;

  readonly #reads = new BlockCopier();
  readonly #writes = new BlockCopier();
  /** Watchers of each allocated page: 0 almost everywhere, nearly always. */
  #watchCounts: Uint8Array;
  /** Allocated pages that may hold data: 1 for each that was handed out or written by a device since it was last cleared. */
  #touched: Uint8Array;
  /** Ranges of pages that an image found in use, kept by it. */
  readonly #imaged: (readonly [first: number, end: number])[] = [];
  #isRetired = false;
  readonly #watchers: PageWatcher[] = [];
  readonly #watchedPages: number[] = [];

  /**
   * @param sizeBytes 64 MiB to 4 GiB, in whole MiB
   * @param presentBytes initially allocated bytes; default all
   */
  constructor(sizeBytes: number, presentBytes = sizeBytes) {
    assertRange('memory.sizeMib', sizeBytes / bytesPerMib, 64, (4 * bytesPerGib) / bytesPerMib);
    this.sizeBytes = sizeBytes;
    this.buffer =
      (sizeBytes === retired.sizeBytes ? retired.buffers.pop() : undefined) ??
      new SharedArrayBuffer(presentBytes, { maxByteLength: sizeBytes });
    if (this.buffer.byteLength < presentBytes) this.buffer.grow(presentBytes);
    this.followingBytes = new Uint8Array(this.buffer);
    this.followingView = new DataView(this.buffer);
    this.#followingFloats = new Float64Array(this.buffer);
    this.#bytes = new Uint8Array(this.buffer, 0, this.buffer.byteLength);
    this.#view = new DataView(this.buffer, 0, this.buffer.byteLength);
    const pageCount = this.#bytes.length / pageBytes;
    this.#watchCounts = new Uint8Array(pageCount);
    this.#touched = new Uint8Array(pageCount);
  }

  /** Memory allocated so far: get it again after frames have been handed out. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Like {@link bytes}. */
  get view(): DataView {
    return this.#view;
  }

  /** Ensures that memory is allocated up to the address `end`. */
  reach(end: number): void {
    if (end > this.#bytes.length) this.#grow(end);
  }

  #grow(end: number): void {
    if (this.#isRetired) throw new InvariantError('physical memory', 'retired', 'of a machine that is open');
    const neededBytes = Math.ceil(end / pageBytes) * pageBytes;
    const presentBytes = Math.min(this.sizeBytes, Math.max(neededBytes, 2 * this.#bytes.length));
    // It may already be allocated, if an earlier state was restored.
    if (presentBytes > this.buffer.byteLength) this.buffer.grow(presentBytes);
    this.#bytes = new Uint8Array(this.buffer, 0, presentBytes);
    this.#view = new DataView(this.buffer, 0, presentBytes);
    const pageCount = presentBytes / pageBytes;
    this.#watchCounts = extended(this.#watchCounts, pageCount);
    this.#touched = extended(this.#touched, pageCount);
  }

  /** Software may write to these pages, through {@link bytes} and {@link view}: frames are handed out, or memory is exposed. */
  touch(firstPage: number, pageCount: number): void {
    this.#touched.fill(1, firstPage, firstPage + pageCount);
  }

  /** These zero pages now belong to a device, which writes only by {@link write}. */
  leaveToDevice(firstPage: number, pageCount: number): void {
    if (seenOutside.has(this.buffer)) return;
    this.#touched.fill(0, firstPage, firstPage + pageCount);
  }

  /** Zeroes allocated pages. */
  empty(firstPage: number, endPage: number): void {
    const wordsOfPage = pageBytes / Float64Array.BYTES_PER_ELEMENT;
    this.#followingFloats.fill(0, firstPage * wordsOfPage, endPage * wordsOfPage);
  }

  /** Code outside the machine reads all of memory, may write it, and may do so after the machine has ended. */
  seeAll(): void {
    this.reach(this.sizeBytes);
    this.touch(0, this.#touched.length);
    seenOutside.add(this.buffer);
  }

  /** The machine no longer uses this memory: touched parts are zeroed, and the next machine of its size reuses it. */
  retire(): void {
    if (seenOutside.has(this.buffer) || this.#isRetired) return;
    for (const [first, end] of this.#imaged) this.touch(first, end - first);
    for (const [first, end] of runsOf(this.#touched)) this.empty(first, end);
    if (this.sizeBytes !== retired.sizeBytes) {
      retired.sizeBytes = this.sizeBytes;
      retired.buffers.length = 0;
    }
    if (retired.buffers.length < retiredMax) retired.buffers.push(this.buffer);
    this.#isRetired = true;
    this.#bytes = new Uint8Array(0);
    this.#view = new DataView(new ArrayBuffer(0));
  }

  /** See ImagedMemory: saves only pages that may hold data; a restore empties pages that were filled later. */
  imageOfMemory(): MemoryImage {
    const found = runsOf(this.#touched);
    this.#imaged.push(...found);
    const runs = found.map(([first, end]) => {
      const at = first * pageBytes;
      return { at, content: this.followingBytes.slice(at, end * pageBytes) };
    });
    this.#touched.fill(0);
    return {
      restore: () => {
        if (seenOutside.has(this.buffer)) this.seeAll();
        for (const [first, end] of runsOf(this.#touched)) this.empty(first, end);
        this.#touched.fill(0);
        for (const { at, content } of runs) this.followingBytes.set(content, at);
      },
    };
  }

  /** Whether [address, address + lengthBytes) lies in memory. */
  contains(address: number, lengthBytes: number): boolean {
    return address >= 0 && address + lengthBytes <= this.sizeBytes;
  }

  /** Copies from memory into `target`. Returns false, and copies nothing, if the range is not completely in memory. */
  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    if (!this.contains(address, lengthBytes)) return false;
    this.reach(address + lengthBytes);
    this.#reads.copy(target, targetOffset, this.#bytes, address, lengthBytes);
    return true;
  }

  /** Copies into memory. Returns false, and copies nothing, if the range is not completely in memory. */
  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    if (!this.contains(address, lengthBytes)) return false;
    this.reach(address + lengthBytes);
    this.#writes.copy(this.#bytes, address, source, sourceOffset, lengthBytes);
    const firstPage = address >>> pageShift;
    const lastPage = (address + lengthBytes - 1) >>> pageShift;
    this.#touched[firstPage] = 1;
    this.#touched[lastPage] = 1;
    if (lastPage > firstPage + 1) this.touch(firstPage, lastPage - firstPage);
    if (this.#watchers.length > 0) this.#notifyWatchers(address, lengthBytes);
    return true;
  }

  /** Calls `watcher` for every write to the 4 KiB page of `address`, until {@link unwatch}; does nothing beyond memory. */
  watch(address: number, watcher: PageWatcher): void {
    if (!this.contains(address, 1)) return;
    const page = address >>> pageShift;
    this.reach((page + 1) * pageBytes);
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

  /** Active watches. */
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

function extended(counts: Uint8Array, count: number): Uint8Array {
  const longer = new Uint8Array(count);
  longer.set(counts);
  return longer;
}

/** A run of marked pages: the first, and the one after the last. */
function runsOf(marks: Uint8Array): (readonly [first: number, end: number])[] {
  const runs: [number, number][] = [];
  for (let first = marks.indexOf(1); first >= 0; ) {
    const next = marks.indexOf(0, first);
    const end = next < 0 ? marks.length : next;
    runs.push([first, end]);
    first = marks.indexOf(1, end);
  }
  return runs;
}

/**
 * A file, or the object under shared anonymous memory (shmem): its pages in memory by index, and its contents on the device.
 *
 * Pages of a file are the page cache: present at most once, shared by all mappings, written back when dirty, and reclaimed. An
 * object of shared memory has no device: its pages are written to swap.
 */
import { type Picoseconds, psPerUs } from '../../base/index.ts';
import { pageBytes } from './page.ts';

const none = -1;

export class MemoryFile {
  readonly name: string;
  readonly sizeBytes: number;
  /** Contents on the device; undefined for shared memory. */
  readonly stored: Uint8Array | undefined;
  /** Areas that map it, and handles that keep it: at 0, shared memory is freed. */
  users = 0;
  /** Frame of each page in memory. */
  readonly frames: Int32Array;
  /** Shared memory: swap slot of each page that was written out. */
  readonly slots: Int32Array;
  /** Instants from which pages being read can be used, in the epoch that began at #readyUs. */
  readonly #readyPs: Float64Array;
  #readyUs = 0;

  constructor(name: string, sizeBytes: number, content: Uint8Array | undefined) {
    this.name = name;
    this.sizeBytes = sizeBytes;
    const pageCount = Math.ceil(sizeBytes / pageBytes);
    this.frames = new Int32Array(pageCount).fill(none);
    this.slots = new Int32Array(pageCount).fill(none);
    this.#readyPs = new Float64Array(pageCount);
    this.stored = content;
  }

  /** Shared memory instead of a file. */
  get isShared(): boolean {
    return this.stored === undefined;
  }

  /** Instant from which a page can be used, in the epoch that begins at `epochUs`. */
  readyPsOf(page: number, epochUs: number): number {
    return this.#readyPs[page]! - (epochUs - this.#readyUs) * psPerUs;
  }

  /** The page can be used from `readyPs` on. */
  setReady(page: number, readyPs: Picoseconds, epochUs: number): void {
    if (epochUs !== this.#readyUs) {
      for (let other = 0; other < this.#readyPs.length; other++)
        this.#readyPs[other] = this.readyPsOf(other, epochUs);
      this.#readyUs = epochUs;
    }
    this.#readyPs[page] = readyPs;
  }

  get pageCount(): number {
    return this.frames.length;
  }
}

/** A new object of shared memory. */
export function newSharedMemory(sizeBytes: number): MemoryFile {
  return new MemoryFile('shared memory', sizeBytes, undefined);
}

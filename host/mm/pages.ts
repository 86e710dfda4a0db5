/** State that the kernel keeps for each frame besides its references (struct page): its page, and that page's state. */
import { FrameTable } from './frame-table.ts';
import type { MemoryFile } from './memory-file.ts';

/** Holds a page of anonymous memory (PageAnon). */
export const pageAnonymous = 1;
/** Belongs to one process alone: may be written, and pinned, without a copy (PageAnonExclusive). */
export const pageExclusive = 2;
/** Flag of a page seen referenced in an earlier scan (PG_referenced): the second chance. */
export const pageReferenced = 4;
/** Differs from its copy in swap or in the file. */
export const pageDirty = 8;
/** Being written to a device. */
export const pageWriteback = 16;
/** Must stay in memory: queue buffers (VM_LOCKED). */
export const pageStable = 32;

export class Pages {
  readonly #flags = new FrameTable();
  readonly #files = new Map<number, { readonly file: MemoryFile; readonly index: number }>();

  has(frame: number, flag: number): boolean {
    return (this.#flags.of(frame) & flag) !== 0;
  }

  set(frame: number, flags: number): void {
    this.#flags.set(frame, this.#flags.of(frame) | flags);
  }

  clear(frame: number, flags: number): void {
    this.#flags.set(frame, this.#flags.of(frame) & ~flags);
  }

  flagsOf(frame: number): number {
    return this.#flags.of(frame);
  }

  /** Resets the state of a frame that is handed out again. */
  start(frame: number, flags: number): void {
    this.#flags.set(frame, flags);
  }

  /** The file page that a frame holds. */
  fileOf(frame: number): { readonly file: MemoryFile; readonly index: number } | undefined {
    return this.#files.get(frame);
  }

  setFile(frame: number, file: MemoryFile, index: number): void {
    this.#files.set(frame, { file, index });
  }

  clearFile(frame: number): void {
    this.#files.delete(frame);
  }
}

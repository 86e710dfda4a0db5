/**
 * Listeners called before translations of a process are removed: registration caches, on-demand paging (mmu_notifier).
 *
 * A listener is notified of the range before the page table changes. A listener whose device needs time to release pages
 * reports those that it holds: synchronous reclaim skips them, since it cannot wait for a device.
 */
import type { MemoryStatistics } from './memory-statistics.ts';

/** munmap and mremap; a page replaced or reclaimed; rights withdrawn; the end of the process. */
export type InvalidateReason = 'unmap' | 'clear' | 'protect' | 'release';

export interface InvalidationListener {
  /** Translations of [start, end) are about to change. */
  invalidate(start: number, end: number, reason: InvalidateReason): void;
  /** Whether a device may still reach this page. Absent: never. */
  holds?(page: number): boolean;
  /** Reclaim wants a held page, and skips it: the listener may make its device release it. */
  wanted?(page: number): void;
}

export class NotifierList {
  readonly #counts: MemoryStatistics;
  readonly #listeners: InvalidationListener[] = [];

  constructor(counts: MemoryStatistics) {
    this.#counts = counts;
  }

  add(listener: InvalidationListener): () => void {
    this.#listeners.push(listener);
    return () => {
      const at = this.#listeners.indexOf(listener);
      if (at >= 0) this.#listeners.splice(at, 1);
    };
  }

  invalidate(start: number, end: number, reason: InvalidateReason): void {
    if (this.#listeners.length === 0) return;
    this.#counts.invalidations++;
    for (const listener of [...this.#listeners]) listener.invalidate(start, end, reason);
  }

  /** Whether a device may reach the page; its holder is notified that it is wanted. */
  askFor(page: number): boolean {
    let isHeld = false;
    for (const listener of [...this.#listeners]) {
      if (listener.holds?.(page) !== true) continue;
      isHeld = true;
      listener.wanted?.(page);
    }
    return isHeld;
  }

  isHeld(page: number): boolean {
    return this.#listeners.some((listener) => listener.holds?.(page) === true);
  }
}

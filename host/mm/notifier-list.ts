/**
 * Listeners called before translations of a process go away: registration caches, on-demand paging (mmu_notifier).
 *
 * A listener is notified of the range before the page table changes. One whose device takes time to let pages go says which
 * ones it holds: reclaim in place passes those over, since it cannot wait for a device.
 */
import type { MemoryStatistics } from './memory-statistics.ts';

/** munmap and mremap; a page replaced or taken; rights withdrawn; the end of the process. */
export type InvalidateReason = 'unmap' | 'clear' | 'protect' | 'release';

export interface InvalidationListener {
  /** Translations of [start, end) are about to change. */
  invalidate(start: number, end: number, reason: InvalidateReason): void;
  /** Whether a device may still reach this page. Absent: never. */
  holds?(page: number): boolean;
  /** Reclaim would take a page that is held, and passes it over: the listener may have its device let it go. */
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

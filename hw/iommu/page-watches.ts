/**
 * Watches of device pages, for monitors of the model (pcie/root-complex/word-monitor.ts): of the frame to which a page is
 * mapped, and of the tables of that mapping.
 *
 *     device page ─► table of level 4 ─► 3 ─► 2 ─► 1 ─► frame      a write to any of them notifies the watcher
 *
 * No card has such a wire, so it has no side effects: no IOTLB entry, no count, no fault. After a notification the watcher sets
 * its watch again, and so follows its page through all mappings.
 */
import { entryReadable, iommuPageBytes, levelCount } from '../../abi/index.ts';
import type { HostMemory, MemoryWatcher } from '../pcie/index.ts';
import type { PageWalker } from './page-walker.ts';

const NOWHERE = -1;

export interface PageWatchesPorts {
  readonly walker: Pick<PageWalker, 'peek' | 'frame' | 'rights'>;
}

export class PageWatches {
  readonly #memory: HostMemory;
  readonly #watchers = new Set<MemoryWatcher>();
  readonly #tables: number[] = [];
  #walker!: PageWatchesPorts['walker'];

  constructor({ memory }: { readonly memory: HostMemory }) {
    this.#memory = memory;
  }

  connect({ walker }: PageWatchesPorts): void {
    this.#walker = walker;
  }

  /** See HostMemory.peek: the bytes are within one page. */
  peek(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    const physical = this.physicalOf(address);
    if (physical < 0) return false;
    const { peek } = this.#memory;
    if (peek === undefined) return this.#memory.readInto(physical, lengthBytes, target, targetOffset);
    return peek.call(this.#memory, physical, lengthBytes, target, targetOffset);
  }

  /** Physical address of a byte that the device may read; -1: it may not. */
  physicalOf(address: number): number {
    return this.#find(address) ? this.#walker.frame + (address % iommuPageBytes) : NOWHERE;
  }

  /** See HostMemory.watch. */
  watch(address: number, watcher: MemoryWatcher): void {
    this.#watchers.add(watcher);
    const isReadable = this.#find(address);
    for (const table of this.#tables) this.#memory.watch?.(table, watcher);
    if (isReadable) this.#memory.watch?.(this.#walker.frame, watcher);
  }

  /** See HostMemory.unwatch. */
  unwatch(watcher: MemoryWatcher): void {
    this.#watchers.delete(watcher);
    for (let left = levelCount + 1; left > 0; left--) this.#memory.unwatch?.(watcher);
  }

  /** Another root table changes the mapping of all pages. */
  rootChanged(): void {
    for (const watcher of this.#watchers) watcher.pageWritten();
  }

  #find(address: number): boolean {
    this.#tables.length = 0;
    const isMapped = this.#walker.peek(Math.floor(address / iommuPageBytes), this.#tables);
    return isMapped && (this.#walker.rights & entryReadable) !== 0;
  }
}

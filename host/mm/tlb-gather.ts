/**
 * Removed translations, gathered so that one shootdown serves them all (struct mmu_gather).
 *
 *     change entries, add(page) … finish(): own core flushes; each other core that ran the process is interrupted once
 *
 * After finish returns, the other cores' TLBs no longer hold the pages; the initiator is charged the wait, the other cores the
 * handler.
 */
import type { AddressSpace } from './address-space.ts';
import type { MemoryManager } from './memory-manager.ts';
import { pageNumberOf } from './page.ts';

export class TlbGather {
  readonly #mm: MemoryManager;
  readonly #space: AddressSpace;
  readonly #pages: number[] = [];
  #count = 0;

  constructor(mm: MemoryManager, space: AddressSpace) {
    this.#mm = mm;
    this.#space = space;
  }

  /** The entry of a page has been cleared or has lost rights. */
  add(address: number): void {
    if (this.#count++ < this.#mm.config.tlb.flushAllPages) this.#pages.push(pageNumberOf(address));
  }

  /** More entries have changed than are worth listing: the whole address space is flushed. */
  addAll(): void {
    this.#count = this.#mm.config.tlb.flushAllPages + 1;
  }

  /** Flushes the gathered pages. */
  finish(): void {
    if (this.#count === 0) return;
    const { platform, config, counts, tlbs } = this.#mm;
    const own = platform.runningCore();
    const isWhole = this.#count > config.tlb.flushAllPages;
    const others: number[] = [];
    for (const core of this.#space.cores) {
      if (isWhole) tlbs[core]!.dropSpace(this.#space.id);
      else for (const page of this.#pages) tlbs[core]!.drop(this.#space.id, page);
      if (core !== own) others.push(core);
    }
    // A core that is flushed completely is not interrupted again for the process until it has run it again.
    if (isWhole) for (const core of others) this.#space.cores.delete(core);
    if (own >= 0) {
      counts.tlbFlushes++;
      platform.charge('memory', config.tlb.flushPageCycles * (isWhole ? 1 : this.#pages.length));
    }
    if (own >= 0 && others.length > 0) {
      counts.shootdowns += others.length;
      platform.charge('memory', config.tlb.shootdownCycles);
      platform.interruptCores(
        others.toSorted((left, right) => left - right),
        config.tlb.shootdownHandlerCycles,
      );
    }
    this.#pages.length = 0;
    this.#count = 0;
  }
}

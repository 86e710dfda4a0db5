/**
 * The part of a post that the threads of a process pass one after another: a lock of the library, and the registers of
 * the device context that they share.
 *
 *     thread 0   ── post ──▶ store │ flight of the message …
 *     section              ├───── busy ─────┤├───── busy ─────┤
 *     thread 1        ── post ── waits ────▶ store │ flight …
 *
 * The store that announces a request leaves at the beginning of its turn; the rest of the turn delays later posts only.
 * Posts have their turns in the order in which they begin. A turn is longer the more threads the process has, as the
 * line of a spin lock is read again by each of them.
 */
import type { Cycles } from '../base/index.ts';
import type { CostConfig } from './host-parameters.ts';

/** Costs of a turn. */
export type PostSectionCosts = Pick<CostConfig, 'postSection' | 'postSectionPerThread'>;

/** A thread, by the own time of its core. */
interface PostingThread {
  readonly core: { readonly localCycle: Cycles };
}

export class PostSection {
  readonly #costs: PostSectionCosts;
  /** Cycle from which the next post may have its turn. */
  #freeCycle: Cycles = Number.NEGATIVE_INFINITY;

  constructor(costs: PostSectionCosts) {
    this.#costs = costs;
  }

  /**
   * Takes the turn of a post that has `cycles` left before its store.
   * @param threadCount threads of the process
   * @returns cycles that the thread waits
   */
  enter({ core }: PostingThread, cycles: Cycles, threadCount: number): Cycles {
    const arrivalCycle = core.localCycle + cycles;
    const beginCycle = Math.max(arrivalCycle, this.#freeCycle);
    this.#freeCycle = beginCycle + this.#costs.postSection + this.#costs.postSectionPerThread * threadCount;
    return beginCycle - arrivalCycle;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(cycles: Cycles): void {
    this.#freeCycle -= cycles;
  }
}

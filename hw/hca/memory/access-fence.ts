/**
 * Reports when memory can no longer be reached by translations that have been forgotten: accesses to payload that were begun
 * before have ended. Only an atomic keeps a physical address between its two accesses, so it is waited for as a whole.
 */
import { TrafficClass } from '../../dma/index.ts';
import { DmaFence } from './dma-fence.ts';
import type { DmaReads, DmaWrites } from './dma-ports.ts';

export interface AccessFencePorts {
  readonly responses: {
    /** True while the memory of an atomic is being read or written. */
    readonly isInAtomic: boolean;
    /** Atomics executed. */
    readonly atomicCount: number;
  };
}

export class AccessFence {
  readonly #payload: DmaFence;
  #responses!: AccessFencePorts['responses'];
  #isInAtomic = false;
  #atomicsBefore = 0;

  constructor(reads: DmaReads, writes: DmaWrites) {
    const { payloadRead, payloadWrite } = TrafficClass;
    this.#payload = new DmaFence(reads, writes, [payloadRead, payloadWrite]);
  }

  connect({ responses }: AccessFencePorts): void {
    this.#responses = responses;
  }

  /** Begins to wait for the accesses that are under way now. */
  begin(): void {
    this.#payload.begin();
    this.#isInAtomic = this.#responses.isInAtomic;
    this.#atomicsBefore = this.#responses.atomicCount;
  }

  /** True when it has. */
  isPassed(): boolean {
    if (!this.#responses.isInAtomic || this.#responses.atomicCount !== this.#atomicsBefore)
      this.#isInAtomic = false;
    return !this.#isInAtomic && this.#payload.isPassed;
  }
}

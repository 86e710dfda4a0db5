/**
 * Decides which of the waiting requesters goes next. A grant is one TLP.
 *
 * - roundRobin: the first waiting requester behind the one served last.
 * - strictPriority: the waiting requester that was added first.
 * - weighted: as roundRobin, but a requester keeps its turn for up to `weight` TLPs while it has some.
 */
import type { DmaConfig } from './parameters.ts';

export type ArbitrationPolicy = DmaConfig['readArbitration'];

/** Requesters are bits of a 32-bit mask whose sign stays free. */
export const REQUESTER_COUNT_MAX = 31;

export class Arbiter {
  readonly #policy: ArbitrationPolicy;
  readonly #weights: number[] = [];
  #last = -1;
  #turnsLeft = 0;

  constructor(policy: ArbitrationPolicy) {
    this.#policy = policy;
  }

  addRequester(weight: number): void {
    this.#weights.push(weight);
  }

  /** Grants one TLP to one of the requesters in `waitingMask`, which is not empty. */
  grant(waitingMask: number): number {
    if (this.#policy === 'strictPriority') return lowestBit(waitingMask);
    if (this.#turnsLeft > 0 && (waitingMask >> this.#last) & 1) {
      this.#turnsLeft--;
      return this.#last;
    }
    const behind = waitingMask & (-1 << (this.#last + 1));
    this.#last = lowestBit(behind === 0 ? waitingMask : behind);
    if (this.#policy === 'weighted') this.#turnsLeft = this.#weights[this.#last]! - 1;
    return this.#last;
  }

  reset(): void {
    this.#last = -1;
    this.#turnsLeft = 0;
  }
}

function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

/**
 * Selects the next of the waiting requesters. A grant is one TLP.
 *
 * - roundRobin: the first waiting requester after the one served last.
 * - strictPriority: the waiting requester that was added first.
 * - weighted: as roundRobin, but a requester keeps its turn for up to `weight` TLPs, if it has that many.
 * - wholeRequest: as roundRobin, but a requester keeps its turn until its request is sent.
 */
import type { BlockState } from '../../sim/index.ts';
import type { DmaConfig } from './parameters.ts';

export type ArbitrationPolicy = DmaConfig['readArbitration'];

/** Requesters are bits of a 32-bit mask whose sign bit stays clear. */
export const REQUESTER_COUNT_MAX = 31;

export class Arbiter {
  readonly #isStrict: boolean;
  readonly #isWeighted: boolean;
  readonly #isByRequest: boolean;
  readonly #weights: number[] = [];
  #last = -1;
  #turnsLeft = 0;

  constructor(policy: ArbitrationPolicy) {
    this.#isStrict = policy === 'strictPriority';
    this.#isWeighted = policy === 'weighted';
    this.#isByRequest = policy === 'wholeRequest';
  }

  addRequester(weight: number): void {
    this.#weights.push(weight);
  }

  /** Grants one TLP to one of the requesters in `waitingMask`, which is not empty. */
  grant(waitingMask: number): number {
    if (this.#isStrict) return lowestBit(waitingMask);
    const last = this.#last;
    if (this.#turnsLeft > 0 && (waitingMask >> last) & 1) {
      this.#turnsLeft--;
      return last;
    }
    const behind = waitingMask & (-1 << (last + 1));
    const next = lowestBit(behind === 0 ? waitingMask : behind);
    this.#last = next;
    if (this.#isWeighted) this.#turnsLeft = this.#weights[next]! - 1;
    return next;
  }

  /** The granted TLP was sent: whether parts of its request are left. */
  sent(isRequestLeft: boolean): void {
    if (this.#isByRequest) this.#turnsLeft = isRequestLeft ? 1 : 0;
  }

  reset(): void {
    this.#last = -1;
    this.#turnsLeft = 0;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { last: this.#last, turnsLeft: this.#turnsLeft };
  }
}

function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

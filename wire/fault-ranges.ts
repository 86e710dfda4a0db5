/**
 * Ranges of packet numbers with a fault. A packet costs one comparison with {@link FaultRanges.next}, for any number of packets
 * in a range; a packet with a fault costs a pass over the ranges.
 */
import { assertRange, NEVER } from '../base/index.ts';

interface FaultRange {
  readonly first: number;
  readonly last: number;
  readonly value: number;
}

export class FaultRanges {
  /** The next packet with a fault, or Infinity. */
  next = NEVER;
  readonly #ranges: FaultRange[] = [];

  /**
   * The packets from `first` to `last`, both included, have a fault with a nonzero value. `last` may be Infinity.
   * @throws InvariantError for numbers below 1 or out of order
   */
  add(first: number, last: number, value: number): void {
    assertRange('first packet of a fault', first, 1, Number.MAX_SAFE_INTEGER);
    if (last !== NEVER) assertRange('last packet of a fault', last, first, Number.MAX_SAFE_INTEGER);
    this.#ranges.push({ first, last, value });
    if (first < this.next) this.next = first;
  }

  /** Value of this packet's fault, 0 without a fault. If several ranges contain it, the one added last counts. */
  valueOf(packet: number): number {
    return this.#ranges.findLast(({ first, last }) => packet >= first && packet <= last)?.value ?? 0;
  }

  /** This packet and all before it were sent. */
  passed(packet: number): void {
    this.next = NEVER;
    for (const { first, last } of this.#ranges) {
      const next = Math.max(first, packet + 1);
      if (next <= last && next < this.next) this.next = next;
    }
  }
}

/**
 * Open PSNs of many flows, each an interval on the circle of 2^24 PSNs. Finds the flow if exactly one has a PSN open.
 *
 * A Fenwick tree over the PSNs that stores only nonzero nodes. The value of a flow is a large number and unique to the
 * flow, so that a sum of values gives the number of its flows, and identifies a single flow. A search and a change need
 * 24 steps for any number of flows. Source: Fenwick, 1994.
 */
import { psnAdd } from '../../wire/index.ts';

/** PSNs that a requester may have outstanding, 9.7.2. */
export const OPEN_PSNS_MAX = 2 ** 23 - 1;
const PSNS = 2 ** 24;

/** Numbers of flows are smaller than 2^17, so the sum of all of them is smaller than this bound. */
const ONE_FLOW = 2 ** 34;

/** PSNs from `first` on. */
export interface OpenRange {
  readonly first: number;
  readonly count: number;
}

/** No flow has the PSN open, exactly one has, or several have. */
export type OpenFlow = number | 'none' | 'several';

export class OpenPsns {
  readonly #sums = new Map<number, number>();

  /** @param flow a number below 2^17 */
  add(flow: number, { first, count }: OpenRange): void {
    this.#change(first, count, ONE_FLOW + flow);
  }

  /** Removes a range that was added. */
  remove(flow: number, { first, count }: OpenRange): void {
    this.#change(first, count, -(ONE_FLOW + flow));
  }

  /** Returns the number of the only flow that has `psn` open. */
  flowAt(psn: number): OpenFlow {
    let sum = 0;
    for (let node = psn + 1; node > 0; node -= node & -node) sum += this.#sums.get(node) ?? 0;
    if (sum === 0) return 'none';
    return sum < 2 * ONE_FLOW ? sum - ONE_FLOW : 'several';
  }

  #change(first: number, count: number, value: number): void {
    if (count <= 0) return;
    const end = psnAdd(first, count);
    this.#step(first, value);
    this.#step(end, -value);
    // The range crosses the end of the circle.
    if (end < first) this.#step(0, value);
  }

  /** Adds to all sums from `psn` on. */
  #step(psn: number, value: number): void {
    for (let node = psn + 1; node <= PSNS; node += node & -node) {
      const sum = (this.#sums.get(node) ?? 0) + value;
      if (sum === 0) this.#sums.delete(node);
      else this.#sums.set(node, sum);
    }
  }
}

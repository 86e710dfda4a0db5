/**
 * Results of the last atomics of each QP, from which a repeated atomic is answered: it must not be executed again
 * (IBTA vol 1, 9.4.5, 9.7.5.1.4). As many are kept as the QP can have outstanding (`responderAtomicResults`, or the QP's
 * responder resources if those are more). A QP that has executed none takes no memory.
 */
import type { QpSlot } from '../../objects/index.ts';

const NO_PSN = -1;

/** Results kept for one QP: a ring. */
class KeptResults {
  readonly psn: Int32Array;
  readonly words: Int32Array;
  next = 0;

  constructor(count: number) {
    this.psn = new Int32Array(count).fill(NO_PSN);
    this.words = new Int32Array(count * 2);
  }
}

export class AtomicResults {
  /** The result that {@link find} found. */
  low = 0;
  high = 0;
  readonly #keptPerQp: number;
  readonly #byQp = new Map<number, KeptResults>();

  /** @param keptPerQp results kept of a QP at least */
  constructor(keptPerQp: number) {
    this.#keptPerQp = keptPerQp;
  }

  /** A new generation of the QP: no result is kept. */
  forget(qp: QpSlot): void {
    this.#byQp.delete(qp);
  }

  /** Reset: no result is kept. */
  reset(): void {
    this.#byQp.clear();
  }

  /** Keeps a result of a QP that can have `outstandingMax` outstanding, in the place of the oldest. */
  keep(qp: QpSlot, outstandingMax: number, psn: number, low: number, high: number): void {
    let results = this.#byQp.get(qp);
    if (results === undefined) {
      results = new KeptResults(Math.max(this.#keptPerQp, outstandingMax));
      this.#byQp.set(qp, results);
    }
    const at = results.next;
    results.psn[at] = psn;
    results.words[at * 2] = low;
    results.words[at * 2 + 1] = high;
    results.next = (at + 1) % results.psn.length;
  }

  /** Finds the result of the atomic with this PSN. False when it is no longer kept. */
  find(qp: QpSlot, psn: number): boolean {
    const results = this.#byQp.get(qp);
    if (results === undefined) return false;
    const at = results.psn.indexOf(psn);
    if (at < 0) return false;
    this.low = results.words[at * 2]!;
    this.high = results.words[at * 2 + 1]!;
    return true;
  }
}

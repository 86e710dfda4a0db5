/**
 * Results of the last atomics of each QP, from which a repeated atomic is answered: it must not be executed again
 * (IBTA vol 1, 9.4.5, 9.7.5.1.4). As many are kept as the QP can have outstanding (`responderAtomicResults`).
 */
const NO_PSN = -1;

export class AtomicResults {
  /** The result that {@link find} found. */
  low = 0;
  high = 0;
  readonly #kept: number;
  /** By QP and place. */
  readonly #psn: Int32Array;
  readonly #words: Int32Array;
  readonly #next: Uint8Array;

  constructor(qpCount: number, keptPerQp: number) {
    this.#kept = keptPerQp;
    this.#psn = new Int32Array(qpCount * keptPerQp).fill(NO_PSN);
    this.#words = new Int32Array(qpCount * keptPerQp * 2);
    this.#next = new Uint8Array(qpCount);
  }

  /** A new life of the QP: no result is kept. */
  forget(qp: number): void {
    this.#psn.fill(NO_PSN, qp * this.#kept, (qp + 1) * this.#kept);
    this.#next[qp] = 0;
  }

  /** Keeps a result in the place of the oldest. */
  keep(qp: number, psn: number, low: number, high: number): void {
    const at = qp * this.#kept + this.#next[qp]!;
    this.#psn[at] = psn;
    this.#words[at * 2] = low;
    this.#words[at * 2 + 1] = high;
    this.#next[qp] = (this.#next[qp]! + 1) % this.#kept;
  }

  /** Looks for the result of the atomic with this PSN. False when it is no longer kept. */
  find(qp: number, psn: number): boolean {
    for (let at = qp * this.#kept; at < (qp + 1) * this.#kept; at++) {
      if (this.#psn[at] !== psn) continue;
      this.low = this.#words[at * 2]!;
      this.high = this.#words[at * 2 + 1]!;
      return true;
    }
    return false;
  }
}

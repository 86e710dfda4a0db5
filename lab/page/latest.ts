/**
 * Tracks which answers are still wanted: of several successive questions, only the last one's answer counts. An answer
 * carries the number of its question and is dropped if a later question was asked.
 */
export class Latest {
  #number = 0;

  /** Drops the answers to all earlier questions. */
  drop(): void {
    this.#number++;
  }

  /** Returns a test of whether no other question was asked since this call. */
  begin(): () => boolean {
    const number = ++this.#number;
    return () => number === this.#number;
  }
}

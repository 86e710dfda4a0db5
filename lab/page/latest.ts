/**
 * Answers that are still wanted: of several questions, one after the other, only the last one's answer counts. An answer carries the
 * number of its question, and is dropped when another has been asked since.
 */
export class Latest {
  #number = 0;

  /** Drops the answers to everything asked so far. */
  drop(): void {
    this.#number++;
  }

  /** A test whether nothing else has been asked since this call. */
  begin(): () => boolean {
    const number = ++this.#number;
    return () => number === this.#number;
  }
}

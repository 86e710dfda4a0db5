/** The path between the link and on-chip memory, as wide in either direction: so many bytes per cycle. */
export class DmaDataPath {
  readonly #bytes: number;
  readonly #cyclesPerByte: number;
  /** Of the length asked for last, since most are alike. */
  #lastBytes = 1;
  #lastCycles = 1;

  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#cyclesPerByte = 1 / bytes;
  }

  /**
   * Cycles for which so many bytes occupy it, at least 1. The quotient rounded up: a remainder is at least one byte, so half a
   * byte sets off what rounding of floats does.
   */
  cyclesOf(bytes: number): number {
    if (bytes === this.#lastBytes) return this.#lastCycles;
    const cycles = bytes <= this.#bytes ? 1 : ((bytes - 0.5) * this.#cyclesPerByte + 1) | 0;
    this.#lastBytes = bytes;
    this.#lastCycles = cycles;
    return cycles;
  }
}

/** The path between the link and on-chip memory; its width in either direction is this number of bytes per cycle. */
export class DmaDataPath {
  readonly #bytes: number;
  readonly #cyclesPerByte: number;
  /** Cycles of the last length, since most are alike. */
  #lastBytes = 1;
  #lastCycles = 1;

  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#cyclesPerByte = 1 / bytes;
  }

  /**
   * Cycles for which this number of bytes occupies it, at least 1. The quotient is rounded up: a remainder is at least one
   * byte, so half a byte offsets floating-point rounding.
   */
  cyclesOf(bytes: number): number {
    if (bytes === this.#lastBytes) return this.#lastCycles;
    const cycles = bytes <= this.#bytes ? 1 : ((bytes - 0.5) * this.#cyclesPerByte + 1) | 0;
    this.#lastBytes = bytes;
    this.#lastCycles = cycles;
    return cycles;
  }
}

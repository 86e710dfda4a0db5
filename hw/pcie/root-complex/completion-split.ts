/** Splits a read's data into completions: each as long as possible, and ending at a boundary unless the read ends before. */
import type { BusAddress } from '../../../base/index.ts';

export class CompletionSplit {
  readonly #bytesMax: number;
  readonly #boundaryMask: number;

  /** @param boundaryBytes a power of two */
  constructor(bytesMax: number, boundaryBytes: number) {
    this.#bytesMax = bytesMax;
    this.#boundaryMask = boundaryBytes - 1;
  }

  /** Bytes of the next completion. */
  bytesOf(address: BusAddress, remainingBytes: number): number {
    const bytes = this.#bytesMax - ((address + this.#bytesMax) & this.#boundaryMask);
    return bytes < remainingBytes ? bytes : remainingBytes;
  }
}

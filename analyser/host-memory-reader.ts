/** Host memory as the analyser sees it: read-only; it may end anywhere. */
import type { HostMemory } from '../hw/pcie/index.ts';

export interface MemoryReader {
  /** A copy of the bytes, or undefined if part of the range is not memory that the device can reach. */
  read(address: number, lengthBytes: number): Uint8Array | undefined;
}

/** The memory that a root complex offers its device. */
export class HostMemoryReader implements MemoryReader {
  readonly #memory: Pick<HostMemory, 'readInto'>;

  constructor(memory: Pick<HostMemory, 'readInto'>) {
    this.#memory = memory;
  }

  read(address: number, lengthBytes: number): Uint8Array | undefined {
    const bytes = new Uint8Array(lengthBytes);
    return this.#memory.readInto(address, lengthBytes, bytes, 0) ? bytes : undefined;
  }
}

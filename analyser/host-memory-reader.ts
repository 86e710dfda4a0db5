/** Host memory as the analyser sees it: read only, and it may end anywhere. */
import type { HostMemory } from '../hw/pcie/index.ts';

export interface MemoryReader {
  /** A copy of the bytes, or undefined where (part of) the range is no memory that the device could reach. */
  read(address: number, lengthBytes: number): Uint8Array | undefined;
}

/** The memory that a root complex gives to its device. */
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

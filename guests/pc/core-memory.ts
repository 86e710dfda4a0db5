/**
 * A PC's memory as the device reaches it: in place, in v86's own. A write may change code that v86 has compiled, which it is
 * told first.
 */
import type { GuestMemory, MemoryRegion } from '../slot/index.ts';
import type { CoreCpu } from './core.ts';

export class CoreMemory implements GuestMemory {
  readonly sizeBytes: number;
  readonly regions: readonly MemoryRegion[];
  readonly #cpu: CoreCpu;
  readonly #faults: { readonly isRemoved: boolean };

  /** @param faults of the function, which reaches no memory once it is removed */
  constructor(cpu: CoreCpu, faults: { readonly isRemoved: boolean }) {
    this.#cpu = cpu;
    this.#faults = faults;
    this.sizeBytes = cpu.mem8.length;
    this.regions = [
      { address: 0, sizeBytes: this.sizeBytes, isReadable: true, isWritable: true, access: 'mapped' },
    ];
  }

  canRead(address: number, lengthBytes: number): boolean {
    return !this.#faults.isRemoved && address >= 0 && address + lengthBytes <= this.sizeBytes;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    if (!this.canRead(address, lengthBytes)) return false;
    target.set(this.#cpu.mem8.subarray(address, address + lengthBytes), targetOffset);
    return true;
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    if (!this.canRead(address, lengthBytes)) return false;
    this.#cpu.jit_dirty_cache(address, address + lengthBytes);
    this.#cpu.mem8.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), address);
    return true;
  }

  read(address: number, lengthBytes: number): Uint8Array | undefined {
    return this.canRead(address, lengthBytes)
      ? this.#cpu.mem8.slice(address, address + lengthBytes)
      : undefined;
  }
}

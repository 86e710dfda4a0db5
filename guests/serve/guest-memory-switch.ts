/**
 * The memory of a slot's root complex: that of the present guest, or none.
 *
 * Promises: after {@link GuestMemorySwitch.disconnect} no access reaches the former guest's memory, even if the device has
 * accesses in flight; the next guest's memory is reached only after {@link GuestMemorySwitch.connect}.
 */
import type { HostMemory } from '../../hw/pcie/index.ts';

export class GuestMemorySwitch implements HostMemory {
  #memory: HostMemory | undefined;

  get sizeBytes(): number {
    return this.#memory === undefined ? 0 : this.#memory.sizeBytes;
  }

  get isConnected(): boolean {
    return this.#memory !== undefined;
  }

  connect(memory: HostMemory): void {
    this.#memory = memory;
  }

  disconnect(): void {
    this.#memory = undefined;
  }

  canRead(address: number, lengthBytes: number): boolean {
    const memory = this.#memory;
    if (memory === undefined) return false;
    if (memory.canRead !== undefined) return memory.canRead(address, lengthBytes);
    return address >= 0 && address + lengthBytes <= memory.sizeBytes;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    return this.#memory?.readInto(address, lengthBytes, target, targetOffset) ?? false;
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    return this.#memory?.write(address, lengthBytes, source, sourceOffset) ?? false;
  }
}

/** A guest's RAM as the device reaches it. */

import type { HostMemory } from '../hw/pcie/index.ts';

/** The client's DMA map, in place: what its memory descriptors map now, and nothing else. */
export interface GuestMemory extends HostMemory {
  /** A copy of the bytes at an address, or undefined where they are not all mapped and readable. */
  read(address: number, lengthBytes: number): Uint8Array | undefined;
}

/**
 * The contract between a PCIe device model and whatever serves it to a guest, vfio-user here.
 *
 * The server calls the device from `Reactor.poll` only, in one thread, one call at a time and never re-entrantly
 * (a device that polls the reactor out of one of these calls would be called again: don't). What a guest does is
 * checked before it gets here: offset and length lie in the region, the region has the right, the length is at most
 * `maxDataTransferBytes` of the server; never the alignment or the size of an access, which are the device's to judge.
 *
 *     clientConnected ─► (regionRead | regionWrite | setInterrupt | reset)… ─► clientDisconnected ─► clientConnected …
 */

import type { GuestMemory } from './memory.ts';

/** Region indices of a PCI device (Linux include/uapi/linux/vfio.h, VFIO_PCI_*_REGION_INDEX). */
export const REGION_BAR0 = 0;
export const REGION_ROM = 6;
export const REGION_CONFIG = 7;
export const PCI_REGION_COUNT = 9;

/** Interrupt indices of a PCI device (Linux include/uapi/linux/vfio.h, VFIO_PCI_*_IRQ_INDEX). */
export const INTERRUPT_INTX = 0;
export const INTERRUPT_MSI = 1;
export const INTERRUPT_MSIX = 2;
export const INTERRUPT_ERROR = 3;
export const INTERRUPT_REQUEST = 4;
export const PCI_INTERRUPT_COUNT = 5;

/** One region that the device has; indices that are not listed are answered as regions of size 0. */
export interface DeviceRegion {
  /** REGION_…: BAR 0..5, ROM, configuration space, VGA. A 64-bit BAR takes its lower index. */
  readonly index: number;
  /** Bytes, above zero. */
  readonly sizeBytes: number;
  readonly isReadable: boolean;
  readonly isWritable: boolean;
}

/** One kind of interrupt that the device has; indices that are not listed are answered with count 0. */
export interface DeviceInterrupt {
  /** INTERRUPT_…. */
  readonly index: number;
  /** Number of vectors (INTx: 1). */
  readonly count: number;
}

/** The device behind one vfio-user socket, as a guest's machine sees it. */
export interface VfioUserDevice {
  readonly regions: readonly DeviceRegion[];
  readonly interrupts: readonly DeviceInterrupt[];

  /**
   * Reads `into.length` bytes at `offset` of a region, synchronously. `into` belongs to the server and is valid during
   * the call only. False: an error reply (EIO) is sent, and QEMU gives its guest all-ones.
   */
  regionRead(region: number, offset: number, into: Uint8Array): boolean;

  /**
   * Writes bytes at `offset` of a region; posted. `bytes` belongs to the server and is valid during the call only.
   * False: an error reply (EIO), where the client asked for a reply at all.
   */
  regionWrite(region: number, offset: number, bytes: Uint8Array): boolean;

  /** VFIO_USER_DEVICE_RESET: what a function-level reset does. Interrupt descriptors and DMA maps stay. */
  reset(): void;

  /**
   * The client gave, replaced or took away (-1) the eventfd of one vector. The server owns the descriptor and closes it
   * after the call that replaces it; the device writes to it by `raiseInterrupt(descriptor)` and never closes it.
   */
  setInterrupt(index: number, vector: number, descriptor: number): void;

  /**
   * The client masked or unmasked one vector by DEVICE_SET_IRQS. QEMU does so for INTx: a level that is still
   * asserted at the unmask is to be raised again (VFIO's automasking of INTx), else the guest never sees it.
   */
  maskInterrupt(index: number, vector: number, isMasked: boolean): void;

  /**
   * A client has agreed on a version. `memory` is its RAM, empty until it maps some; the same object for the life of
   * this client. After `clientDisconnected` it is empty indefinitely: each access returns false.
   */
  clientConnected(memory: GuestMemory): void;

  /** The client has disconnected, or was dropped. Its eventfds were taken away by setInterrupt(…, -1) before. */
  clientDisconnected(): void;
}

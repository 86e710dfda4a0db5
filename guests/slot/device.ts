/**
 * The contract between a PCIe device model and its server for a guest, here vfio-user.
 *
 * The server calls the device from `Reactor.poll` only, in one thread, one call at a time and never re-entrantly (a device must
 * not poll the reactor from one of these calls, since it would be called again). The server checks a guest's accesses first:
 * offset and length are in the region, the region grants the right, the length is at most `maxDataTransferBytes` of the server.
 * It never checks the alignment or the size of an access: the device does.
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

/** One region of the device; unlisted indices are answered as regions of size 0. */
export interface DeviceRegion {
  /** REGION_…: BAR 0..5, ROM, configuration space, VGA. A 64-bit BAR takes its lower index. */
  readonly index: number;
  /** Bytes, above zero. */
  readonly sizeBytes: number;
  readonly isReadable: boolean;
  readonly isWritable: boolean;
}

/** One kind of interrupt of the device; unlisted indices are answered with count 0. */
export interface DeviceInterrupt {
  /** INTERRUPT_…. */
  readonly index: number;
  /** Number of vectors (INTx: 1). */
  readonly count: number;
}

/** The device on one vfio-user socket, as a guest's machine sees it. */
export interface VfioUserDevice {
  readonly regions: readonly DeviceRegion[];
  readonly interrupts: readonly DeviceInterrupt[];

  /**
   * Reads `into.length` bytes at `offset` of a region, synchronously. `into` belongs to the server and is valid only during the
   * call. False: an error reply (EIO) is sent, and QEMU returns all ones to its guest.
   */
  regionRead(region: number, offset: number, into: Uint8Array): boolean;

  /**
   * Writes bytes at `offset` of a region; posted. `bytes` belongs to the server and is valid only during the call. False: an
   * error reply (EIO), if the client requested a reply.
   */
  regionWrite(region: number, offset: number, bytes: Uint8Array): boolean;

  /** VFIO_USER_DEVICE_RESET: the effect of a function-level reset. Interrupt descriptors and DMA maps remain. */
  reset(): void;

  /**
   * The client set, replaced or removed (-1) the eventfd of one vector. The server owns the descriptor and closes it after the
   * call that replaces it; the device writes to it by `raiseInterrupt(descriptor)` and never closes it.
   */
  setInterrupt(index: number, vector: number, descriptor: number): void;

  /**
   * The client masked or unmasked one vector by DEVICE_SET_IRQS. QEMU does so for INTx: a level that is still asserted at the
   * unmask must be raised again (VFIO's automasking of INTx), otherwise the guest never sees it.
   */
  maskInterrupt(index: number, vector: number, isMasked: boolean): void;

  /**
   * A client has agreed on a version. `memory` is its RAM, empty until it maps some; the same object for the life of this
   * client. After `clientDisconnected` it stays empty: each access returns false.
   */
  clientConnected(memory: GuestMemory): void;

  /** The client has disconnected, or was disconnected. setInterrupt(…, -1) has removed its eventfds before. */
  clientDisconnected(): void;
}

/**
 * Identity of the conventional NIC in PCI configuration space. Vendor 0x1234 is common for emulated devices (QEMU's standard
 * VGA, edu); no driver of a real card binds to it.
 */

export const nicIdentity = {
  vendorId: 0x1234,
  deviceId: 0x8254,
  revisionId: 0x01,
  /** Network controller, Ethernet. */
  classCode: 0x020000,
  subsystemVendorId: 0x1234,
  subsystemId: 0x0001,
  interruptPin: 1,
} as const;

/** BAR numbers; each is the lower half of a 64-bit pair. */
export const NicBar = {
  /** 128 KiB, not prefetchable: registers, MSI-X table and pending bits. */
  REGISTERS: 0,
  /** The on-board packet buffer: the transmit half, followed by the receive half (register PBA). */
  PACKET_BUFFER: 2,
} as const;
export type NicBar = (typeof NicBar)[keyof typeof NicBar];

export const nicBar0Bytes = 0x2_0000;

/** MSI-X: the table and its pending bits are in BAR0, above the registers. */
export const nicMsix = { vectorCount: 4, tableOffset: 0x1_8000, pendingOffset: 0x1_9000 } as const;

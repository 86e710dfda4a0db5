/** Identity of the device in PCI configuration space. Source: interface sheet 1.1–1.3. */

export const pciIdentity = {
  vendorId: 0x15b3,
  /** ConnectX-3 physical function (MT27500 family). */
  deviceId: 0x1003,
  revisionId: 0x00,
  /** Network controller, other: the value of VPI cards; Ethernet-only cards have 0x020000. */
  classCode: 0x028000,
  subsystemVendorId: 0x15b3,
  subsystemId: 0x0050,
  /** Type 0, single function. */
  headerType: 0x00,
  /** INTA, the legacy fallback. */
  interruptPin: 1,
} as const;

/** Other device IDs to which the driver binds as a physical function. */
export const otherPhysicalFunctionIds = {
  connectX3Pro: 0x1007,
} as const;

/**
 * The chip's own identity in its configuration space (CR space), by which firmware tools identify the chip. Source: mstflint,
 * dev_mgt/tools_dev_types.c: DEVID_ADDR, and the rows ConnectX3 and ConnectX3Pro.
 */
export const hardwareIdOf = (pciDeviceId: number): number =>
  pciDeviceId === otherPhysicalFunctionIds.connectX3Pro ? 0x1f7 : 0x1f5;

/** BAR numbers; each is the lower half of a 64-bit pair. */
export const Bar = {
  /** 1 MiB, not prefetchable: registers, MSI-X table and PBA. */
  CONFIGURATION: 0,
  /** 8 MiB, prefetchable: UAR pages, then BlueFlame pages. */
  UAR: 2,
} as const;
export type Bar = (typeof Bar)[keyof typeof Bar];

export const barSizeBytes = { configuration: 0x10_0000, uar: 0x80_0000 } as const;

/** Offsets of the capabilities in configuration space. */
export const capabilityOffset = {
  powerManagement: 0x40,
  vitalProductData: 0x48,
  pciExpress: 0x60,
  msix: 0x9c,
  vendorSpecific: 0xc0,
} as const;

/** Offsets of the extended capabilities; SR-IOV (0x108) is left out, because with it Linux may act as a multi-function master. */
export const extendedCapabilityOffset = {
  alternativeRoutingId: 0x100,
  deviceSerialNumber: 0x148,
  advancedErrorReporting: 0x154,
  secondaryPciExpress: 0x18c,
} as const;

/**
 * The gateway from PCI configuration space into the chip's configuration space, which BAR0 shows as well: an address, and the
 * dword there. Linux excludes both from its save and restore. Source: mstflint, mtcr_ul/mtcr_ul_com.c; interface sheet 1.3.
 */
export const gatewayOffset = { address: 0x58, data: 0x5c } as const;

/** MSI-X as declared by capability 0x9c; both structures are in BAR0. */
export const msix = { vectorCount: 128, tableOffset: 0x7c000, pendingOffset: 0x7d000 } as const;

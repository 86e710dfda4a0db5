/**
 * The small capabilities, as tables: power management, vital product data, MSI-X, vendor specific; and the extended
 * capabilities alternative routing-ID and device serial number. The PCI Express capability and advanced error reporting have
 * their own files.
 *
 * A capability begins with its id and the offset of the next one; an extended capability with a dword of id [15:0],
 * version [19:16] and next [31:20].
 */
import { registerBits as bits, register, registerBank, wholeRegister } from '../../base/index.ts';

/** Capability ids (PCI Code and ID Assignment Specification 1.11, 2). */
export const CapabilityId = {
  powerManagement: 0x01,
  vitalProductData: 0x03,
  vendorSpecific: 0x09,
  pciExpress: 0x10,
  msix: 0x11,
} as const;

/** Extended capability ids (the same, 3). */
export const ExtendedCapabilityId = {
  advancedErrorReporting: 0x0001,
  deviceSerialNumber: 0x0003,
  alternativeRoutingId: 0x000e,
} as const;

/** The two bytes every capability begins with. */
export const capabilityHeader = (id: number) => ({
  capabilityId: wholeRegister(0x00, 1, 'hwInit', 'capability id', id),
  nextPointer: wholeRegister(0x01, 1, 'hwInit', 'offset of the next one; 0 ends'),
});

/** The dword every extended capability begins with. */
export const extendedCapabilityHeader = (id: number, version: number) => ({
  header: register(0x00, 4, 'Extended Capability Header', {
    id: bits(15, 0, 'hwInit', 'extended capability id', id),
    version: bits(19, 16, 'hwInit', 'version', version),
    next: bits(31, 20, 'hwInit', 'offset of the next one; 0 ends'),
  }),
});

export const powerManagementCapability = registerBank(
  'powerManagement',
  { sizeBytes: 8, source: 'PCI Bus Power Management Interface Specification 1.2, 3.2' },
  {
    ...capabilityHeader(CapabilityId.powerManagement),
    capabilities: register(0x02, 2, 'Power Management Capabilities', {
      version: bits(2, 0, 'hwInit', 'version', 3),
      d1Support: bits(9, 9, 'hwInit', 'no D1'),
      d2Support: bits(10, 10, 'hwInit', 'no D2'),
      pmeSupport: bits(15, 11, 'hwInit', 'no power management events'),
    }),
    controlStatus: register(0x04, 2, 'Power Management Control/Status', {
      powerState: bits(1, 0, 'rw', '0: D0, 3: D3hot'),
      noSoftReset: bits(3, 3, 'hwInit', 'zero: returning from D3hot to D0 resets the function'),
    }),
  },
);

export const vitalProductDataCapability = registerBank(
  'vitalProductData',
  { sizeBytes: 8, source: 'PCI Local Bus Specification 3.0, 6.4 and appendix I' },
  {
    ...capabilityHeader(CapabilityId.vitalProductData),
    address: register(0x02, 2, 'VPD Address', {
      value: bits(14, 0, 'rw', 'byte address of the dword'),
      isComplete: bits(15, 15, 'rw', 'written 0: read this dword; the device sets 1 when data is there'),
    }),
    data: wholeRegister(0x04, 4, 'rw', 'the dword read'),
  },
);

export const msixCapability = registerBank(
  'msix',
  { sizeBytes: 12, source: 'PCI Local Bus Specification 3.0, 6.8.2' },
  {
    ...capabilityHeader(CapabilityId.msix),
    control: register(0x02, 2, 'Message Control', {
      tableSize: bits(10, 0, 'hwInit', 'number of vectors minus one'),
      functionMask: bits(14, 14, 'rw', 'all vectors masked'),
      enable: bits(15, 15, 'rw', 'MSI-X in use, INTx prohibited'),
    }),
    table: register(0x04, 4, 'Table Offset', {
      barIndex: bits(2, 0, 'hwInit', 'BAR of the table'),
      offset: bits(31, 3, 'hwInit', 'offset of the table in units of 8 bytes'),
    }),
    pendingBits: register(0x08, 4, 'PBA Offset', {
      barIndex: bits(2, 0, 'hwInit', 'BAR of the pending bit array'),
      offset: bits(31, 3, 'hwInit', 'offset of the array in units of 8 bytes'),
    }),
  },
);

export const vendorCapability = registerBank(
  'vendorSpecific',
  { sizeBytes: 0x18, source: 'PCI Local Bus Specification 3.0, appendix H' },
  {
    ...capabilityHeader(CapabilityId.vendorSpecific),
    length: wholeRegister(0x02, 1, 'hwInit', 'length with this header; the rest reads zero', 0x18),
  },
);

/** Two registers between the capabilities, which belong to no capability. */
export const registerGateway = registerBank(
  'registerGateway',
  { sizeBytes: 8, source: 'mstflint, mtcr_ul/mtcr_ul_com.c: PCICONF_ADDR_OFF, PCICONF_DATA_OFF' },
  {
    address: wholeRegister(0x00, 4, 'rw', "byte address in the chip's configuration space, which is BAR0"),
    data: wholeRegister(0x04, 4, 'rw', 'the dword there, as a number: an access of it is one of the dword'),
  },
);

export const alternativeRoutingIdCapability = registerBank(
  'alternativeRoutingId',
  { sizeBytes: 8, source: 'PCI Express Base Specification 3.1, 7.23' },
  {
    ...extendedCapabilityHeader(ExtendedCapabilityId.alternativeRoutingId, 1),
    capability: register(0x04, 2, 'ARI Capability', {
      nextFunction: bits(15, 8, 'hwInit', 'no other function'),
    }),
  },
);

export const serialNumberCapability = registerBank(
  'deviceSerialNumber',
  { sizeBytes: 12, source: 'PCI Express Base Specification 3.1, 7.12' },
  {
    ...extendedCapabilityHeader(ExtendedCapabilityId.deviceSerialNumber, 1),
    low: wholeRegister(0x04, 4, 'hwInit', 'EUI-64, lower dword'),
    high: wholeRegister(0x08, 4, 'hwInit', 'EUI-64, upper dword'),
  },
);

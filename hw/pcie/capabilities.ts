/**
 * The small capabilities, as tables: power management, vital product data, MSI-X, vendor specific; and of the extended
 * ones alternative routing-ID and the device serial number. The PCI Express capability and advanced error reporting
 * have files of their own.
 *
 * A capability begins with its id and the offset of the next one; an extended capability with a dword of id [15:0],
 * version [19:16] and next [31:20].
 */
import { configBits as bits, configRegister, configStructure } from './config-register.ts';

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
  capabilityId: configRegister(0x00, 1, { value: bits(7, 0, 'HwInit', 'capability id', id) }),
  nextPointer: configRegister(0x01, 1, { value: bits(7, 0, 'HwInit', 'offset of the next one; 0 ends') }),
});

/** The dword every extended capability begins with. */
export const extendedCapabilityHeader = (id: number, version: number) => ({
  header: configRegister(0x00, 4, {
    id: bits(15, 0, 'HwInit', 'extended capability id', id),
    version: bits(19, 16, 'HwInit', 'version', version),
    next: bits(31, 20, 'HwInit', 'offset of the next one; 0 ends'),
  }),
});

export const powerManagementCapability = configStructure(
  'powerManagement',
  { sizeBytes: 8, source: 'PCI Bus Power Management Interface Specification 1.2, 3.2' },
  {
    ...capabilityHeader(CapabilityId.powerManagement),
    capabilities: configRegister(0x02, 2, {
      version: bits(2, 0, 'HwInit', 'version', 3),
      d1Support: bits(9, 9, 'HwInit', 'no D1'),
      d2Support: bits(10, 10, 'HwInit', 'no D2'),
      pmeSupport: bits(15, 11, 'HwInit', 'no power management events'),
    }),
    controlStatus: configRegister(0x04, 2, {
      powerState: bits(1, 0, 'RW', '0: D0, 3: D3hot'),
      noSoftReset: bits(3, 3, 'HwInit', 'zero: returning from D3hot to D0 resets the function'),
    }),
  },
);

export const vitalProductDataCapability = configStructure(
  'vitalProductData',
  { sizeBytes: 8, source: 'PCI Local Bus Specification 3.0, 6.4 and appendix I' },
  {
    ...capabilityHeader(CapabilityId.vitalProductData),
    address: configRegister(0x02, 2, {
      value: bits(14, 0, 'RW', 'byte address of the dword'),
      isComplete: bits(15, 15, 'RW', 'written 0: read this dword; the device sets 1 when data is there'),
    }),
    data: configRegister(0x04, 4, { value: bits(31, 0, 'RW', 'the dword read') }),
  },
);

export const msixCapability = configStructure(
  'msix',
  { sizeBytes: 12, source: 'PCI Local Bus Specification 3.0, 6.8.2' },
  {
    ...capabilityHeader(CapabilityId.msix),
    control: configRegister(0x02, 2, {
      tableSize: bits(10, 0, 'HwInit', 'number of vectors minus one'),
      functionMask: bits(14, 14, 'RW', 'all vectors masked'),
      enable: bits(15, 15, 'RW', 'MSI-X in use, INTx prohibited'),
    }),
    table: configRegister(0x04, 4, {
      barIndex: bits(2, 0, 'HwInit', 'BAR of the table'),
      offset: bits(31, 3, 'HwInit', 'offset of the table in units of 8 bytes'),
    }),
    pendingBits: configRegister(0x08, 4, {
      barIndex: bits(2, 0, 'HwInit', 'BAR of the pending bit array'),
      offset: bits(31, 3, 'HwInit', 'offset of the array in units of 8 bytes'),
    }),
  },
);

export const vendorCapability = configStructure(
  'vendorSpecific',
  { sizeBytes: 0x18, source: 'PCI Local Bus Specification 3.0, appendix H' },
  {
    ...capabilityHeader(CapabilityId.vendorSpecific),
    length: configRegister(0x02, 1, {
      value: bits(7, 0, 'HwInit', 'length with this header; the rest reads zero', 0x18),
    }),
  },
);

export const alternativeRoutingIdCapability = configStructure(
  'alternativeRoutingId',
  { sizeBytes: 8, source: 'PCI Express Base Specification 3.1, 7.23' },
  {
    ...extendedCapabilityHeader(ExtendedCapabilityId.alternativeRoutingId, 1),
    capability: configRegister(0x04, 2, {
      nextFunction: bits(15, 8, 'HwInit', 'no other function'),
    }),
  },
);

export const serialNumberCapability = configStructure(
  'deviceSerialNumber',
  { sizeBytes: 12, source: 'PCI Express Base Specification 3.1, 7.12' },
  {
    ...extendedCapabilityHeader(ExtendedCapabilityId.deviceSerialNumber, 1),
    low: configRegister(0x04, 4, { value: bits(31, 0, 'HwInit', 'EUI-64, lower dword') }),
    high: configRegister(0x08, 4, { value: bits(31, 0, 'HwInit', 'EUI-64, upper dword') }),
  },
);

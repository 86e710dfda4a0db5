/**
 * MADs as MAD_IFC exchanges them: the SMP header and the mailbox around it. Attributes are in `mad-attributes.ts`.
 * Source: interface sheet 3.14, 7.6; InfiniBand Architecture volume 1, 13.4.2 and 14.2.1.
 */

import { bits8, bits16, bits32, bytes, layout, named, u8, u16, u32, u64 } from '../base/index.ts';

export const madBytes = 256;

/** The QP of general services on every port, and the Q_Key of all of them (13.5.1, 3.5.3). */
export const generalServicesQpn = 1;
export const generalServicesQkey = 0x8001_0000;

export const MadClass = {
  SUBN_LID_ROUTED: 0x01,
  SUBN_ADM: 0x03,
  PERF_MGMT: 0x04,
  COMMUNICATION: 0x07,
  VENDOR_9: 0x09,
  VENDOR_A: 0x0a,
  CONG_MGMT: 0x21,
  SUBN_DIRECTED_ROUTE: 0x81,
} as const;
export type MadClass = (typeof MadClass)[keyof typeof MadClass];

export const MadMethod = {
  GET: 0x01,
  SET: 0x02,
  SEND: 0x03,
  TRAP: 0x05,
  TRAP_REPRESS: 0x07,
  GET_RESP: 0x81,
} as const;
export type MadMethod = (typeof MadMethod)[keyof typeof MadMethod];

/** Subnet management attributes that software reads or sets. */
export const SmpAttribute = {
  NOTICE: 0x0002,
  NODE_DESC: 0x0010,
  NODE_INFO: 0x0011,
  SWITCH_INFO: 0x0012,
  GUID_INFO: 0x0014,
  PORT_INFO: 0x0015,
  PKEY_TABLE: 0x0016,
  SL_TO_VL_TABLE: 0x0017,
  VL_ARB_TABLE: 0x0018,
  LINEAR_FORWARDING_TABLE: 0x0019,
  MULTICAST_FORWARDING_TABLE: 0x001b,
  SM_INFO: 0x0020,
  /** Vendor: bit 0 of byte 15 is FDR10. It must succeed, or port queries fail at QDR. */
  MLX_EXTENDED_PORT_INFO: 0xff90,
  /** Vendor: cable module pages. */
  MODULE_INFO: 0xff60,
} as const;
export type SmpAttribute = (typeof SmpAttribute)[keyof typeof SmpAttribute];

/** Common MAD status bits [7:0] and the direction bit of directed-route responses. */
export const MadStatus = {
  OK: 0x0000,
  BUSY: 0x0001,
  UNSUPPORTED_VERSION: 0x0004,
  UNSUPPORTED_METHOD: 0x0008,
  UNSUPPORTED_METHOD_ATTRIBUTE: 0x000c,
  INVALID_FIELD: 0x001c,
  DIRECTION: 0x8000,
} as const;
export type MadStatus = (typeof MadStatus)[keyof typeof MadStatus];

const commonHeader = {
  baseVersion: u8(0x00),
  managementClass: named(u8(0x01), MadClass),
  classVersion: u8(0x02),
  method: named(u8(0x03), MadMethod),
  status: u16(0x04),
  transactionId: u64(0x08),
  attributeId: named(u16(0x10), SmpAttribute),
  attributeModifier: u32(0x14),
} as const;

/** Any MAD: the common header and the rest as bytes. */
export const mad = layout(
  'MAD',
  { sizeBytes: madBytes, byteOrder: 'big', source: 'IBA 13.4.2' },
  { ...commonHeader, classSpecific: u16(0x06), data: bytes(0x18, 0xe8) },
);

/** A subnet management packet; the fields of directed routes are zero in LID-routed ones. */
export const smp = layout(
  'SMP',
  { sizeBytes: madBytes, byteOrder: 'big', source: 'IBA 14.2.1' },
  {
    ...commonHeader,
    hopPointer: u8(0x06),
    hopCount: u8(0x07),
    mkey: u64(0x18),
    directedSourceLid: u16(0x20),
    directedDestinationLid: u16(0x22),
    data: bytes(0x40, 64, 'the attribute'),
    initialPath: bytes(0x80, 64),
    returnPath: bytes(0xc0, 64),
  },
);

/** Offset of an SMP's attribute, and its length. */
export const smpDataOffset = 0x40;
export const smpDataBytes = 64;

/** Places on the path of a directed route: a hop count of 63 at most (14.2.2). */
export const directedHopsMax = 63;

/** Bits of MAD_IFC's opcode modifier. */
export const MadIfcFlag = { NO_MKEY_CHECK: 1, NO_BKEY_CHECK: 2, EXTENDED_INFO: 4, NETWORK_VIEW: 8 } as const;
export type MadIfcFlag = (typeof MadIfcFlag)[keyof typeof MadIfcFlag];

/** Input mailbox of MAD_IFC; the bytes after the MAD are used only with EXTENDED_INFO. */
export const madIfcInput = layout(
  'MAD_IFC in box',
  { sizeBytes: 0x168, byteOrder: 'big', source: 'sheet 3.14' },
  {
    request: bytes(0x00, madBytes),
    receivingQpn: u32(0x100),
    sendingQpn: bits32(0x108, 23, 0),
    serviceLevel: bits8(0x10c, 7, 4),
    grhPresent: bits8(0x10d, 7, 7),
    destinationPathBits: bits8(0x10d, 6, 0),
    pkeyIndex: bits16(0x112, 15, 0),
    grh: bytes(0x140, 40),
  },
);

/** Input modifier of MAD_IFC. */
export const madIfcModifier = (port: number, sourceLid: number): number => ((sourceLid << 16) | port) >>> 0;

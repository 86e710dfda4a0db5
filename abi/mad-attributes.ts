/**
 * Attributes of subnet management, in the 64-byte data area of an SMP. Source: interface sheet 7.6; InfiniBand Architecture
 * volume 1, 14.2.5 (PortInfo offsets are decimal there and here).
 */

import { array, bits8, bits32, bytes, layout, named, u8, u16, u32, u64 } from '../base/index.ts';
import { PortMtu } from './ports.ts';

const header = { sizeBytes: 64, byteOrder: 'big', source: 'IBA 14.2.5, sheet 7.6' } as const;

export const PortState = { DOWN: 1, INIT: 2, ARMED: 3, ACTIVE: 4 } as const;
export type PortState = (typeof PortState)[keyof typeof PortState];

export const PortPhysicalState = {
  SLEEP: 1,
  POLLING: 2,
  DISABLED: 3,
  TRAINING: 4,
  LINK_UP: 5,
  RECOVERY: 6,
} as const;
export type PortPhysicalState = (typeof PortPhysicalState)[keyof typeof PortPhysicalState];

/** Lane counts of a link, as masks. */
export const LinkWidth = { WIDTH_1X: 1, WIDTH_4X: 2, WIDTH_8X: 4, WIDTH_12X: 8, WIDTH_2X: 16 } as const;
export type LinkWidth = (typeof LinkWidth)[keyof typeof LinkWidth];

export const LinkSpeed = { SDR: 1, DDR: 2, QDR: 4 } as const;
export type LinkSpeed = (typeof LinkSpeed)[keyof typeof LinkSpeed];

export const LinkSpeedExtended = { NONE: 0, FDR: 1, EDR: 2, HDR: 4, NDR: 8 } as const;
export type LinkSpeedExtended = (typeof LinkSpeedExtended)[keyof typeof LinkSpeedExtended];

/** Bits of PortInfo.CapabilityMask that Linux sets or tests, and the bit that makes CapabilityMask2 valid. */
export const PortCapability = {
  IS_SM: 1 << 1,
  IS_TRAP: 1 << 3,
  IS_AUTO_MIGRATION: 1 << 5,
  IS_SL_MAPPING: 1 << 6,
  IS_SYSTEM_IMAGE_GUID: 1 << 11,
  HAS_EXTENDED_SPEEDS: 1 << 14,
  HAS_CAPABILITY_MASK_2: 1 << 15,
  IS_CM: 1 << 16,
  IS_DEVICE_MANAGEMENT: 1 << 19,
} as const;
export type PortCapability = (typeof PortCapability)[keyof typeof PortCapability];

/** Bits of PortInfo.CapabilityMask2: speeds beyond EDR (IBA 14.2.5.6). */
export const PortCapability2 = { HAS_HDR: 1 << 5, HAS_NDR: 1 << 10 } as const;

export const nodeDescription = layout('NodeDescription', header, { text: bytes(0x00, 64) });

/** Kinds of node in NodeInfo. */
export const NodeType = { CHANNEL_ADAPTER: 1, SWITCH: 2 } as const;

export const nodeInfo = layout('NodeInfo', header, {
  baseVersion: u8(0x00),
  classVersion: u8(0x01),
  nodeType: u8(0x02, '1 channel adapter, 2 switch'),
  ports: u8(0x03),
  systemImageGuid: u64(0x04),
  nodeGuid: u64(0x0c),
  portGuid: u64(0x14),
  partitionCap: u16(0x1c),
  deviceId: u16(0x1e),
  revision: u32(0x20),
  localPort: u8(0x24),
  vendorId: bits32(0x24, 23, 0),
});

/** 14.2.5.6, first half: addresses and link. */
const portAddressesAndLink = {
  mkey: u64(0),
  gidPrefix: u64(8),
  lid: u16(16),
  masterSmLid: u16(18),
  capabilityMask: u32(20, 'bits of PortCapability'),
  diagnosticCode: u16(24),
  mkeyLeasePeriod: u16(26),
  localPort: u8(28),
  linkWidthEnabled: u8(29),
  linkWidthSupported: u8(30),
  linkWidthActive: named(u8(31), LinkWidth),
  linkSpeedSupported: bits8(32, 7, 4),
  portState: named(bits8(32, 3, 0), PortState),
  portPhysicalState: named(bits8(33, 7, 4), PortPhysicalState),
  linkDownDefault: bits8(33, 3, 0),
  mkeyProtect: bits8(34, 7, 6),
  lmc: bits8(34, 2, 0),
  linkSpeedActive: named(bits8(35, 7, 4), LinkSpeed),
  linkSpeedEnabled: bits8(35, 3, 0),
  neighborMtu: named(bits8(36, 7, 4, 'active MTU'), PortMtu),
  masterSmSl: bits8(36, 3, 0),
} as const;

/** 14.2.5.6, second half: virtual lanes, limits and counters. */
const portLimits = {
  vlCap: bits8(37, 7, 4),
  initType: bits8(37, 3, 0),
  vlHighLimit: u8(38),
  vlArbitrationHighCap: u8(39),
  vlArbitrationLowCap: u8(40),
  initTypeReply: bits8(41, 7, 4),
  mtuCap: named(bits8(41, 3, 0), PortMtu),
  vlStallCount: bits8(42, 7, 5),
  hoqLife: bits8(42, 4, 0),
  operationalVls: bits8(43, 7, 4),
  partitionEnforcementIn: bits8(43, 3, 3),
  partitionEnforcementOut: bits8(43, 2, 2),
  filterRawIn: bits8(43, 1, 1),
  filterRawOut: bits8(43, 0, 0),
  mkeyViolations: u16(44),
  pkeyViolations: u16(46),
  qkeyViolations: u16(48),
  guidCap: u8(50),
  clientReregister: bits8(51, 7, 7),
  multicastPkeyTrapSuppression: bits8(51, 6, 5),
  subnetTimeout: bits8(51, 4, 0),
  responseTime: bits8(52, 4, 0),
  localPhysicalErrors: bits8(53, 7, 4),
  overrunErrors: bits8(53, 3, 0),
  maxCreditHint: u16(54),
  linkRoundTripLatency: bits32(56, 23, 0),
  capabilityMask2: u16(60),
  linkSpeedExtendedActive: named(bits8(62, 7, 4), LinkSpeedExtended),
  linkSpeedExtendedSupported: bits8(62, 3, 0),
  linkSpeedExtendedEnabled: bits8(63, 4, 0),
} as const;

export const portInfo = layout('PortInfo', header, { ...portAddressesAndLink, ...portLimits });

/** Entries 8 × block to 8 × block + 7 of the GUID table; the block is the attribute modifier. */
export const guidInfo = layout('GUIDInfo', header, { guids: array(u64(0x00), 8) });

/** Entries 32 × block to 32 × block + 31 of the P_Key table. */
export const pkeyTable = layout('PKeyTable', header, { pkeys: array(u16(0x00), 32) });

/** 14.2.5.4: sizes of a switch's tables, and what it does with packets that no table knows. */
export const switchInfo = layout('SwitchInfo', header, {
  linearFdbCap: u16(0),
  randomFdbCap: u16(2),
  multicastFdbCap: u16(4),
  linearFdbTop: u16(6, 'the greatest LID that the linear table forwards'),
  defaultPort: u8(8),
  defaultMulticastPrimaryPort: u8(9),
  defaultMulticastNotPrimaryPort: u8(10),
  lifetimeValue: bits8(11, 7, 3),
  portStateChange: bits8(11, 2, 2, 'a link came up or went down since a Set of 1 cleared it'),
  optimizedSlToVl: bits8(11, 1, 0),
  lidsPerPort: u16(12),
  partitionEnforcementCap: u16(14),
  inboundEnforcementCap: bits8(16, 7, 7),
  outboundEnforcementCap: bits8(16, 6, 6),
  filterRawInboundCap: bits8(16, 5, 5),
  filterRawOutboundCap: bits8(16, 4, 4),
  enhancedPort0: bits8(16, 3, 3),
  multicastFdbTop: u16(18),
});

/** Output ports of LIDs 64 × block to 64 × block + 63: 14.2.5.10. */
export const linearForwardingTable = layout('LinearForwardingTable', header, { ports: bytes(0x00, 64) });

/**
 * Masks of 16 output ports for 32 groups: 14.2.5.12. Bits [8:0] of the attribute modifier are the block of groups from 0xc000 on,
 * bits [31:28] the position, ports 16 × position to 16 × position + 15.
 */
export const multicastForwardingTable = layout('MulticastForwardingTable', header, {
  portMasks: array(u16(0x00), 32),
});

/** VL of each SL, two to a byte: SL 0 in [7:4] of byte 0. */
export const slToVlTable = layout('SLtoVL', header, { pairs: bytes(0x00, 8) });

/** Vendor attribute 0xff90. */
export const extendedPortInfo = layout('extended port info', header, {
  linkSpeedActive: bits8(15, 0, 0, '1 is FDR10'),
});

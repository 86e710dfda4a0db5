/**
 * Attributes of performance management, in the 192-byte data area of its MADs. Source: InfiniBand Architecture volume 1, 16.1.3
 * and 13.4.8.1; the same offsets are in Linux include/rdma/ib_pma.h.
 */

import { bits8, bits32, layout, u8, u16, u32, u64 } from '../base/index.ts';

export const PerformanceAttribute = {
  CLASS_PORT_INFO: 0x0001,
  PORT_COUNTERS: 0x0012,
  PORT_COUNTERS_EXTENDED: 0x001d,
} as const;
export type PerformanceAttribute = (typeof PerformanceAttribute)[keyof typeof PerformanceAttribute];

/** Offset of the attribute in the MAD, after 40 reserved bytes, and its length. */
export const performanceDataOffset = 0x40;
export const performanceDataBytes = 192;

/** Bits of ClassPortInfo.CapabilityMask for this class: 16.1.3.1. */
export const PerformanceCapability = {
  ALL_PORT_SELECT: 1 << 8,
  EXTENDED_WIDTH: 1 << 9,
  /** Extended counters without those of unicast and multicast packets. */
  EXTENDED_WIDTH_NO_IETF: 1 << 10,
  XMIT_WAIT: 1 << 12,
} as const;
export type PerformanceCapability = (typeof PerformanceCapability)[keyof typeof PerformanceCapability];

const header = { sizeBytes: performanceDataBytes, byteOrder: 'big' } as const;

/** Redirections and traps are not listed: this class redirects nothing and sends no traps. */
export const classPortInfo = layout(
  'ClassPortInfo',
  { ...header, source: 'IBA 13.4.8.1' },
  {
    baseVersion: u8(0),
    classVersion: u8(1),
    capabilityMask: u16(2, 'bits of PerformanceCapability'),
    responseTime: bits8(7, 4, 0, '4.096 us times two to this power'),
  },
);

/** Data counts dwords, from the first byte of the LRH to the last of the ICRC. */
export const portCounters = layout(
  'PortCounters',
  { ...header, source: 'IBA 16.1.3.5' },
  {
    portSelect: u8(1),
    counterSelect: u16(2, 'which counters a Set writes'),
    symbolErrorCounter: u16(4),
    linkErrorRecoveryCounter: u8(6),
    linkDownedCounter: u8(7),
    portRcvErrors: u16(8),
    portRcvRemotePhysicalErrors: u16(10),
    portRcvSwitchRelayErrors: u16(12),
    portXmitDiscards: u16(14),
    portXmitConstraintErrors: u8(16),
    portRcvConstraintErrors: u8(17),
    counterSelect2: u8(18, 'bit 0: PortXmitWait'),
    localLinkIntegrityErrors: bits8(19, 7, 4),
    excessiveBufferOverrunErrors: bits8(19, 3, 0),
    vl15Dropped: u16(22),
    portXmitData: u32(24),
    portRcvData: u32(28),
    portXmitPkts: u32(32),
    portRcvPkts: u32(36),
    portXmitWait: u32(40),
  },
);

export const portCountersExtended = layout(
  'PortCountersExtended',
  { ...header, source: 'IBA 16.1.4.11' },
  {
    portSelect: u8(1),
    counterSelect: u16(2, 'which counters a Set writes'),
    counterSelect2: bits32(4, 31, 0),
    portXmitData: u64(8),
    portRcvData: u64(16),
    portXmitPkts: u64(24),
    portRcvPkts: u64(32),
    portUnicastXmitPkts: u64(40),
    portUnicastRcvPkts: u64(48),
    portMulticastXmitPkts: u64(56),
    portMulticastRcvPkts: u64(64),
  },
);
